#include "base/tables.h"

#include "base/containers.h"
#include "base/python.h"
#include "plain/allocators.h"
#include "plain/layout.h"

/* allocator_table() -> [(name, kind, reach, ordered, DLPack's device, backend, exportable, shared)] by number. */
static PyObject *allocators(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < HAMR_ALLOCATOR_COUNT; i++) {
        const AllocatorFacts *facts = &allocator_table[i];
        list_put(&list, Py_BuildValue("(siiiisOi)", facts->name, facts->kind, facts->reach, facts->ordered,
                                             facts->dlpack, facts->backend, facts->exportable ? Py_True : Py_False,
                                             facts->shared));
    }
    return list;
}

#define SPACE(space, number, name, code) , #name

/* space_names() -> [name] by number. */
static PyObject *space_names(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    static const char *const names[] = {"host" HAMR_DEVICE_SPACES(SPACE)};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sizeof names / sizeof *names; i++)
        list_put(&list, PyUnicode_FromString(names[i]));
    return list;
}

/* element_table(): (name, typestr, format, size, DLPack's code) by element number. */
static PyObject *elements(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    const ElementFacts *facts;
    PyObject *list = PyList_New(0);
    for (int32_t i = 1; list && (facts = element_facts(i)); i++)
        list_put(&list, Py_BuildValue("(sszii)", facts->name, facts->typestr, facts->format, facts->size, facts->code));
    return list;
}

PyMethodDef table_functions[] = {
    {"space_names", space_names, METH_NOARGS, "space_names(): the name of each space, by number."},
    {"allocator_table", allocators, METH_NOARGS,
     "allocator_table(): (name, kind, reach, ordered, DLPack's device type, backend, exportable, shared) of each "
     "allocator."},
    {"element_table", elements, METH_NOARGS,
     "element_table(): (name, typestr, format, size, DLPack's code) of each element type."},
    {NULL, NULL, 0, NULL},
};
