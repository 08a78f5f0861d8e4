/* The base of hamr.pygpu.Function: a kernel that is called. */
#pragma once

#include "base/python.h"

extern PyMethodDef kernel_functions[];
int kernel_setup(PyObject *module); /* 0, or -1 with an exception */
