/* __arrow_c_array__ and __arrow_c_device_array__. */
#pragma once

#include "base/python.h"

PyObject *array_arrow(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *array_arrow_device(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
