/* Copies, which Python's part makes. */
#ifndef HAMR_ARRAY_COPY_H
#define HAMR_ARRAY_COPY_H

#include "array/array.h"
#include "base/python.h"

PyTypeObject *copy_type(void); /* hamr.Buffer; NULL, with an exception, until Python has told it */
Array *array_copy(Array *source, int32_t allocator, int32_t device); /* a Buffer with the same elements in C order */
extern PyMethodDef copy_functions[];

#endif
