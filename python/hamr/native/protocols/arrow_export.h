/* __arrow_c_array__ and __arrow_c_device_array__. */
#ifndef HAMR_PROTOCOLS_ARROW_EXPORT_H
#define HAMR_PROTOCOLS_ARROW_EXPORT_H

#include "base/python.h"

PyObject *array_arrow(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *array_arrow_device(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);

#endif
