/* Changes of contents, one after the other. */
#pragma once

#include "array/array.h"
#include "base/python.h"

/* Sets every element to the single one of value. None, or NULL with an exception. */
PyObject *change_fill(PyObject *object, Array *value);
/* Sets every element from other, broadcast. None, or NULL with an exception. */
PyObject *change_write(PyObject *object, Array *other);
/* Sets a device's elements from a plain array of the same kind: 1. 0: it is none; -1 with an exception. */
int change_write_bytes(PyObject *object, PyObject *exporter);
extern PyMethodDef change_functions[];
