#include "native.h"

PyObject *array_arrow(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    (void)self, (void)arguments, (void)n, (void)names;
    return PyErr_Format(PyExc_TypeError, "not written yet");
}

PyObject *array_arrow_device(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    (void)self, (void)arguments, (void)n, (void)names;
    return PyErr_Format(PyExc_TypeError, "not written yet");
}
