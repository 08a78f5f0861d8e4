/* How long a stream's handle may be used: by all Streams that have it, and by the arrays
 * that were given one of them. */
#include "memory/stream_life.h"

#include <string.h>

#include "base/heap_type.h"
#include "base/exclusive.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"

#define BUCKETS 256
#define CACHED 2

/* What everybody with a handle holds. Its end is no finaliser, which the collector would call while arrays of the same
 * cycle may still be ordered on the stream: it comes with the last reference. */
typedef struct Life {
    PyObject_HEAD
    uint64_t handle;
    uint64_t generation;
    char backend[16];
    PyObject *owner;     /* another library's object that ends the stream, or NULL */
    PyObject *watch;     /* a weak reference to owner, with a callback, or NULL */
    struct Life *shared; /* the handle's own, where this one only keeps a further owner */
    struct Life *next;   /* in its bucket */
    int32_t device;
    char made;   /* hamr ends the stream, or, if it is CACHED, gives it back */
    char over;   /* the collector is about to end owner */
    char hidden; /* from the collector, since owner cannot be watched */
} Life;

static PyTypeObject *life_type;
static Life *buckets[BUCKETS];
static PyObject *watch_callback, *life_name;

static Life **bucket_of(uint64_t handle) { return &buckets[(handle >> 4 ^ handle >> 12) % BUCKETS]; }

static void forget(Life *self) {
    for (Life **at = bucket_of(self->handle); *at; at = &(*at)->next)
        if (*at == self) {
            *at = self->next;
            return;
        }
}

/* What may be asked about a handle of this process; NULL: nothing. */
static const hamr_functions *functions_for(const Life *self) {
    return self->generation == core_generation ? core_functions() : NULL;
}

static uint64_t ended; /* how many streams were, or were about to be */

uint64_t stream_lives_ended(void) { return ended; }

/* Memory that names the stream turns to the default one, which waits for it. 0: a call of
 * another thread is still using the stream. */
static int retire(Life *self) {
    const hamr_functions *functions = functions_for(self);
    int32_t over = self->made || self->owner;
    hamr_error *error;
    ended++;
    if (!functions) return 1;
    Py_BEGIN_ALLOW_THREADS
    error = functions->retire_stream(self->handle, &over);
    Py_END_ALLOW_THREADS
    core_report(error, (PyObject *)Py_TYPE((PyObject *)self));
    return !error && over;
}

static void destroy(Life *self) {
    const hamr_functions *functions = functions_for(self);
    if (functions)
        core_report(functions->destroy_stream(self->backend, self->device, self->handle),
                    (PyObject *)Py_TYPE((PyObject *)self));
}

/* It does not end: what memory is ordered on it stays so, and whoever takes it comes after that. */
static void give_back(Life *self) {
    const hamr_functions *functions = functions_for(self);
    if (functions)
        core_report(functions->give_cached_stream(self->backend, self->device, self->handle),
                    (PyObject *)Py_TYPE((PyObject *)self));
}

static void life_dealloc(PyObject *object) {
    Life *self = (Life *)object;
    PyObject_GC_UnTrack(object);
    forget(self);
    Py_CLEAR(self->watch);
    if (self->made == CACHED) give_back(self);
    /* Better kept than ended under another thread. */
    else if (self->handle && !self->shared && !self->over && retire(self) && self->made) destroy(self);
    Py_CLEAR(self->shared);
    Py_CLEAR(self->owner); /* last: it may end the stream */
    type_free(object);
}

/* There is no tp_clear: whoever holds this one has. And no visit to watch, which must
 * look like somebody else's, or the collector would not call it. */
static int life_traverse(PyObject *object, visitproc visit, void *arg) {
    Life *self = (Life *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->shared);
    if (!self->hidden) Py_VISIT(self->owner);
    return 0;
}

/* The collector calls this before any finaliser: the last moment at which the stream of an
 * owner in a cycle is there for certain. */
static PyObject *owner_ends(PyObject *Py_UNUSED(module), PyObject *reference) {
    for (int i = 0; i < BUCKETS; i++)
        for (Life *life = buckets[i]; life; life = life->next)
            if (life->watch == reference) {
                life->over = 1;
                Py_INCREF((PyObject *)life);
                retire(life);
                Py_DECREF((PyObject *)life);
                Py_RETURN_NONE;
            }
    Py_RETURN_NONE;
}

/* Whether the collector may see that owner is referred to. */
static int watch(Life *life, PyObject *owner) {
    if (!(PyType_GetFlags(Py_TYPE(owner)) & Py_TPFLAGS_HAVE_GC)) return 0;
    life->watch = PyWeakref_NewRef(owner, watch_callback);
    if (life->watch) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    life->hidden = 1;
    return 0;
}

