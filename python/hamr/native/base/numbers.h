/* Numbers that Python gives. */
#pragma once

#include "base/python.h"

extern PyMethodDef number_functions[];
int read_int32(PyObject *value, const char *name, int32_t *into); /* 0; -1: an error, which names it so */
