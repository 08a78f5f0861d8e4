#include "base/heap_type.h"

#include <string.h>

#include "base/exclusive.h"
#include "base/python.h"

int type_add(PyObject *module, PyTypeObject **type, PyType_Spec *spec, PyTypeObject *base) {
    if (!*type && !(*type = (PyTypeObject *)exclusive_type(module, spec, (PyObject *)base))) return -1;
    return PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, (PyObject *)*type);
}

void *type_allocate(PyTypeObject *type) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return allocate(type, 0);
}

void type_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}
