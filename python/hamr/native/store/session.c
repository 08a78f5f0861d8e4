#include "store/session.h"

#include <stdlib.h>

#include "array/array.h"
#include "base/containers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/texts.h"
#include "plain/layout.h"
#include "store/call.h"
#include "store/owned.h"

/* What the core gives is C's to free: where a finaliser forks, the child has no core. */

/* Makes an Owned what a call has set; it takes over path. */
static PyObject *begin(Owned *self, OwnedKind kind, uint64_t number, char *path) {
    owned_begin(self, kind, number, NULL);
    replace_reference(&self->path, core_text(path));
    free(path);
    if (!self->path) return NULL;
    Py_RETURN_NONE;
}

static PyObject *serve(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *object;
    hamr_store_options given = {0};
    long long numbers[5];
    uint64_t server;
    char *found;
    if (!PyArg_ParseTuple(arguments, "OssLLLLLp:store_serve", &object, &given.path, &given.spill, &numbers[0],
                          &numbers[1], &numbers[2], &numbers[3], &numbers[4], &given.spill_devices))
        return NULL;
    given.host = numbers[0], given.device = numbers[1], given.ready = numbers[2];
    given.metadata = numbers[3], given.socket = numbers[4];
    Owned *self = owned_of(object);
    if (!self || core_load() < 0) return NULL;
    const hamr_store_functions *store = core_functions()->store;
    hamr_error *error;
    Py_BEGIN_ALLOW_THREADS
    error = store->serve(&given, &server, &found);
    Py_END_ALLOW_THREADS
    if (!error) return begin(self, OWNS_SERVER, server, found);
    return core_failed(error);
}

static PyObject *connect_to(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *object;
    const char *path;
    uint64_t session = 0;
    char *found = NULL;
    StoreCall call;
    if (!PyArg_ParseTuple(arguments, "Os:store_connect", &object, &path)) return NULL;
    Owned *self = owned_of(object);
    if (!self || store_call_begin(&call) < 0) return NULL;
    STORE_CALL(call, connect, path, -1, &session, &found);
    if (!call.error) return begin(self, OWNS_SESSION, session, found);
    if (session && store_call_made(&call)) free(call.functions->disconnect(session));
    return store_call_raise(&call, found);
}

SETTER(pin, mark_object, "tio", call->token, &call->id, HAMR_STORE_PINNED, call->on)
SETTER(set_evictable, mark_object, "tio", call->token, &call->id, HAMR_STORE_EVICTABLE, call->on)

static STORE_FUNCTION(get_name, "tsn") {
    STORE_CALL(*call, get_name, call->token, call->text, call->number, &call->id);
    if (!call->error) return id_new(&call->id);
    if (!call->number || call->error->kind != HAMR_ERROR_TIMEOUT) return store_call_raise(call, NULL);
    free(call->error);
    Py_RETURN_NONE;
}

static STORE_FUNCTION(exists, "ti") {
    int32_t there, sealed;
    STORE_CALL(*call, object_exists, call->token, &call->id, &there, &sealed);
    return call->error ? store_call_raise(call, NULL) : PyBool_FromLong(there);
}

static PyObject *set_of(const hamr_store_id *ids, int64_t n) {
    PyObject *found = PySet_New(NULL);
    for (int64_t i = 0; found && i < n; i++) set_put(&found, id_new(&ids[i]));
    return found;
}

static PyObject *wait_for(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *session, *list, *found = NULL;
    long long count, milliseconds;
    int64_t ready = 0;
    StoreCall call;
    if (!PyArg_ParseTuple(arguments, "OO!LL:store_wait", &session, &PyList_Type, &list, &count, &milliseconds) ||
        store_call_read(&call, &session, 1, "t") < 0)
        return NULL;
    Py_ssize_t n = PyList_Size(list);
    hamr_store_id *ids = calloc(2 * (size_t)n + 1, sizeof *ids);
    if (!ids) return PyErr_NoMemory();
    int read = 0;
    for (Py_ssize_t i = 0; i < n && read == 0; i++) read = id_read(PyList_GetItem(list, i), &ids[i]);
    if (read == 0) {
        STORE_CALL(call, wait_for_objects, call.token, ids, n, count, milliseconds, ids + n, &ready);
        found = call.error ? store_call_raise(&call, NULL) : set_of(ids + n, ready);
    }
    free(ids);
    return found;
}

