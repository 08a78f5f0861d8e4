#include "array/array.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array/turn.h"
#include "base/containers.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/block.h"
#include "memory/stream_life.h"
#include "plain/layout.h"

PyTypeObject *array_type;

int is_array(PyObject *object) {
    if (PyObject_TypeCheck(object, array_type)) return 1;
    PyErr_Format(PyExc_TypeError, "%R is not a buffer", object);
    return 0;
}

int is_array_type(PyObject *type) {
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, array_type)) return 1;
    PyErr_Format(PyExc_TypeError, "%R is not a subclass of Array", type);
    return 0;
}

/* Shape and strides lie in the object, or in memory of their own. */
static void point_dimensions(Array *self) {
    int64_t *room = self->allocated_dimensions;
    self->array.shape = room ? room : self->dimensions;
    self->array.strides = room ? room + HAMR_MAX_DIMENSIONS : self->dimensions + INLINE_DIMENSIONS;
}

Array *array_new(PyTypeObject *type) {
    Array *self = type_allocate(type);
    if (!self) return NULL;
    point_dimensions(self);
    self->array.device = HAMR_HOST_DEVICE;
    /* An empty array from the first: the collector leads to it before it is filled in. */
    self->array.element = HAMR_UINT8;
    self->array.ndim = 1;
    self->array.strides[0] = 1;
    return self;
}

static int reserve_dimensions(Array *self, int ndim) {
    if (ndim <= INLINE_DIMENSIONS || self->allocated_dimensions) return 0;
    int64_t *room = PyMem_Malloc(2 * HAMR_MAX_DIMENSIONS * sizeof *room);
    if (!room) return PyErr_NoMemory(), -1;
    self->allocated_dimensions = room;
    return 0;
}

static void change(Array *self) {
    PyObject *interface = self->interface;
    self->interface = NULL;
    self->changes++;
    Py_XDECREF(interface);
}

static void used_on(const Array *self, Block *block, uint64_t stream) {
    int last = Py_REFCNT((PyObject *)block) == 1;
    if (self->life && stream_life_over(self->life, stream)) block_shared_with(block, UNKNOWN_STREAM);
    /* Who named a stream by its number may have ended it. Nobody else has to be ordered after it. */
    else if (last && stream > PER_THREAD_STREAM && stream != block->memory.stream &&
             !stream_life_keeps(self->life, stream))
        block_shared_with(block, UNKNOWN_STREAM);
    else block_used_on(block, stream);
}

/* What the array's stream holds may use the memory for longer than the array does. A
 * snapshot for the core is nobody's to use: its source has the same stream. */
static void leave(const Array *self, Block *block, uint64_t stream) {
    if (block && Py_TYPE((PyObject *)(uintptr_t)self) != array_type) used_on(self, block, stream);
    Py_XDECREF((PyObject *)block);
}

static void leave_block(Array *self) {
    Block *block = self->block;
    self->block = NULL;
    leave(self, block, self->array.stream);
}

int array_store(Array *self, const hamr_array *from, Block *block) {
    if (reserve_dimensions(self, from->ndim) < 0) {
        Py_XDECREF((PyObject *)block);
        return -1;
    }
    uint64_t stream = self->array.stream;
    self->array = *from;
    self->array.memory = 0;
    point_dimensions(self);
    memcpy(self->array.shape, from->shape, (size_t)from->ndim * sizeof *from->shape);
    memcpy(self->array.strides, from->strides, (size_t)from->ndim * sizeof *from->strides);
    Block *old = self->block;
    self->block = block;
    change(self);
    if (old != block) leave(self, old, stream);
    else Py_XDECREF((PyObject *)old);
    return 0;
}

void array_follow(Array *self, const Array *source) {
    PyObject *order = self->order, *life = self->life;
    if (!order && !life && !source->order && !source->life) return;
    self->order = source->order;
    self->life = source->life;
    Py_XINCREF(self->order);
    Py_XINCREF(self->life);
    Py_XDECREF(order);
    Py_XDECREF(life);
}

Array *array_make(PyTypeObject *type, const hamr_array *from, Block *block, const Array *source) {
    Array *self = array_new(type);
    if (!self) {
        Py_XDECREF((PyObject *)block);
        return NULL;
    }
    if (source) array_follow(self, source);
    if (array_store(self, from, block) < 0) Py_CLEAR(self);
    return self;
}

PyObject *array_freed(const Array *self) {
    /* Of what is fixed users close handles alone; the buffer may be open. */
    return core_freed(self->fixed
                      ? "the handle was closed, as at the end of a with block: take a new one from the buffer"
                      : "the buffer was closed");
}

