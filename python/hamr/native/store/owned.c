/* A handler of a signal may raise an exception between any two steps of Python code, also of a
 * finaliser. What ends something must not be Python code, then: it is the end of this object. */
#include "store/owned.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <structmember.h>

#include "base/containers.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"

/* Where the memory of some lies, by address and number: an object that is had twice is twice there. */
typedef struct {
    uint64_t address, nbytes, number;
    PyObject *reference; /* a weak one */
} Region;

static PyTypeObject *owned_type;
static Region *regions;
static size_t region_count, region_room;

static PyTypeObject *id_type; /* or NULL: hamr.store was not imported, and nobody asks */

enum { BYTES = sizeof(hamr_store_id) };

PyObject *id_new(const hamr_store_id *id) {
    static const char hexadecimal[] = "0123456789abcdef";
    char digits[2 * BYTES];
    for (int i = 0; i < BYTES; i++) {
        digits[2 * i] = hexadecimal[id->bytes[i] >> 4];
        digits[2 * i + 1] = hexadecimal[id->bytes[i] & 15];
    }
    PyObject *arguments = Py_BuildValue("(s#)", digits, (Py_ssize_t)sizeof digits);
    if (!arguments || !id_type) return arguments;
    newfunc make = (newfunc)PyType_GetSlot(&PyUnicode_Type, Py_tp_new);
    PyObject *made = make(id_type, arguments, NULL);
    Py_DECREF(arguments);
    return made;
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int id_read(PyObject *digits, hamr_store_id *id) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(digits, &size);
    if (!text) return -1;
    int fits = size == 2 * BYTES;
    for (int i = 0; fits && i < BYTES; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        fits = high >= 0 && low >= 0;
        id->bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (fits) return 0;
    return RAISE(PyExc_ValueError, "id is %R: accepted are %d hexadecimal digits", digits, 2 * BYTES);
}

/* store_classes(id, exceptions) */
static PyObject *set_classes(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *type, *exceptions;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyType_Type, &type, &exceptions)) return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyUnicode_Type))
        return PyErr_Format(PyExc_TypeError, "%R is no class of texts", type);
    if (core_raise_of_store_as(exceptions) < 0) return NULL;
    replace_reference((PyObject **)&id_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

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
        if (!grown) return PyErr_NoMemory(), -1;
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

/* NULL, or an error. A forked child has no part in what is its parent's. */
static hamr_error *end_once(Owned *self) {
    OwnedKind kind = self->kind;
    hamr_error *error = NULL;
    self->kind = OWNS_NOTHING;
    if (kind == OWNS_NOTHING || self->generation != core_generation) return NULL;
    const hamr_store_functions *store = core_functions()->store;
    uint64_t number = self->number;
    hamr_store_id id = self->id;
    Py_BEGIN_ALLOW_THREADS
    switch (kind) {
    case OWNS_SERVER: error = store->end_server(number); break;
    case OWNS_SESSION: error = store->disconnect(number); break;
    case OWNS_OBJECT: store->end_object(number); break;
    case OWNS_EVENTS: store->end_events(number); break;
    case OWNS_UNTAKEN: store->discard_object(number, &id); break;
    case OWNS_NOTHING: break;
    }
    Py_END_ALLOW_THREADS
    return error;
}

static void owned_dealloc(PyObject *object) {
    Owned *self = (Owned *)object;
    Raised raised = raised_take();
    forget(self);
    free(end_once(self));
    Py_XDECREF(self->path);
    Py_XDECREF(self->keeps);
    raised_restore(raised);
    type_free(object);
}

Owned *owned_of(PyObject *object) {
    Owned *self = (Owned *)object;
    if (!PyObject_TypeCheck(object, owned_type)) return PyErr_Format(PyExc_TypeError, "%R is no Owned", object), NULL;
    if (self->generation) return PyErr_Format(PyExc_ValueError, "%R owns something already", object), NULL;
    return self;
}

Owned *owned_lease(PyObject *object) {
    Owned *self = (Owned *)object;
    if (PyObject_TypeCheck(object, owned_type) && self->keeps) return self;
    return PyErr_Format(PyExc_TypeError, "%R is no lease", object), NULL;
}

Owned *owned_new(void) { return type_allocate(owned_type); }

void owned_begin(Owned *self, OwnedKind kind, uint64_t number, PyObject *keeps) {
    self->kind = kind;
    self->number = number;
    self->generation = core_generation;
    self->keeps = Py_XNewRef(keeps);
}

int owned_read(PyObject *object, uint64_t *number) {
    if (PyObject_TypeCheck(object, owned_type)) {
        const Owned *self = (const Owned *)object;
        *number = self->kind != OWNS_NOTHING && self->generation == core_generation ? self->number : 0;
        return 0;
    }
    *number = PyLong_AsUnsignedLongLong(object);
    return *number == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

int owned_lies_at(Owned *self, uint64_t address, uint64_t nbytes) {
    self->address = address;
    self->nbytes = nbytes;
    if (!nbytes || remember(self) == 0) return 0;
    self->nbytes = 0;
    return -1;
}

static PyObject *end(PyObject *object, PyObject *Py_UNUSED(unused)) {
    hamr_error *error = end_once((Owned *)object);
    if (!error) Py_RETURN_NONE;
    return core_failed(error);
}

static PyObject *is_here(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return PyBool_FromLong(((Owned *)object)->generation == core_generation);
}

static PyObject *get_number(PyObject *object, void *Py_UNUSED(closure)) {
    const Owned *self = (const Owned *)object;
    return PyLong_FromUnsignedLongLong(self->kind == OWNS_NOTHING ? 0 : self->number);
}

static PyObject *get_id(PyObject *object, void *Py_UNUSED(closure)) {
    return id_new(&((const Owned *)object)->id);
}

static PyObject *take_all(PyObject *list) {
    PyObject *ids = PyList_New(0);
    for (Py_ssize_t i = 0; ids && i < PyList_Size(list); i++) list_put(&ids, get_id(PyList_GetItem(list, i), NULL));
    for (Py_ssize_t i = 0; ids && i < PyList_Size(list); i++) {
        Owned *self = (Owned *)PyList_GetItem(list, i);
        if (self->kind == OWNS_UNTAKEN) self->kind = OWNS_NOTHING;
    }
    return ids;
}

/* CPython handles no signal between this and the return of the function that asks for it. After a call it does. */
static PyObject *get_taken(PyObject *object, void *closure) {
    Owned *self = (Owned *)object;
    if (self->keeps && PyList_Check(self->keeps)) return take_all(self->keeps);
    PyObject *id = get_id(object, closure);
    if (id && self->kind == OWNS_UNTAKEN) self->kind = OWNS_NOTHING;
    return id;
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
static PyObject *owned_at(PyObject *Py_UNUSED(module), PyObject *number) {
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
    {"store_classes", set_classes, METH_VARARGS,
     "store_classes(id, exceptions): what ids are, and the kinds of the store's errors, in order."},
    {"owned_at", owned_at, METH_O, "owned_at(address) -> the Owned in whose memory an address lies, or None."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef methods[] = {
    {"_end", end, METH_NOARGS, "_end(): end it now."},
    {"_is_here", is_here, METH_NOARGS, "_is_here() -> bool: whether it is this process's own, and not its parent's."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_token", get_number, NULL, "The core's number; 0 before there is one, and once it has ended.", NULL},
    {"id", get_id, NULL, "The object's.", NULL},
    {"_taken", get_taken, NULL,
     "The id of an object that goes again with this one, or the ids of several; from now on they do not.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"path", T_OBJECT, offsetof(Owned, path), READONLY, "Where the server listens."},
    {"address", T_ULONGLONG, offsetof(Owned, address), READONLY, "Where a lease's memory is."},
    {"nbytes", T_ULONGLONG, offsetof(Owned, nbytes), READONLY, "How many bytes it has."},
    {"sealed", T_BOOL, offsetof(Owned, sealed), READONLY, "Whether a lease's object is sealed."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_dealloc, owned_dealloc},
    {Py_tp_doc, "Something of the core's store, which ends with this object."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Owned",
    .basicsize = sizeof(Owned),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int owned_setup(PyObject *module) {
    return type_add(module, &owned_type, &spec, NULL);
}
