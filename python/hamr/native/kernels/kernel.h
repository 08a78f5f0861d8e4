/* The base of hamr.pygpu.Function: a kernel that is called. */
#ifndef HAMR_KERNELS_KERNEL_H
#define HAMR_KERNELS_KERNEL_H

#include "base/python.h"

extern PyMethodDef kernel_functions[];
int kernel_setup(PyObject *module); /* 0, or -1 with an exception */

#endif
