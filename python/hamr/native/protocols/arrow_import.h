/* Other libraries' Arrow arrays. */
#ifndef HAMR_PROTOCOLS_ARROW_IMPORT_H
#define HAMR_PROTOCOLS_ARROW_IMPORT_H

#include "base/python.h"

extern PyMethodDef arrow_functions[];

#endif
