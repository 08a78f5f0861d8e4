/* Many objects of the store at once: all or, after an exception, none. */
#include "store/several.h"

#include <string.h>

#include "array/array.h"
#include "array/snapshot.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/relief.h"
#include "plain/layout.h"
#include "store/call.h"
#include "store/object.h"
#include "store/owned.h"

/* Lists of Python's, as the core takes them. */
typedef struct {
    Py_ssize_t n;
    hamr_store_id *ids;
    hamr_store_text *names; /* whose texts the list keeps */
    Array **sources;        /* pinned */
    hamr_array **arrays;
    Draft *drafts;
    uint64_t *tokens;
} Several;

static int several_begin(Several *several, PyObject *list) {
    if (!PyList_Check(list)) return RAISE(PyExc_TypeError, "%R is no list", list);
    size_t n = (size_t)(several->n = PyList_Size(list));
    several->ids = PyMem_Calloc(n + 1, sizeof *several->ids);
    several->names = PyMem_Calloc(n + 1, sizeof *several->names);
    several->sources = PyMem_Calloc(n + 1, sizeof *several->sources);
    several->arrays = PyMem_Calloc(n + 1, sizeof *several->arrays);
    several->drafts = PyMem_Calloc(n + 1, sizeof *several->drafts);
    several->tokens = PyMem_Calloc(n + 1, sizeof *several->tokens);
    if (several->ids && several->names && several->sources && several->arrays && several->drafts && several->tokens)
        return 0;
    return PyErr_NoMemory(), -1;
}

static void several_end(Several *several) {
    Raised raised = raised_take();
    for (Py_ssize_t i = 0; several->sources && i < several->n; i++) Py_XDECREF((PyObject *)several->sources[i]);
    PyMem_Free(several->ids);
    PyMem_Free(several->names);
    PyMem_Free(several->sources);
    PyMem_Free(several->arrays);
    PyMem_Free(several->drafts);
    PyMem_Free(several->tokens);
    raised_restore(raised);
}

/* The names of a list, of which None is none. */
static int read_names(Several *several, PyObject *list) {
    if (!PyList_Check(list) || PyList_Size(list) != several->n)
        return RAISE(PyExc_ValueError, "%R is no list of %zd", list, several->n);
    for (Py_ssize_t i = 0; i < several->n; i++) {
        PyObject *name = PyList_GetItem(list, i);
        Py_ssize_t bytes = 0;
        if (name == Py_None) continue;
        if (!(several->names[i].text = PyUnicode_AsUTF8AndSize(name, &bytes))) return -1;
        several->names[i].bytes = bytes;
    }
    return 0;
}

/* store_get_many(type, leases, session, ids, names) */
static PyObject *get_many(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Leasing leasing = {0};
    Several several = {0};
    StoreCall *call = &leasing.call;
    PyObject *leases, *ids, *names, *made = NULL;
    if (!PyArg_ParseTuple(arguments, "OO!OO!O:store_get_many", &leasing.type, &PyList_Type, &leases, &leasing.session,
                          &PyList_Type, &ids, &names) ||
        several_begin(&several, leases) < 0 || read_names(&several, names) < 0)
        goto end;
    if (PyList_Size(ids) != several.n) {
        PyErr_SetString(PyExc_ValueError, "the lists differ in length");
        goto end;
    }
    for (Py_ssize_t i = 0; i < several.n; i++) {
        draft_start(&several.drafts[i]);
        several.arrays[i] = &several.drafts[i].array;
        if (!several.names[i].bytes && id_read(PyList_GetItem(ids, i), &several.ids[i]) < 0) goto end;
    }
    if (!is_array_type(leasing.type) || store_call_read(call, &leasing.session, 1, "t") < 0) goto end;
    call->how |= HAMR_LENT;
    STORE_CALL(*call, get_objects, call->token, several.n, several.names, several.ids, several.arrays, several.tokens);
    Py_ssize_t at = 0;
    if (!call->error) made = PyList_New(several.n);
    for (; made && at < several.n; at++) {
        leasing.object = PyList_GetItem(leases, at);
        if (!(leasing.lease = owned_of(leasing.object))) break;
        call->id = several.ids[at], leasing.token = several.tokens[at], leasing.sealed = 1;
        several.tokens[at] = 0;
        PyObject *array = object_lent(&leasing, &several.drafts[at]);
        if (!array || PyList_SetItem(made, at, array) < 0) Py_CLEAR(made);
    }
    if (made && at < several.n) Py_CLEAR(made);
    /* Without an error they are a failure's of Python's; with one, those of a call that was stopped. */
    int ours = !made && (!call->error || store_call_made(call));
    for (Py_ssize_t i = 0; ours && i < several.n; i++)
        if (several.tokens[i]) call->functions->end_object(several.tokens[i]);
    if (call->error) store_call_raise(call, NULL);
end:
    several_end(&several);
    return made;
}

