/* Asking an object for a tensor. */
#ifndef HAMR_PROTOCOLS_DLPACK_ASK_H
#define HAMR_PROTOCOLS_DLPACK_ASK_H

#include "base/python.h"

int dlpack_ask_setup(void);
PyObject *adopt_dlpack(PyObject *module, PyObject *const *arguments, Py_ssize_t n); /* type, object, stream, transfer, wait, of Python's, and more */
extern PyMethodDef dlpack_functions[];

#endif
