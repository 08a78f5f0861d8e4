/* What other libraries export by the buffer protocol as arrays. */
#ifndef HAMR_PROTOCOLS_BUFFER_IMPORT_H
#define HAMR_PROTOCOLS_BUFFER_IMPORT_H

#include "base/python.h"

PyObject *adopt_buffer(PyObject *module, PyObject *const *arguments, Py_ssize_t n); /* type, object, stream, transfer, of Python's */
extern PyMethodDef buffer_import_functions[];

#endif
