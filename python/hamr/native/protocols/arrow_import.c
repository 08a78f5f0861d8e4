/* adopt_arrow: other libraries' Arrow arrays, from their capsules. */
#include "protocols/arrow_import.h"

#include <stdlib.h>
#include <string.h>

#include "array/adopt.h"
#include "array/array.h"
#include "base/python.h"
#include "memory/owner.h"
#include "plain/layout.h"
#include "protocols/arrow.h"
#include "protocols/arrow_layout.h"

static void release_moved(void *memory) {
    struct ArrowArray *array = memory;
    if (array->release) array->release(array);
    free(array);
}

/* Moves an array to memory of its own, which an owner ends. NULL: it is where it was. */
static Owner *move_array(struct ArrowArray *from) {
    struct ArrowArray *own = malloc(sizeof *own);
    if (!own) return PyErr_NoMemory(), NULL;
    Owner *owner = owner_of_memory(own, release_moved);
    if (!owner) {
        free(own);
        return NULL;
    }
    *own = *from;
    from->release = NULL;
    return owner;
}

/* Where an array is, and what is to be waited for. */
typedef struct {
    int64_t device;
    int32_t type;
    void *event;
} Place;

/* Fills in allocator and device. Memory of CUDA is what the driver says that it is. */
static int read_place(const Place *place, hamr_array *into) {
    into->flags = HAMR_READ_ONLY;
    into->device = HAMR_HOST_DEVICE;
    into->allocator = HAMR_ALLOCATOR_ANY;
    switch (place->type) {
    case ARROW_DEVICE_CPU:
        into->flags |= HAMR_HOST_REACHABLE;
        into->allocator = HAMR_ALLOCATOR_MALLOC;
        if (!place->event) return 0;
        return RAISE(PyExc_ValueError,
                     "sync_event of the Arrow array is not NULL: accepted is NULL in the CPU's memory");
    case ARROW_DEVICE_CUDA:
        into->device = (int32_t)place->device;
        if (place->device >= 0 && place->device <= INT32_MAX) return 0;
        return RAISE(PyExc_ValueError, "device_id of the Arrow array is %lld: accepted are 0 ... 2**31-1",
                     (long long)place->device);
    case ARROW_DEVICE_CUDA_HOST:
    case ARROW_DEVICE_CUDA_MANAGED:
        return 0;
    }
    return RAISE(PyExc_BufferError,
                 "device_type of the Arrow array is %d: accepted are %d (CPU), %d (CUDA), %d (CUDA_HOST) and %d "
                 "(CUDA_MANAGED)", (int)place->type, ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_HOST,
                 ARROW_DEVICE_CUDA_MANAGED);
}

/* A stream that runs after the event at which the elements are ready, from order(address, event). */
static int read_event(const Place *place, const hamr_array *array, PyObject *order, uint64_t *producer) {
    uint64_t event = place->event ? *(const uint64_t *)place->event : 0;
    *producer = 0;
    if (!event || order == Py_None || !array_count(array)) return 0;
    PyObject *stream = PyObject_CallFunction(order, "KK", (unsigned long long)array->pointer,
                                             (unsigned long long)event);
    if (!stream) return -1;
    *producer = PyLong_AsUnsignedLongLong(stream);
    Py_DECREF(stream);
    return *producer == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Shares an array whose schema was read, and which the owner has; takes over owner. */
static PyObject *adopt_array(PyTypeObject *type, Draft *draft, Owner *owner, const Place *place, PyObject *order) {
    uint64_t producer;
    int on_host = place->type == ARROW_DEVICE_CPU;
    if (read_place(place, &draft->array) < 0 || arrow_read_array(owner->memory, on_host, &draft->array) < 0 ||
        read_event(place, &draft->array, order, &producer) < 0) {
        owner_drop(owner);
        return NULL;
    }
    return on_host ? draft_adopt_host(type, draft, owner) : draft_adopt_device(type, draft, owner, producer);
}

static int is_capsule(PyObject *object, const char *name) { return object && PyCapsule_IsValid(object, name); }

static void *consumed(const char *what) {
    return PyErr_Format(PyExc_ValueError, "the %s capsule is empty: it was consumed before", what);
}

static PyObject *from_pair(PyTypeObject *type, PyObject *pair, int of_device, Draft *draft, PyObject *order) {
    const char *name = of_device ? ARROW_DEVICE_ARRAY : ARROW_ARRAY;
    int two = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    PyObject *first = two ? PyTuple_GetItem(pair, 0) : NULL, *second = two ? PyTuple_GetItem(pair, 1) : NULL;
    if (!is_capsule(first, ARROW_SCHEMA) || !is_capsule(second, name))
        return PyErr_Format(PyExc_TypeError, "%s gave %R: accepted is a tuple of two capsules, " ARROW_SCHEMA " and %s",
                            of_device ? "__arrow_c_device_array__()" : "__arrow_c_array__()", pair, name);
    struct ArrowSchema *schema = PyCapsule_GetPointer(first, ARROW_SCHEMA);
    struct ArrowArray *array = PyCapsule_GetPointer(second, name);
    Place place = {-1, ARROW_DEVICE_CPU, NULL};
    if (!schema->release) return consumed(ARROW_SCHEMA);
    if (!array->release) return consumed(name);
    if (of_device) {
        const struct ArrowDeviceArray *found = (const struct ArrowDeviceArray *)array;
        place = (Place){found->device_id, found->device_type, found->sync_event};
    }
    if (arrow_read_schema(schema, &draft->array) < 0) return NULL;
    Owner *owner = move_array(array);
    return owner ? adopt_array(type, draft, owner, &place, order) : NULL;
}

/* What others call at an end may be written in Python, and must not see an exception that is under way. */
#define KEEPING_ERROR(statement)                  \
    {                                             \
        PyObject *type_, *value_, *traceback_;    \
        PyErr_Fetch(&type_, &value_, &traceback_); \
        statement;                                \
        PyErr_Restore(type_, value_, traceback_); \
    }

/* A producer may need the GIL on another thread while it makes a chunk. */
#define WITHOUT_GIL(statement) \
    Py_BEGIN_ALLOW_THREADS     \
    statement;                 \
    Py_END_ALLOW_THREADS

static int stream_failed(struct ArrowArrayStream *stream, int code) {
    const char *message = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    PyObject *text = message ? PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "backslashreplace") : NULL;
    if (message && !text) return -1;
    PyObject *error = text ? PyObject_CallFunction(PyExc_OSError, "iN", code,
                                                   PyUnicode_FromFormat("the Arrow stream failed: %U", text))
                           : PyObject_CallFunction(PyExc_OSError, "is", code, "the Arrow stream failed");
    Py_XDECREF(text);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return -1;
}

