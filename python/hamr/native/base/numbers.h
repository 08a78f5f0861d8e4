/* Numbers that Python gives. */
#ifndef HAMR_BASE_NUMBERS_H
#define HAMR_BASE_NUMBERS_H

#include "base/python.h"

extern PyMethodDef number_functions[];
int read_int32(PyObject *value, const char *name, int32_t *into); /* 0; -1: an error, which names it so */

#endif
