/* Arrays as they are now, which do not change with the buffer. */
#pragma once

#include "array/array.h"
#include "base/python.h"

PyObject *array_snapshot(Array *self, PyTypeObject *type);
Array *array_pin(Array *self);
Array *array_pinned(Array *self); /* itself, if it is what array_pin returns already */

/* Methods of the type, by the names that they have there. */
PyObject *array_method_snapshot(PyObject *object, PyObject *type);
PyObject *array_method_pin(PyObject *object, PyObject *unused);
PyObject *array_method_keep(PyObject *object, PyObject *snapshot);