/* An Owned that keeps a list of what untaken returns. */
static PyObject *all_untaken(StoreCall *call, const Several *several, PyObject *keeps) {
    static const hamr_store_id none;
    int are = several->n && memcmp(several->ids, &none, sizeof none) != 0;
    if (call->error && !(are && store_call_made(call))) return store_call_raise(call, NULL);
    PyObject *made = PyList_New(several->n);
    for (Py_ssize_t i = 0; i < several->n; i++) {
        Owned *self = made ? owned_new() : NULL;
        if (self) {
            owned_begin(self, OWNS_UNTAKEN, call->token, keeps);
            self->id = several->ids[i];
            PyList_SetItem(made, i, (PyObject *)self);
        } else {
            call->functions->discard_object(call->token, &several->ids[i]);
            Py_CLEAR(made);
        }
    }
    Owned *all = made && !call->error ? owned_new() : NULL;
    if (all) owned_begin(all, OWNS_NOTHING, 0, made);
    Py_XDECREF(made);
    return call->error ? store_call_raise(call, NULL) : (PyObject *)all;
}

/* store_put_many(session, arrays, names, allocator, device, flags, metadata) */
static PyObject *put_many(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *session, *list, *names, *device, *made = NULL;
    int allocator, begun = 0;
    int32_t where;
    unsigned flags;
    const char *text;
    Py_ssize_t bytes;
    StoreCall call;
    Several several = {0};
    if (!PyArg_ParseTuple(arguments, "OO!O!iOIz#:store_put_many", &session, &PyList_Type, &list, &PyList_Type, &names,
                          &allocator, &device, &flags, &text, &bytes) ||
        read_int32(device, "device", &where) < 0 || several_begin(&several, list) < 0 ||
        read_names(&several, names) < 0)
        goto end;
    for (Py_ssize_t i = 0; i < several.n; i++) {
        PyObject *array = PyList_GetItem(list, i);
        if (!array || !is_array(array) || !(several.sources[i] = array_pin((Array *)array)) ||
            object_settle(several.sources[i]) < 0)
            goto end;
        several.arrays[i] = &several.sources[i]->array;
    }
    Relief relief = relief_begin();
    do {
        memset(several.ids, 0, (size_t)several.n * sizeof *several.ids);
        begun = store_call_read(&call, &session, 1, "t") == 0;
        if (!begun) break;
        STORE_CALL(call, put_objects, call.token, several.n, several.arrays, allocator, where, flags, text,
                   (size_t)bytes, several.names, several.ids);
    } while (call.error && core_relieves(&relief, &call.error, NULL));
    relief_end(&relief);
    if (begun) made = all_untaken(&call, &several, session);
end:
    several_end(&several);
    return made;
}

/* store_delete_many(session, ids, force) */
static PyObject *delete_many(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *session, *list, *done = NULL;
    int force;
    StoreCall call;
    Several several = {0};
    if (!PyArg_ParseTuple(arguments, "OO!p:store_delete_many", &session, &PyList_Type, &list, &force) ||
        several_begin(&several, list) < 0)
        goto end;
    for (Py_ssize_t i = 0; i < several.n; i++)
        if (id_read(PyList_GetItem(list, i), &several.ids[i]) < 0) goto end;
    if (store_call_read(&call, &session, 1, "t") < 0) goto end;
    STORE_CALL(call, delete_objects, call.token, several.ids, several.n, force);
    done = call.error ? store_call_raise(&call, NULL) : Py_NewRef(Py_None);
end:
    several_end(&several);
    return done;
}

PyMethodDef several_functions[] = {
    {"store_get_many", get_many, METH_VARARGS,
     "store_get_many(type, leases, session, ids, names) -> list of arrays as of store_get, each of an id, or of a name "
     "where that is not None."},
    {"store_put_many", put_many, METH_VARARGS,
     "store_put_many(session, arrays, names, allocator, device, flags, metadata) -> Owned, as of store_put, of a list "
     "of ids. A name may be None."},
    {"store_delete_many", delete_many, METH_VARARGS, "store_delete_many(session, ids, force)"},
    {NULL, NULL, 0, NULL},
};