/* Sets only to the one chunk that has elements, if there is one. */
static int only_chunk(struct ArrowArrayStream *stream, struct ArrowArray *only) {
    for (;;) {
        struct ArrowArray next = {0};
        int code;
        WITHOUT_GIL(code = stream->get_next(stream, &next))
        if (code) return stream_failed(stream, code);
        if (!next.release) return 0;
        if (only->release && only->length && next.length) {
            next.release(&next);
            return RAISE(PyExc_ValueError,
                         "the Arrow stream has several chunks: accepted is one, which combine_chunks() or rechunk() "
                         "makes");
        }
        if (only->release && only->length) {
            next.release(&next);
        } else {
            if (only->release) only->release(only);
            *only = next;
        }
    }
}

static void release_nothing(struct ArrowArray *array) { array->release = NULL; }

static int read_stream(struct ArrowArrayStream *stream, hamr_array *into, struct ArrowArray *chunk) {
    struct ArrowSchema schema = {0};
    int code;
    WITHOUT_GIL(code = stream->get_schema(stream, &schema))
    if (code) return stream_failed(stream, code);
    int readable = arrow_read_schema(&schema, into);
    KEEPING_ERROR(if (schema.release) schema.release(&schema))
    return readable < 0 ? -1 : only_chunk(stream, chunk);
}

static PyObject *from_stream(PyTypeObject *type, PyObject *capsule, Draft *draft) {
    static const void *no_buffers[2];
    if (!is_capsule(capsule, ARROW_STREAM))
        return PyErr_Format(PyExc_TypeError,
                            "__arrow_c_stream__() gave %R: accepted is a capsule of the name " ARROW_STREAM, capsule);
    struct ArrowArrayStream *source = PyCapsule_GetPointer(capsule, ARROW_STREAM), stream = *source;
    if (!stream.release) return consumed(ARROW_STREAM);
    source->release = NULL;
    struct ArrowArray chunk = {0};
    int found = read_stream(&stream, &draft->array, &chunk);
    KEEPING_ERROR(WITHOUT_GIL(stream.release(&stream)))
    int empty = found == 0 && !chunk.release;
    if (empty && draft->array.ndim > 1) {
        /* Its children would have to be made, too. */
        return PyErr_Format(PyExc_ValueError, "the Arrow stream has no chunk: accepted is one");
    }
    if (empty) chunk = (struct ArrowArray){.n_buffers = 2, .buffers = no_buffers, .release = release_nothing};
    Owner *owner = found == 0 ? move_array(&chunk) : NULL;
    if (!owner) {
        KEEPING_ERROR(if (chunk.release) chunk.release(&chunk))
        return NULL;
    }
    return adopt_array(type, draft, owner, &(Place){-1, ARROW_DEVICE_CPU, NULL}, Py_None);
}

/* What a method of an object without arguments gives; NULL without an exception if the object has none. */
static PyObject *call_if_offered(PyObject *object, const char *name) {
    PyObject *method = PyObject_GetAttrString(object, name);
    if (!method && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    PyObject *given = method && method != Py_None ? PyObject_CallNoArgs(method) : NULL;
    Py_XDECREF(method);
    return given;
}

/* adopt_arrow(type, object, stream, transfer, order): share what an object offers by one of Arrow's protocols. */
static PyObject *adopt_arrow(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    static const char *const names[] = {"__arrow_c_device_array__", "__arrow_c_array__", "__arrow_c_stream__"};
    Draft draft;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "adopt_arrow takes 5 arguments, got %zd", n);
    if (!is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    draft.array.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    if (PyErr_Occurred()) return NULL;
    draft.array.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    if (PyErr_Occurred()) return NULL;
    PyTypeObject *type = (PyTypeObject *)arguments[0];
    for (int i = 0; i < 3; i++) {
        PyObject *given = call_if_offered(arguments[1], names[i]);
        if (!given && PyErr_Occurred()) return NULL;
        if (!given) continue;
        PyObject *made = i == 2 ? from_stream(type, given, &draft)
            : from_pair(type, given, i == 0, &draft, arguments[4]);
        KEEPING_ERROR(Py_DECREF(given))
        return made;
    }
    return PyErr_Format(PyExc_TypeError,
                        "%R has none of __arrow_c_device_array__, __arrow_c_array__ and __arrow_c_stream__",
                        arguments[1]);
}

PyMethodDef arrow_functions[] = {
    {"adopt_arrow", FAST(adopt_arrow), METH_FASTCALL,
     "adopt_arrow(type, object, stream, transfer, order): share what an object offers by Arrow's C data interfaces."},
    {NULL, NULL, 0, NULL},
};
