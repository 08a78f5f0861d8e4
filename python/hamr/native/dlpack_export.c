#include "native.h"

PyObject *array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    (void)self, (void)arguments, (void)n, (void)names;
    return PyErr_Format(PyExc_BufferError, "not written yet");
}

PyObject *array_dlpack_device(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyErr_Format(PyExc_BufferError, "not written yet");
}
