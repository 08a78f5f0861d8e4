/* What other libraries export by the buffer protocol as arrays. */
#pragma once

#include "base/python.h"
#include "plain/layout.h"

/* Describes at draft, which was started, what an object exports, and makes a view of it: 1. 0: it exports nothing, or
 * elements that are not ours. -1, with an exception. */
int buffer_read(PyObject *object, Draft *draft, Py_buffer **exported);
/* Arguments: type, object, stream, transfer. */
PyObject *adopt_buffer(PyObject *module, PyObject *const *arguments, Py_ssize_t n);
extern PyMethodDef buffer_import_functions[];
