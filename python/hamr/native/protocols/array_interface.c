#include "protocols/array_interface.h"

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"

/* The integers of a tuple of any length; NULL, with an exception. */
static int64_t *integers_of(PyObject *tuple) {
    Py_ssize_t n = PyTuple_Size(tuple);
    int64_t *values = n < 0 ? NULL : PyMem_Malloc(((size_t)n + 1) * sizeof *values);
    if (n >= 0 && !values) PyErr_NoMemory();
    for (Py_ssize_t i = 0; values && i < n; i++) {
        values[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (values[i] != -1 || !PyErr_Occurred()) continue;
        PyMem_Free(values);
        return NULL;
    }
    return values;
}

/* check_interface(typestr, shape, strides, pointer, offset, length, masked, version) */
static PyObject *check_interface(PyObject *Py_UNUSED(module), PyObject *arguments) {
    hamr_interface interface = {0};
    unsigned long long pointer;
    long long offset, length, version;
    int masked;
    int32_t element = 0;
    PyObject *shape, *strides;
    if (!PyArg_ParseTuple(arguments, "sO!OKLLpL", &interface.typestr, &PyTuple_Type, &shape, &strides, &pointer,
                          &offset, &length, &masked, &version))
        return NULL;
    if (strides != Py_None && !PyTuple_Check(strides))
        return PyErr_Format(PyExc_TypeError, "strides is %R: accepted is a tuple of int", strides);
    int64_t *sizes = integers_of(shape), *steps = sizes && strides != Py_None ? integers_of(strides) : NULL;
    hamr_error *error = NULL;
    /* Only now: an entry's __index__ may fork. */
    if (sizes && !PyErr_Occurred() && core_load() == 0) {
        interface.shape = sizes;
        interface.strides = steps;
        interface.shape_length = PyTuple_Size(shape);
        interface.strides_length = steps ? PyTuple_Size(strides) : 0;
        interface.pointer = pointer;
        interface.offset = offset;
        interface.length = length;
        interface.masked = masked;
        interface.version = version;
        error = core_functions()->check_interface(&interface, &element);
    }
    PyMem_Free(sizes);
    PyMem_Free(steps);
    if (error) core_raise(error);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(element);
}

PyMethodDef array_interface_functions[] = {
    {"check_interface", check_interface, METH_VARARGS,
     "check_interface(typestr, shape, strides, pointer, offset, length, masked, version) -> element: the rules of the "
     "array interface. length is -1 where data is a pointer."},
    {NULL, NULL, 0, NULL},
};
