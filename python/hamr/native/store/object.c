#include "store/object.h"

#include <stdlib.h>
#include <string.h>

#include "array/adopt.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "array/wait.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/relief.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"
#include "store/call.h"
#include "store/owned.h"

static PyObject *source_name;

int object_setup(void) {
    if (!source_name) source_name = PyUnicode_InternFromString("store");
    return source_name ? 0 : -1;
}

/* True or False, also NumPy's. */
static int read_flag(PyObject *value, const char *name, int *on) {
    PyObject *type = PyType_GetName(Py_TYPE(value));
    if (!type) return -1;
    int fits = !PyUnicode_CompareWithASCIIString(type, "bool_") || !PyUnicode_CompareWithASCIIString(type, "bool");
    Py_DECREF(type);
    if (fits) return *on = PyObject_IsTrue(value);
    return RAISE(PyExc_TypeError, "%s is %R: accepted are True and False", name, value);
}

/* store_flags(evictable, pinned, separate, session) */
static PyObject *flags_of(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    static const char *const names[] = {"evictable", "pinned", "separate", "session"};
    static const int bits[] = {HAMR_STORE_EVICTABLE, HAMR_STORE_PINNED, HAMR_STORE_SEPARATE, HAMR_STORE_SESSION};
    int flags = 0;
    if (arity(n, 4, "store_flags") < 0) return NULL;
    for (int i = 0; i < 4; i++) {
        int on = arguments[i] == Py_True;
        if (!PyBool_Check(arguments[i]) && read_flag(arguments[i], names[i], &on) < 0) return NULL;
        flags |= on ? bits[i] : 0;
    }
    return PyLong_FromLong(flags);
}

