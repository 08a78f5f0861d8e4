/* __cuda_array_interface__, both ways. */
#pragma once

#include "base/python.h"

int cuda_interface_setup(void);
PyObject *cuda_array_interface(PyObject *object, void *closure);
/* Arguments: type, object, stream, transfer, wait. */
PyObject *adopt_cuda(PyObject *module, PyObject *const *arguments, Py_ssize_t n);