/* The fields of hamr.store.ObjectInfo in order, of which metadata is still JSON, and why that cannot be read. */
static PyObject *row_of(const hamr_store_object *object) {
    const hamr_store_info *info = &object->info;
    const ElementFacts *facts = element_facts(info->element);
    int readable = object->metadata.bytes && !object->problem;
    PyObject *metadata = readable ? store_text_new(object->metadata) : Py_NewRef(Py_None);
    PyObject *names = PyTuple_New((Py_ssize_t)object->count);
    for (Py_ssize_t i = 0; names && i < object->count; i++)
        tuple_put(&names, i, store_text_new(object->names[i]));
    PyObject *sealed = PyBool_FromLong(info->flags & HAMR_STORE_SEALED);
    PyObject *evictable = PyBool_FromLong(info->flags & HAMR_STORE_EVICTABLE);
    PyObject *pinned = PyBool_FromLong(info->flags & HAMR_STORE_PINNED);
    return Py_BuildValue("(NNsLsNNNLNNN)", id_new(&info->id), array_dimensions(info->shape, info->ndim),
                         facts ? facts->name : "", (long long)info->bytes, object->device, sealed, evictable,
                         pinned, (long long)info->leases, names, metadata, core_text(object->problem));
}

static PyObject *rows_of(const hamr_store_page *page) {
    PyObject *rows = PyList_New(0);
    for (Py_ssize_t i = 0; rows && i < page->count; i++) list_put(&rows, row_of(&page->objects[i]));
    return rows;
}

static STORE_FUNCTION(info, "ti") {
    hamr_store_page *page = NULL;
    STORE_CALL(*call, describe_object, call->token, &call->id, &page);
    if (call->error) return store_call_raise(call, page);
    PyObject *row = row_of(&page->objects[0]);
    free(page);
    return row;
}

static STORE_FUNCTION(list, "tsn") {
    hamr_store_page *page = NULL;
    uint32_t which = HAMR_STORE_LIST_UNSEALED | (call->text.bytes ? HAMR_STORE_LIST_NAMED : 0);
    STORE_CALL(*call, list_objects, call->token, which, call->text, (uint64_t)call->number, 0, &page);
    if (call->error) return store_call_raise(call, page);
    PyObject *found = Py_BuildValue("(NL)", rows_of(page), (long long)page->after);
    free(page);
    return found;
}

static PyObject *memories_of(const hamr_store_report *report) {
    PyObject *all = PyDict_New();
    for (int64_t i = 0; all && i < report->count; i++) {
        const hamr_store_memory *m = &report->memories[i];
        dict_put(&all, m->name, Py_BuildValue("{s:L,s:L,s:L,s:L,s:L}", "limit", (long long)m->limit, "lingering",
                                              (long long)m->lingering, "peak", (long long)m->peak, "ready",
                                              (long long)m->ready, "used", (long long)m->used));
    }
    return all;
}

/* A dictionary, which frees the report. */
static PyObject *figures_of(hamr_store_report *report) {
#define FIGURE(name) #name, (long long)report->name
    static const char format[] = "{s:L,s:L,s:L,s:L,s:N,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}";
    PyObject *all = Py_BuildValue(format, FIGURE(breaches), FIGURE(connections), FIGURE(evicted), FIGURE(leases),
                                  "memory", memories_of(report), FIGURE(names), FIGURE(objects), FIGURE(ready_hits),
                                  FIGURE(ready_misses), FIGURE(refused), FIGURE(requests), FIGURE(restored),
                                  FIGURE(spilled), FIGURE(spills), FIGURE(table), FIGURE(table_limit),
                                  FIGURE(unsealed));
    free(report);
    return all;
}

static STORE_FUNCTION(statistics, "t") {
    hamr_store_report *report = NULL;
    STORE_CALL(*call, store_statistics, call->token, &report);
    return call->error ? store_call_raise(call, report) : figures_of(report);
}

static STORE_FUNCTION(served, "t") {
    hamr_store_report *report = NULL;
    Py_BEGIN_ALLOW_THREADS
    call->error = call->functions->served(call->token, &report);
    Py_END_ALLOW_THREADS
    return call->error ? store_call_raise(call, NULL) : figures_of(report);
}

static PyObject *watch(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *object, *session;
    uint64_t token = 0;
    StoreCall call;
    if (!PyArg_ParseTuple(arguments, "OO:store_watch", &object, &session)) return NULL;
    Owned *self = owned_of(object);
    if (!self || store_call_read(&call, &session, 1, "t") < 0) return NULL;
    STORE_CALL(call, watch_objects, call.token, &token);
    if (token && store_call_made(&call)) call.functions->end_events(token);
    if (call.error) return store_call_raise(&call, NULL);
    owned_begin(self, OWNS_EVENTS, token, session);
    Py_RETURN_NONE;
}

