#include "core/granting.h"

/* How often the calling thread's hook has had no memory, less what was said of it by a call with -1. */
typedef int (*misses_function)(int by);

enum { HOOK, SLOW, MISSES, ITEMS };

/* hook(size) unless there was no memory: a pointer whose ptr is 0; then slow(size). */
static PyObject *grant(PyObject *self, PyObject *size) {
    PyObject *pointer = PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, HOOK), size, NULL);
    misses_function misses = NULL;
    *(void **)&misses = PyLong_AsVoidPtr(PyTuple_GetItem(self, MISSES));
    if (!pointer || misses(0) == 0) return pointer;
    /* It may be that of a call around this one, in which a finaliser allocates. */
    PyObject *address = PyObject_GetAttrString(pointer, "ptr");
    int there = address ? PyObject_IsTrue(address) : -1, wanted = there == 0 ? PyObject_IsTrue(size) : 1;
    Py_XDECREF(address);
    if (there > 0 || wanted == 0) return pointer;
    Py_DECREF(pointer);
    if (there < 0 || wanted < 0) return NULL;
    misses(-1);
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, SLOW), size, NULL);
}

static PyMethodDef grant_method = {"malloc", grant, METH_O, "malloc(size) -> memory of a library's own kind."};

static PyObject *granting(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *hook, *slow, *misses;
    if (!PyArg_ParseTuple(arguments, "OOO!", &hook, &slow, &PyLong_Type, &misses)) return NULL;
    PyObject *all = PyTuple_Pack(ITEMS, hook, slow, misses);
    if (!all) return NULL;
    PyObject *made = PyCFunction_New(&grant_method, all);
    Py_DECREF(all);
    return made;
}

PyMethodDef granting_methods[] = {
    {"granting", granting, METH_VARARGS,
     "granting(hook, slow, misses) -> malloc: a function that calls hook, and slow where that has had no memory, as "
     "the C function at misses knows."},
    {NULL, NULL, 0, NULL},
};
