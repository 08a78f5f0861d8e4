/* What other libraries export by the buffer protocol as arrays. */
#ifndef HAMR_PROTOCOLS_BUFFER_IMPORT_H
#define HAMR_PROTOCOLS_BUFFER_IMPORT_H

#include "base/python.h"

extern PyMethodDef buffer_import_functions[];

#endif
