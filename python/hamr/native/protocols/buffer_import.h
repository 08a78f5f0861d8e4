/* What other libraries export by the buffer protocol as arrays. */
#ifndef HAMR_PROTOCOLS_BUFFER_IMPORT_H
#define HAMR_PROTOCOLS_BUFFER_IMPORT_H

#include "array/adopt.h"
#include "base/python.h"

/* Describes at draft, which was started, what an object exports, and makes a view of it: 1. 0: it exports nothing, or
 * elements that are not ours. -1, with an exception. */
int buffer_read(PyObject *object, Draft *draft, Py_buffer **exported);
PyObject *adopt_buffer(PyObject *module, PyObject *const *arguments, Py_ssize_t n); /* type, object, stream, transfer, of Python's */
extern PyMethodDef buffer_import_functions[];

#endif