static int read_shape(PyObject *shape, hamr_array *array) {
    Py_ssize_t n = PyTuple_Size(shape);
    if (n > HAMR_MAX_DIMENSIONS)
        return RAISE(PyExc_ValueError, "shape has %zd dimensions; at most %d are supported", n, HAMR_MAX_DIMENSIONS);
    array->ndim = (int32_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        int overflow;
        array->shape[i] = PyLong_AsLongLongAndOverflow(PyTuple_GetItem(shape, i), &overflow);
        if (overflow) PyErr_Format(PyExc_ValueError, "shape is %R: accepted are sizes that fit in 64 bits", shape);
        if (array->shape[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static int begin(Leasing *leasing) {
    if (!is_array_type(leasing->type) || !(leasing->lease = owned_of(leasing->object))) return -1;
    leasing->token = 0, leasing->sealed = 0;
    if (store_call_read(&leasing->call, &leasing->session, 1, "t") < 0) return -1;
    leasing->call.how |= HAMR_LENT;
    return 0;
}

PyObject *object_lent(Leasing *leasing, Draft *draft) {
    hamr_array *array = &draft->array;
    Owned *lease = leasing->lease;
    PyTypeObject *type = (PyTypeObject *)leasing->type;
    owned_begin(lease, OWNS_OBJECT, leasing->token, leasing->session);
    lease->path = PyObject_GetAttrString(leasing->session, "path");
    lease->id = leasing->call.id;
    lease->sealed = leasing->sealed != 0;
    uint64_t nbytes = (uint64_t)array_count(array) * (uint64_t)element_facts(array->element)->size;
    int is_private = leasing->call.how & HAMR_PRIVATE && !(array->flags & HAMR_READ_ONLY); /* no place of the store's */
    if (!lease->path || (!is_private && owned_lies_at(lease, array->pointer, nbytes) < 0)) return NULL;
    Owner *owner = owner_new((PyObject *)lease, NULL);
    if (!owner) return NULL;
    PyObject *made = is_of_device(array->allocator) ? draft_adopt_mapped(type, draft, owner)
                                                    : draft_adopt_host(type, draft, owner);
    if (made) replace_reference(&((Array *)made)->source, Py_NewRef(source_name));
    return made;
}

/* A failure, after which nobody is to have what was made. */
static PyObject *raise_without(Leasing *leasing) {
    if (leasing->token && store_call_made(&leasing->call)) leasing->call.functions->end_object(leasing->token);
    return store_call_raise(&leasing->call, NULL);
}

static PyObject *create(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Leasing leasing;
    StoreCall *call = &leasing.call;
    hamr_array *array = &leasing.draft.array;
    PyObject *shape, *device;
    unsigned flags;
    const char *text;
    Py_ssize_t bytes;
    draft_start(&leasing.draft);
    if (!PyArg_ParseTuple(arguments, "OOOO!iiOIz#:store_create", &leasing.type, &leasing.object, &leasing.session,
                          &PyTuple_Type, &shape, &array->element, &array->allocator, &device, &flags, &text, &bytes) ||
        read_shape(shape, array) < 0 || read_int32(device, "device", &array->device) < 0 || begin(&leasing) < 0)
        return NULL;
    STORE_CALL(*call, create_object, call->token, array, flags, text, (size_t)bytes, &call->id, &leasing.token);
    return call->error ? raise_without(&leasing) : object_lent(&leasing, &leasing.draft);
}

static PyObject *get(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Leasing leasing;
    PyObject *id;
    int unsafe, is_private;
    long long milliseconds;
    StoreCall *call = &leasing.call;
    draft_start(&leasing.draft);
    if (!PyArg_ParseTuple(arguments, "OOOOppL:store_get", &leasing.type, &leasing.object, &leasing.session, &id,
                          &unsafe, &is_private, &milliseconds) ||
        id_read(id, &call->id) < 0 || begin(&leasing) < 0)
        return NULL;
    if (is_private) call->how |= HAMR_PRIVATE;
    STORE_CALL(*call, get_object, call->token, &call->id, unsafe, milliseconds, &leasing.draft.array, &leasing.token,
               &leasing.sealed);
    if (!call->error) return object_lent(&leasing, &leasing.draft);
    if (!milliseconds || call->error->kind != HAMR_ERROR_TIMEOUT) return raise_without(&leasing);
    free(call->error);
    Py_RETURN_NONE;
}

/* An object that goes again unless somebody takes its id; also one of a call that was stopped and has made it. */
static PyObject *untaken(StoreCall *call, int made, PyObject *keeps) {
    if (call->error && !(made && store_call_made(call))) return store_call_raise(call, NULL);
    Owned *self = owned_new();
    if (self) {
        owned_begin(self, OWNS_UNTAKEN, call->token, keeps);
        self->id = call->id;
    } else {
        call->functions->discard_object(call->token, &call->id);
    }
    if (!call->error) return (PyObject *)self;
    Py_XDECREF((PyObject *)self);
    return store_call_raise(call, NULL);
}

int object_settle(Array *source) {
    int special = source->array.stream && source->array.stream < 16;
    return source->array.flags & HAMR_HOST_REACHABLE || special ? array_wait_pinned(source) : 0;
}

static PyObject *put(PyObject *Py_UNUSED(module), PyObject *arguments) {
    static const hamr_store_id none;
    PyObject *session, *array, *device, *made = NULL;
    int allocator, begun;
    int32_t where;
    unsigned flags;
    const char *text;
    Py_ssize_t bytes;
    StoreCall call;
    if (!PyArg_ParseTuple(arguments, "OOiOIz#:store_put", &session, &array, &allocator, &device, &flags, &text,
                          &bytes) ||
        !is_array(array) || read_int32(device, "device", &where) < 0)
        return NULL;
    Array *source = array_pin((Array *)array);
    if (!source) return NULL;
    hamr_array *given = &source->array;
    if (object_settle(source) == 0) {
        Relief relief = relief_begin();
        do {
            call.id = none;
            begun = store_call_read(&call, &session, 1, "t") == 0;
            if (!begun) break;
            STORE_CALL(call, put_object, call.token, given, allocator, where, flags, text, (size_t)bytes, &call.id);
        } while (call.error && core_relieves(&relief, &call.error, &given->flags));
        relief_end(&relief);
        given->flags &= ~HAMR_OR_PAGEABLE;
        if (begun) made = untaken(&call, memcmp(&call.id, &none, sizeof none) != 0, session);
    }
    Py_DECREF((PyObject *)source);
    return made;
}

static PyObject *seal(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *object;
    int alone;
    uint64_t token;
    int32_t sealed = 0;
    StoreCall call;
    if (!PyArg_ParseTuple(arguments, "Op:store_seal", &object, &alone)) return NULL;
    Owned *lease = owned_lease(object);
    if (!lease || owned_read(object, &token) < 0 || store_call_read(&call, &lease->keeps, 1, "t") < 0) return NULL;
    call.id = lease->id;
    STORE_CALL(call, seal_object, token, alone, NULL, &sealed);
    lease->sealed = sealed != 0;
    return untaken(&call, sealed, object);
}

PyMethodDef object_functions[] = {
    {"store_flags", FAST(flags_of), METH_FASTCALL,
     "store_flags(evictable, pinned, separate, session) -> int: what a new object is to be."},
    {"store_create", create, METH_VARARGS,
     "store_create(type, lease, session, shape, element, allocator, device, flags, metadata) -> array: a new object's "
     "elements, which keep lease, as that keeps session."},
    {"store_get", get, METH_VARARGS,
     "store_get(type, lease, session, id, unsafe, private, milliseconds) -> array: an object's elements, as of "
     "store_create; private, where they can be, for the caller alone to write to. None where there is no sealed one "
     "within so long. 0 does not wait."},
    {"store_put", put, METH_VARARGS,
     "store_put(session, array, allocator, device, flags, metadata) -> Owned: an object of a copy of the elements, "
     "beside them for an allocator of -1. It goes with this unless its id is _taken."},
    {"store_seal", seal, METH_VARARGS,
     "store_seal(lease, alone) -> Owned: as of store_put. alone: nobody else has the elements."},
    {NULL, NULL, 0, NULL},
};