int array_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((Array *)object)->block);
    Py_VISIT(((Array *)object)->interface);
    Py_VISIT(((Array *)object)->kept);
    Py_VISIT(((Array *)object)->order);
    Py_VISIT(((Array *)object)->life);
    Py_VISIT(((Array *)object)->source);
    return 0;
}

hamr_error *array_changed(const Array *self) {
    const hamr_functions *functions = core_functions();
    Block *block = self->block;
    if (!functions || !block || !block->memory.token || block->memory.generation != core_generation) return NULL;
    /* Of its own: meanwhile others may change the array. */
    int64_t shape[HAMR_MAX_DIMENSIONS], strides[HAMR_MAX_DIMENSIONS];
    hamr_array array = self->array;
    memcpy(shape, array.shape, (size_t)array.ndim * sizeof *shape);
    memcpy(strides, array.strides, (size_t)array.ndim * sizeof *strides);
    array.shape = shape;
    array.strides = strides;
    array.memory = block->memory.token;
    hamr_error *error;
    Py_INCREF((PyObject *)block);
    Py_BEGIN_ALLOW_THREADS
    error = functions->changed(&array);
    Py_END_ALLOW_THREADS
    Py_DECREF((PyObject *)block);
    return error;
}

/* For who has nobody to raise to: no more is lost than memory, until the buffer's ends. */
static void drop_temporaries(const Array *self) {
    if (self->cached) free(array_changed(self));
}

static void give_up(Array *self) {
    self->closed = 1;
    drop_temporaries(self);
    if (!self->exports) leave_block(self);
}

void array_releasebuffer(PyObject *object, Py_buffer *Py_UNUSED(view)) {
    Array *self = (Array *)object;
    if (--self->exports == 0 && self->closed) leave_block(self);
}

int array_hold(Array *snapshot, const Array *self) {
    Block *block = self->block;
    if (block && (!block->memory.token || block->memory.generation != core_generation)) return 1;
    Py_XINCREF((PyObject *)block);
    if (array_store(snapshot, &self->array, block) < 0) return -1;
    snapshot->fixed = 1;
    snapshot->array.memory = block ? block->memory.token : 0;
    array_follow(snapshot, self);
    if (stream_life_over(snapshot->life, snapshot->array.stream)) snapshot->array.stream = 0;
    return 0;
}

PyObject *array_dimensions(const int64_t *values, int n) {
    /* Copied first: making a tuple may run finalisers, which may change the array. */
    int64_t own[HAMR_MAX_DIMENSIONS];
    memcpy(own, values, (size_t)n * sizeof *own);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++)
        tuple_put(&tuple, i, PyLong_FromLongLong(own[i]));
    return tuple;
}

int array_layout(const hamr_array *array, PyObject **shape, PyObject **strides) {
    *shape = array_dimensions(array->shape, array->ndim);
    *strides = array_contiguous(array, 0) ? Py_NewRef(Py_None) : array_dimensions(array->strides, array->ndim);
    if (*shape && *strides) return 0;
    Py_XDECREF(*shape);
    Py_XDECREF(*strides);
    return -1;
}

/* Who is told an address in a dictionary keeps the object, not its memory. One Block
 * is kept as it is; for more there is a set. */
int array_keep(Array *self, Block *lent) {
    PyObject *block = (PyObject *)lent;
    if (!block || self->kept == block) return 0;
    if (self->kept && !PySet_Check(self->kept)) {
        PyObject *set = PySet_New(NULL); /* may run a finaliser that comes here, too */
        if (!set) return -1;
        if (PySet_Check(self->kept)) {
            Py_DECREF(set);
        } else {
            PyObject *old = self->kept;
            if (PySet_Add(set, old) < 0) {
                Py_DECREF(set);
                return -1;
            }
            self->kept = set;
            Py_DECREF(old);
        }
    }
    if (self->kept) return PySet_Add(self->kept, block);
    self->kept = Py_NewRef(block);
    return 0;
}

int array_clear(PyObject *object) {
    Array *self = (Array *)object;
    change(self);
    give_up(self); /* even without memory: the stream may end before the object does */
    Py_CLEAR(self->kept);
    if (self->block) return 0; /* exported: the memory may be released in the stream's order */
    Py_CLEAR(self->order);
    Py_CLEAR(self->life);
    return 0;
}

