/* Changes of contents, one after the other. */
#ifndef HAMR_ARRAY_CHANGE_H
#define HAMR_ARRAY_CHANGE_H

#include "array/array.h"
#include "base/python.h"

PyObject *change_fill(PyObject *object, Array *value); /* every element becomes the single one of value; None, or NULL with an exception */
PyObject *change_write(PyObject *object, Array *other); /* every element becomes that of other, broadcast; likewise */
int change_write_bytes(PyObject *object, PyObject *exporter); /* elements of a device become those of a plain array of the same kind: 1, or 0 where it is none; -1 with an exception */
extern PyMethodDef change_functions[];

#endif
