/* New arrays of another one's elements, and their text. */
#pragma once

#include "array/array.h"
#include "base/python.h"

PyTypeObject *copy_type(void); /* hamr.Buffer; NULL, with an exception, until Python has told it */
/* Copies the elements in C order. */
Array *array_copy(PyTypeObject *type, Array *source, int32_t allocator, int32_t device, int32_t element);
extern PyMethodDef copy_functions[];
