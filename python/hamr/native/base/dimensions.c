#include "base/dimensions.h"

#include "base/python.h"
#include "hamr/functions.h"

int read_dimensions(PyObject *tuple, const char *name, int64_t *values) {
    if (!PyTuple_Check(tuple)) return RAISE(PyExc_TypeError, "%s is %R: accepted is a tuple of int", name, tuple);
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n > HAMR_MAX_DIMENSIONS)
        return RAISE(PyExc_ValueError, "%s has %zd dimensions: at most %d are supported", name, n, HAMR_MAX_DIMENSIONS);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        long long value = PyLong_AsLongLong(item);
        if (value == -1 && PyErr_Occurred()) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError))
                PyErr_Format(PyExc_ValueError, "%s is %R: entry %R does not fit in 64 bits", name, tuple, item);
            else
                PyErr_Format(PyExc_TypeError, "%s is %R: accepted is a tuple of int", name, tuple);
            return -1;
        }
        values[i] = value;
    }
    return (int)n;
}