static PyObject *watch_name(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    uint64_t token = 0;
    StoreCall call;
    if (arity(n, 3, "store_watch_name") < 0) return NULL;
    Owned *self = owned_of(arguments[0]);
    if (!self || store_call_read(&call, arguments + 1, n - 1, "ts") < 0) return NULL;
    STORE_CALL(call, watch_name, call.token, call.text, &token);
    if (token && store_call_made(&call)) call.functions->end_events(token);
    if (call.error) return store_call_raise(&call, NULL);
    owned_begin(self, OWNS_EVENTS, token, arguments[1]);
    Py_RETURN_NONE;
}

static STORE_FUNCTION(next_name, "tin") {
    hamr_store_id found;
    STORE_CALL(*call, next_name, call->token, &call->id, call->number, &found);
    if (!call->error) return id_new(&found);
    if (call->error->kind != HAMR_ERROR_TIMEOUT) return store_call_raise(call, NULL);
    free(call->error);
    Py_RETURN_NONE;
}

static STORE_FUNCTION(name_descriptor, "ti") {
    int32_t descriptor;
    Py_BEGIN_ALLOW_THREADS
    call->error = call->functions->name_descriptor(call->token, &call->id, &descriptor);
    Py_END_ALLOW_THREADS
    return call->error ? store_call_raise(call, NULL) : PyLong_FromLong(descriptor);
}

static PyObject *events_of(const hamr_store_events *events) {
    PyObject *rows = PyList_New(0);
    for (Py_ssize_t i = 0; rows && events && i < events->count; i++) {
        const hamr_store_event *event = &events->events[i];
        list_put(&rows, Py_BuildValue("(sNNL)", event->kind, id_new(&event->id), store_text_new(event->name),
                                      (long long)event->missed));
    }
    return rows;
}

static STORE_FUNCTION(next_events, "tn") {
    hamr_store_events *events = NULL;
    STORE_CALL(*call, next_events, call->token, call->number, &events);
    if (call->error) return store_call_raise(call, events);
    PyObject *rows = events_of(events);
    free(events);
    return rows;
}

PyMethodDef session_functions[] = {
    {"store_serve", serve, METH_VARARGS,
     "store_serve(owned, path, spill, host, device, ready, metadata, socket, spill_devices): start a server, owned's."},
    {"store_connect", connect_to, METH_VARARGS, "store_connect(owned, path): begin a session, which is owned's."},
    {"store_pin", FAST(pin), METH_FASTCALL, "store_pin(session, id, on)"},
    {"store_set_evictable", FAST(set_evictable), METH_FASTCALL, "store_set_evictable(session, id, on)"},
    {"store_get_name", FAST(get_name), METH_FASTCALL,
     "store_get_name(session, name, milliseconds) -> id, or None: there was none within so long. 0 does not wait."},
    {"store_exists", FAST(exists), METH_FASTCALL, "store_exists(session, id) -> bool"},
    {"store_wait", wait_for, METH_VARARGS,
     "store_wait(session, ids, count, milliseconds) -> the set of those sealed, once count are or the time is over."},
    {"store_info", FAST(info), METH_FASTCALL, "store_info(session, id) -> tuple: what is known of an object."},
    {"store_list", FAST(list), METH_FASTCALL,
     "store_list(session, prefix, after) -> (tuples of store_info, next or 0)."},
    {"store_figures", FAST(statistics), METH_FASTCALL, "store_figures(session) -> dict: what the server counts."},
    {"store_served", FAST(served), METH_FASTCALL, "store_served(server) -> dict: the same of one in this process."},
    {"store_watch", watch, METH_VARARGS,
     "store_watch(owned, session): begin to be told of what happens to objects, for which owned keeps session."},
    {"store_watch_name", FAST(watch_name), METH_FASTCALL,
     "store_watch_name(owned, session, name): begin to watch a name, for which owned keeps session."},
    {"store_next_name", FAST(next_name), METH_FASTCALL,
     "store_next_name(watch, known, milliseconds) -> id of another object that has the name, or None."},
    {"store_name_descriptor", FAST(name_descriptor), METH_FASTCALL,
     "store_name_descriptor(watch, known) -> descriptor to close, readable when store_next_name does not wait."},
    {"store_next_events", FAST(next_events), METH_FASTCALL,
     "store_next_events(events, milliseconds) -> list of (kind, id, name, missed)."},
    {NULL, NULL, 0, NULL},
};
