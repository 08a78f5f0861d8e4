/* The buffer protocol and __array_interface__: arrays for whoever reads host memory. */
#pragma once

#include "base/python.h"

int array_getbuffer(PyObject *object, Py_buffer *view, int flags);
PyObject *array_interface(PyObject *object, void *closure);