static Life *find(uint64_t handle) {
    for (Life *life = *bucket_of(handle); life; life = life->next)
        if (life->handle == handle && !life->shared && !life->over && life->generation == core_generation) return life;
    return NULL;
}

/* stream_life(handle, device, backend, made, owner): what all who use a handle hold. made is 0, 1 or CACHED. */
static PyObject *stream_life(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned long long handle;
    int device, made;
    const char *backend;
    PyObject *owner;
    if (!PyArg_ParseTuple(arguments, "KisiO", &handle, &device, &backend, &made, &owner)) return NULL;
    if (strlen(backend) >= sizeof ((Life *)0)->backend)
        return PyErr_Format(PyExc_ValueError, "backend is %s: its name is too long", backend);
    if (owner == Py_None) owner = NULL;
    Life *life = type_allocate(life_type);
    if (!life) return NULL;
    if (owner && watch(life, owner) < 0) {
        Py_DECREF(life);
        return NULL;
    }
    /* From here on nothing runs Python code: two threads find the same one. */
    Life *known = made ? NULL : find(handle);
    if (known && (!owner || known->owner == owner)) {
        Py_INCREF((PyObject *)known);
        Py_DECREF(life);
        return (PyObject *)known;
    }
    life->handle = handle;
    life->generation = core_generation;
    strcpy(life->backend, backend);
    life->device = device;
    life->made = (char)made;
    life->owner = owner;
    Py_XINCREF(owner);
    if (known) {
        life->shared = known;
        Py_INCREF((PyObject *)known);
    }
    Life **bucket = bucket_of(handle);
    life->next = *bucket;
    *bucket = life;
    return (PyObject *)life;
}

PyObject *stream_life_of(PyObject *stream) {
    PyObject *life = PyObject_GetAttr(stream, life_name);
    if (life && Py_TYPE(life) == life_type) return life;
    Py_XDECREF(life);
    PyErr_Clear();
    return NULL;
}

int stream_life_made(PyObject *life) { return ((const Life *)life)->made != 0; }

uint64_t stream_life_of_cuda(PyObject *object, int32_t *device) {
    const Life *life = (const Life *)object;
    if (!life->made || life->over || life->generation != core_generation) return 0;
    if (strcmp(life->backend, "cuda") != 0) return 0;
    *device = life->device;
    return life->handle;
}

int stream_life_keeps(PyObject *object, uint64_t stream) {
    const Life *life = (const Life *)object;
    return life && life->handle == stream && (life->made || life->owner);
}

int stream_life_over(PyObject *object, uint64_t stream) {
    const Life *life = (const Life *)object;
    return life && life->handle == stream && (life->over || (life->shared && life->shared->over));
}

/* destroy_event(generation, backend, device, event): for destructors. */
static PyObject *destroy_event(PyObject *Py_UNUSED(module), PyObject *arguments) {
    unsigned long long generation, event;
    const char *backend;
    int device;
    if (!PyArg_ParseTuple(arguments, "KsiK", &generation, &backend, &device, &event)) return NULL;
    const hamr_functions *functions = generation == core_generation ? core_functions() : NULL;
    hamr_error *error = functions ? functions->destroy_event(backend, device, event) : NULL;
    if (error) return core_failed(error);
    Py_RETURN_NONE;
}

PyMethodDef stream_life_functions[] = {
    {"stream_life", stream_life, METH_VARARGS,
     "stream_life(handle, device, backend, made, owner) -> StreamLife: what all who use a handle hold."},
    {"destroy_event", destroy_event, METH_VARARGS,
     "destroy_event(generation, backend, device, event): end an event, unless it is of a process that this one was "
     "forked from."},
    {NULL, NULL, 0, NULL},
};

static PyObject *made_on(PyObject *object, void *Py_UNUSED(closure)) {
    const Life *self = (const Life *)object;
    return self->made ? PyLong_FromLong(self->device) : Py_NewRef(Py_None);
}

static PyGetSetDef life_attributes[] = {
    {"made_on", made_on, NULL, "The device of a stream that hamr made; None for another library's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_getset, life_attributes},
    {Py_tp_dealloc, life_dealloc},
    {Py_tp_traverse, life_traverse},
    {Py_tp_doc, "What all who use a stream's handle hold; hamr's memory forgets the handle at its end."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.StreamLife",
    .basicsize = sizeof(Life),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int stream_life_setup(PyObject *module) {
    static PyMethodDef ends = {"owner_ends", owner_ends, METH_O, NULL};
    if (!life_name && !(life_name = PyUnicode_InternFromString("_life"))) return -1;
    if (!watch_callback && !(watch_callback = exclusive_function(&ends, NULL, NULL))) return -1;
    return type_add(module, &life_type, &spec, NULL);
}
