/* Asking an object for a tensor. */
#pragma once

#include "base/python.h"

int dlpack_ask_setup(void);
/* Arguments: type, object, stream, transfer, wait, and more. */
PyObject *adopt_dlpack(PyObject *module, PyObject *const *arguments, Py_ssize_t n);
extern PyMethodDef dlpack_functions[];
