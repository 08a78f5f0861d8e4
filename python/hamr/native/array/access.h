/* Where code in a space can touch an array. */
#pragma once

#include "array/array.h"
#include "array/result.h"
#include "base/python.h"

int array_usable(const Array *self);     /* 0, or -1: it is a device's, from before a fork */
Array *array_settled(Array *self);           /* a snapshot that the host may read now */
int array_may_be_pending(const Array *self); /* whether the core must be asked before the host reads */
int is_handle(const Array *self);
PyObject *array_access(Array *self, int32_t space, int32_t device);
PyObject *access_handle(Result *result, Array *source, int32_t space); /* a handle on what the core made of source */
extern PyMethodDef access_functions[];
PyObject *get_host_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
#define DECLARE_ACCESSOR(space, number, name, code) \
    PyObject *get_##name##_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
HAMR_DEVICE_SPACES(DECLARE_ACCESSOR)
