#include "base/numbers.h"

#include "base/python.h"

int read_int32(PyObject *value, const char *name, int32_t *into) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (number == -1 && !overflow && PyErr_Occurred()) return -1;
    *into = (int32_t)number;
    if (!overflow && *into == number) return 0;
    return RAISE(PyExc_ValueError, "%s is %R: accepted are numbers that fit in 32 bits", name, value);
}

/* index(value) -> int */
static PyObject *index_of(PyObject *Py_UNUSED(module), PyObject *value) {
    return PyNumber_Index(value);
}

PyMethodDef number_functions[] = {
    {"index", index_of, METH_O,
     "index(value) -> int: as operator.index, whose module takes longer to import than its use."},
    {NULL, NULL, 0, NULL},
};
