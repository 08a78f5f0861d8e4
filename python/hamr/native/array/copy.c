#include "array/copy.h"

#include "array/array.h"
#include "base/python.h"

static PyTypeObject *buffer_type;

PyTypeObject *copy_type(void) {
    if (!buffer_type) PyErr_SetString(PyExc_RuntimeError, "hamr is not initialised");
    return buffer_type;
}

Array *array_copy(Array *source, int32_t allocator, int32_t device) {
    if (!copy_type()) return NULL;
    PyObject *buffer = array_snapshot(source, buffer_type);
    PyObject *copy = buffer ? PyObject_CallMethod(buffer, "copy", "ii", (int)allocator, (int)device) : NULL;
    Py_XDECREF(buffer);
    if (!copy || PyObject_TypeCheck(copy, array_type)) return (Array *)copy;
    PyErr_Format(PyExc_TypeError, "copy() of %R returned %R: expected a Buffer", (PyObject *)buffer_type, copy);
    Py_DECREF(copy);
    return NULL;
}

static PyObject *set_buffer_type(PyObject *module, PyObject *type) {
    (void)module;
    if (!is_array_type(type)) return NULL;
    PyObject *old = (PyObject *)buffer_type;
    buffer_type = (PyTypeObject *)Py_NewRef(type);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef copy_functions[] = {
    {"set_buffer_type", set_buffer_type, METH_O, "set_buffer_type(type): what copies are, and what stands for tensors that C hands over."},
    {NULL, NULL, 0, NULL},
};
