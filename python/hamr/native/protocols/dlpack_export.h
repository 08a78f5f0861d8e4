/* __dlpack__: arrays for other libraries. */
#pragma once

#include "array/array.h"
#include "base/python.h"
#include "plain/dlpack.h"

int dlpack_export_setup(void);
PyObject *array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);
DLManagedTensorVersioned *dlpack_export(Array *self); /* as it is, without waiting; NULL: BufferError */
