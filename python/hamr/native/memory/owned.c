/* A handler of a signal may raise an exception between any two steps of Python code, also of a
 * finaliser. What ends something must not be Python code, then: it is the end of this object. */
#include "memory/owned.h"

#include <stdlib.h>
#include <string.h>

#include "base/exclusive.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "core/core.h"

typedef struct {
    PyObject_HEAD
    PyObject *end;   /* the core's function that ends it; NULL: there is nothing to end */
    PyObject *keeps; /* what must not go before that, or NULL */
    uint64_t number, generation;
    uint64_t address, nbytes; /* where its memory lies; no bytes: nowhere */
} Owned;

/* Where the memory of some lies, by address and number: an object that is had twice is twice there. */
typedef struct {
    uint64_t address, nbytes, number;
    PyObject *reference; /* a weak one */
} Region;

static PyTypeObject *owned_type;
static Region *regions;
static size_t region_count, region_room;

/* The first region that is not before an address and a number. */
static size_t first_from(uint64_t address, uint64_t number) {
    size_t low = 0, high = region_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const Region *region = &regions[middle];
        if (region->address < address || (region->address == address && region->number < number)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int remember(Owned *self) {
    if (region_count == region_room) {
        size_t room = region_room ? 2 * region_room : 64;
        Region *grown = realloc(regions, room * sizeof *grown);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        regions = grown;
        region_room = room;
    }
    PyObject *reference = PyWeakref_NewRef((PyObject *)self, NULL);
    if (!reference) return -1;
    size_t at = first_from(self->address, self->number);
    memmove(&regions[at + 1], &regions[at], (region_count - at) * sizeof *regions);
    regions[at] = (Region){self->address, self->nbytes, self->number, reference};
    region_count++;
    return 0;
}

static void forget(Owned *self) {
    if (!self->nbytes) return;
    size_t at = first_from(self->address, self->number);
    self->nbytes = 0;
    PyObject *reference = regions[at].reference;
    region_count--;
    memmove(&regions[at], &regions[at + 1], (region_count - at) * sizeof *regions);
    Py_DECREF(reference);
}

/* What the core's function returns, NULL with an exception. */
static PyObject *end_once(Owned *self) {
    PyObject *end = self->end, *told;
    if (!end) Py_RETURN_NONE;
    self->end = NULL;
    /* A forked child has no part in what is its parent's. */
    told = self->generation == core_generation ? PyObject_CallFunction(end, "K", (unsigned long long)self->number) : Py_NewRef(Py_None);
    Py_DECREF(end);
    return told;
}

static void owned_dealloc(PyObject *object) {
    Owned *self = (Owned *)object;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    forget(self);
    PyObject *told = end_once(self);
    if (!told) PyErr_WriteUnraisable((PyObject *)Py_TYPE(object));
    Py_XDECREF(told);
    Py_XDECREF(self->keeps);
    PyErr_Restore(type, value, traceback);
    type_free(object);
}

/* own(number, end, keeps) */
static PyObject *own(PyObject *object, PyObject *arguments) {
    Owned *self = (Owned *)object;
    unsigned long long number;
    PyObject *end, *keeps;
    if (!PyArg_ParseTuple(arguments, "KOO", &number, &end, &keeps)) return NULL;
    if (self->end || self->keeps) return PyErr_Format(PyExc_ValueError, "it owns %llu already", (unsigned long long)self->number);
    self->number = number;
    self->generation = core_generation;
    self->end = Py_NewRef(end);
    self->keeps = Py_NewRef(keeps);
    Py_RETURN_NONE;
}

static PyObject *lies_at(PyObject *object, PyObject *arguments) {
    Owned *self = (Owned *)object;
    unsigned long long address, nbytes;
    if (!PyArg_ParseTuple(arguments, "KK", &address, &nbytes)) return NULL;
    forget(self);
    self->address = address;
    self->nbytes = nbytes;
    if (nbytes && remember(self) < 0) {
        self->nbytes = 0;
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *object, PyObject *unused) {
    (void)unused;
    return end_once((Owned *)object);
}

static PyObject *is_here(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(((Owned *)object)->generation == core_generation);
}

static PyObject *get_number(PyObject *object, void *closure) {
    const Owned *self = (const Owned *)object;
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->end ? self->number : 0);
}

static PyObject *get_generation(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLongLong(((const Owned *)object)->generation);
}

/* A new reference, or NULL. */
static PyObject *referent(PyObject *reference) {
#ifdef Py_GIL_DISABLED
    PyObject *found;
    return PyWeakref_GetRef(reference, &found) > 0 ? found : NULL;
#else
    PyObject *found = PyWeakref_GetObject(reference);
    return found == Py_None ? NULL : Py_XNewRef(found);
#endif
}

/* Whose memory an address lies in. */
static PyObject *owned_at(PyObject *module, PyObject *number) {
    (void)module;
    uint64_t address = PyLong_AsUnsignedLongLong(number);
    if (address == UINT64_MAX && PyErr_Occurred()) return NULL;
    size_t at = first_from(address, UINT64_MAX);
    for (uint64_t start = at ? regions[at - 1].address : 0; at && regions[at - 1].address == start; at--) {
        const Region *region = &regions[at - 1];
        PyObject *found = address - start < region->nbytes ? referent(region->reference) : NULL;
        if (found) return found;
    }
    Py_RETURN_NONE;
}

PyMethodDef owned_functions[] = {
    {"owned_at", owned_at, METH_O, "owned_at(address) -> the Owned in whose memory an address lies, or None."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef methods[] = {
    {"_own", own, METH_VARARGS, "_own(number, end, keeps): end(number) is called once, in this process alone, when this object ends; keeps stays until then."},
    {"_lies_at", lies_at, METH_VARARGS, "_lies_at(address, nbytes): where the memory is, for owned_at."},
    {"_end", end, METH_NOARGS, "_end(): end it now; what the function has returned, None where there is nothing to end."},
    {"_is_here", is_here, METH_NOARGS, "_is_here() -> bool: whether it is this process's own, and not its parent's."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_token", get_number, NULL, "The number; 0 once it has ended.", NULL},
    {"_generation", get_generation, NULL, "That of the process that it is of.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_dealloc, owned_dealloc},
    {Py_tp_doc, "Something of the core's, which ends with this object: its class is a subclass."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Owned",
    .basicsize = sizeof(Owned),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int owned_setup(PyObject *module) {
    if (!owned_type && !(owned_type = (PyTypeObject *)exclusive_type(module, &spec, NULL))) return -1;
    return PyModule_AddObjectRef(module, "Owned", (PyObject *)owned_type);
}
