/* Changes of contents, one after the other. */
#ifndef HAMR_ARRAY_CHANGE_H
#define HAMR_ARRAY_CHANGE_H

#include "array/array.h"
#include "base/python.h"

PyObject *change_fill(PyObject *object, Array *value); /* every element becomes the single one of value; None, or NULL with an exception */
PyObject *change_write(PyObject *object, Array *other); /* every element becomes that of other, broadcast; likewise */
extern PyMethodDef change_functions[];

#endif