void array_dealloc(PyObject *object) {
    PyObject_GC_UnTrack(object);
    Array *self = (Array *)object;
    Py_CLEAR(self->interface);
    if (!self->closed) drop_temporaries(self);
    leave_block(self);
    Py_CLEAR(self->kept);
    Py_CLEAR(self->order); /* last: memory may be released in the stream's order */
    Py_CLEAR(self->life);
    Py_CLEAR(self->source);
    if (self->turn) turn_free(self->turn);
    PyMem_Free(self->allocated_dimensions);
    type_free(object);
}

Py_ssize_t array_length(PyObject *object) {
    Array *self = (Array *)object;
    if (self->closed) return array_freed(self), -1;
    if (self->array.ndim == 0) return RAISE(PyExc_TypeError, "len() of a buffer without dimensions");
    return (Py_ssize_t)self->array.shape[0];
}

PyObject *array_method_close(PyObject *object, PyObject *Py_UNUSED(unused)) {
    give_up((Array *)object);
    Py_RETURN_NONE;
}

PyObject *array_method_empty(PyObject *object, PyObject *Py_UNUSED(unused)) {
    Array *self = (Array *)object;
    drop_temporaries(self);
    if (turn_wait(&self->turn) < 0) return NULL;
    OPEN(self);
    Py_CLEAR(self->source);
    change(self);
    self->array.base = self->array.size = self->array.pointer = self->array.marks = 0;
    self->array.capacity = 0;
    self->array.flags = self->array.flags & ~HAMR_READ_ONLY;
    self->array.ndim = 1;
    self->array.shape[0] = 0;
    self->array.strides[0] = element_facts(self->array.element)->size;
    leave_block(self);
    Py_RETURN_NONE;
}

/* _set_order(stream, transfer[, object that keeps the stream alive]): None is the stream as it is. */
PyObject *array_method_set_order(PyObject *object, PyObject *arguments) {
    Array *self = (Array *)object;
    unsigned long long stream = 0;
    int transfer;
    PyObject *number, *order = NULL;
    if (!PyArg_ParseTuple(arguments, "Oi|O", &number, &transfer, &order)) return NULL;
    if (number != Py_None) stream = PyLong_AsUnsignedLongLong(number);
    if (stream == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    PyObject *life = order && order != Py_None && stream > PER_THREAD_STREAM ? stream_life_of(order) : NULL;
    int turn = self->turn ? turn_wait(&self->turn) : 0;
    if (turn < 0 || self->closed) {
        Py_XDECREF(life);
        return turn < 0 ? NULL : array_freed(self);
    }
    if (number == Py_None) stream = self->array.stream;
    if (self->block && stream != self->array.stream) {
        Block *block = (Block *)Py_NewRef((PyObject *)self->block);
        int left = 0;
        if (stream_life_over(self->life, self->array.stream)) block_shared_with(block, UNKNOWN_STREAM);
        else left = block_leave(block, self->array.stream);
        Py_DECREF((PyObject *)block);
        if (left < 0) {
            Py_XDECREF(life);
            return NULL;
        }
    }
    self->array.transfer = transfer;
    self->array.stream = stream;
    if (order) {
        PyObject *old = self->order, *old_life = self->life;
        self->order = order == Py_None ? NULL : Py_NewRef(order);
        self->life = life;
        Py_XDECREF(old);
        Py_XDECREF(old_life);
    }
    Py_RETURN_NONE;
}

PyObject *array_method_swap(PyObject *object, PyObject *other) {
    if (!is_array(other)) return NULL;
    Array *a = (Array *)object, *b = (Array *)other, hold;
    if (a->cached != b->cached) drop_temporaries(a->cached ? a : b);
    if (turn_wait_both(&a->turn, &b->turn) < 0) return NULL;
    OPEN(a);
    OPEN(b);
    if (a == b) Py_RETURN_NONE;
    size_t from = offsetof(Array, array), length = sizeof(Array) - from;
    uint32_t changes[2] = {a->changes, b->changes}; /* counts what happened to the object, whatever it has */
    PyObject *kept[2] = {a->kept, b->kept};         /* who was told of it keeps the object, too */
    char cached[2] = {a->cached, b->cached};        /* as a user has promised of the object */
    memcpy((char *)&hold + from, (char *)a + from, length);
    memcpy((char *)a + from, (char *)b + from, length);
    memcpy((char *)b + from, (char *)&hold + from, length);
    for (int i = 0; i < 2; i++) {
        Array *x = i ? b : a;
        x->changes = changes[i] + 1;
        x->kept = kept[i];
        x->cached = cached[i];
        point_dimensions(x);
    }
    Py_RETURN_NONE;
}
