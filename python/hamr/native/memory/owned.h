/* Things of the core's that end with an object of Python's. */
#ifndef HAMR_MEMORY_OWNED_H
#define HAMR_MEMORY_OWNED_H

#include "base/python.h"

int owned_setup(PyObject *module); /* 0, or -1 with an exception */
extern PyMethodDef owned_functions[];

#endif
