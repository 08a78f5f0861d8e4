/* What is known of each allocator: the rows of backends/allocator.go. Nothing else here
 * asks for one by name, save where a vendor's own interface is read. */
#include "base/allocators.h"

#include "base/python.h"

#define FACTS(allocator, number, name, backend, kind, reach, shared, ordered, device, mapped, opaque, exportable) \
    [allocator] = {name, backend, kind, reach, shared, ordered, device, mapped, exportable},

const AllocatorFacts allocator_table[HAMR_ALLOCATOR_COUNT] = {HAMR_ALLOCATOR_FACTS(FACTS)};

_Static_assert((int)HAMR_ALLOCATOR_COUNT <= (int)HAMR_ALLOCATORS, "tables by allocator are too short");

/* allocator_table() -> [(name, kind, reach, ordered, DLPack's device, backend, exportable, shared)] by number. */
static PyObject *table(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < HAMR_ALLOCATOR_COUNT; i++) {
        const AllocatorFacts *facts = &allocator_table[i];
        PyObject *row = Py_BuildValue("(siiiisOi)", facts->name, facts->kind, facts->reach, facts->ordered, facts->dlpack, facts->backend,
                                      facts->exportable ? Py_True : Py_False, facts->shared);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

#define SPACE(space, number, name, code) , #name

/* space_names() -> [name] by number. */
static PyObject *space_names(PyObject *module, PyObject *unused) {
    static const char *const names[] = {"host" HAMR_DEVICE_SPACES(SPACE)};
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sizeof names / sizeof *names; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

PyMethodDef allocator_functions[] = {
    {"space_names", space_names, METH_NOARGS, "space_names(): the name of each space, by number."},
    {"allocator_table", table, METH_NOARGS, "allocator_table(): (name, kind, reach, ordered, DLPack's device type, backend, exportable, shared) of each allocator."},
    {NULL, NULL, 0, NULL},
};
