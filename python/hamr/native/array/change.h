/* Changes of contents, one after the other. */
#ifndef HAMR_ARRAY_CHANGE_H
#define HAMR_ARRAY_CHANGE_H

#include "base/python.h"

extern PyMethodDef change_functions[];

#endif
