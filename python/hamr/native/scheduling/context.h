/* The scope in which work for a device is enqueued: hamr.hetero.ScopedContext. */
#pragma once

#include "base/python.h"

int context_setup(PyObject *module); /* 0, or -1 with an exception */
extern PyMethodDef context_functions[];
