/* Many arrays' elements at once.
 *
 * The core is given the arrays as they are when the call begins: others may change the buffers
 * meanwhile, and the memory that they had stays until the end. */
#include "protocols/many.h"

#include <string.h>

#include "array/array.h"
#include "array/snapshot.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "memory/block.h"
#include "memory/stream_life.h"
#include "plain/layout.h"
#include "protocols/adopt_known.h"
#include "protocols/buffer_import.h"

enum { KEEPS = 4, SYNC = 2 }; /* SYNC is gobuffer.Transfer */

/* An array as it is now, for the core, and what keeps its memory. */
typedef struct {
    hamr_array array;
    int64_t dimensions[2 * INLINE_DIMENSIONS];
    PyObject *keeps[KEEPS];
    Py_buffer *view; /* of a library's memory that the core hears of by this array alone; or NULL */
} Held;

/* What is given to the core. */
typedef struct {
    Py_ssize_t count, held;
    Held *each;          /* count destinations and as many sources, of which some are held */
    hamr_array **arrays; /* theirs */
    Array *to, *from;    /* indices, or NULL */
    PyObject *names;     /* of the two lists */
    PyObject *share;     /* for who is no array: share(name, position, object) */
    int plain;           /* arrays of others are shared on the default stream, and nothing is said about waiting */
} Pairs;

static void hold_dimensions(Held *held, const hamr_array *from) {
    held->array.shape = held->dimensions;
    held->array.strides = held->dimensions + INLINE_DIMENSIONS;
    memcpy(held->array.shape, from->shape, (size_t)from->ndim * sizeof *from->shape);
    memcpy(held->array.strides, from->strides, (size_t)from->ndim * sizeof *from->strides);
}

/* What array_pinned returns, without a new object where there is room. */
static int hold_array(Held *held, Array *self) {
    const Block *block = self->block;
    int told = !block || (block->memory.token && block->memory.generation == core_generation);
    int within = self->array.pointer == (uint64_t)(uintptr_t)self->scalar;
    if (!told || within || self->closed || self->array.ndim > INLINE_DIMENSIONS) {
        Array *pinned = array_pinned(self);
        if (!pinned) return -1;
        held->array = pinned->array;
        held->keeps[0] = (PyObject *)pinned;
        return 0;
    }
    held->array = self->array;
    held->array.memory = block ? block->memory.token : 0;
    held->array.flags &= ~HAMR_GROWS;
    hold_dimensions(held, &self->array);
    if (stream_life_over(self->life, self->array.stream)) held->array.stream = 0;
    PyObject *const keeps[] = {(PyObject *)self->block, self->life, self->order};
    for (int i = 0; i < 3; i++) held->keeps[i] = Py_XNewRef(keeps[i]);
    return 0;
}

/* 1: held is what object exports by the buffer protocol. 0: more has to be asked, or there is an error to be told. */
static int hold_exported(Held *held, PyObject *object) {
    Draft draft;
    draft_start(&draft);
    int read = buffer_read(object, &draft, &held->view);
    if (read < 0 && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear(), read = 0;
    if (read <= 0) return read;
    if (draft.array.ndim > INLINE_DIMENSIONS || !array_bounds(&draft.array)) {
        PyBuffer_Release(held->view);
        PyMem_Free(held->view);
        held->view = NULL;
        return 0;
    }
    held->array = draft.array;
    held->array.transfer = SYNC; /* all of it waits once */
    hold_dimensions(held, &draft.array);
    return 1;
}

static int hold_shared(Pairs *pairs, Held *held, PyObject *name, Py_ssize_t i, PyObject *object) {
    int exported = pairs->plain && is_plain_exporter(object) ? hold_exported(held, object) : 0;
    if (exported) return exported < 0 ? -1 : 0;
    PyObject *array = held->keeps[KEEPS - 1] = PyObject_CallFunction(pairs->share, "OnO", name, i, object);
    return array && is_array(array) ? hold_array(held, (Array *)array) : -1;
}

static int hold(Pairs *pairs, Held *held, int of, Py_ssize_t i, PyObject *object) {
    PyObject *name = PyTuple_GetItem(pairs->names, of);
    if (!name) return -1;
    if (!PyObject_TypeCheck(object, array_type)) return hold_shared(pairs, held, name, i, object);
    if (!((Array *)object)->closed) return hold_array(held, (Array *)object);
    PyObject *text = PyUnicode_FromFormat("%U[%zd] was closed", name, i);
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (utf8) core_freed(utf8);
    Py_XDECREF(text);
    return -1;
}

static int hold_all(Pairs *pairs, PyObject *destinations, PyObject *sources) {
    pairs->count = PyList_Size(destinations);
    if (pairs->count < 0 || PyList_Size(sources) != pairs->count)
        return PyErr_Occurred() ? -1 : RAISE(PyExc_ValueError, "the lists differ in length");
    pairs->each = PyMem_Malloc((size_t)(pairs->count * 2 + 1) * sizeof *pairs->each);
    pairs->arrays = PyMem_Malloc((size_t)(pairs->count * 2 + 1) * sizeof *pairs->arrays);
    if (!pairs->each || !pairs->arrays) return PyErr_NoMemory(), -1;
    PyObject *const lists[] = {destinations, sources};
    for (int of = 0; of < 2; of++)
        for (Py_ssize_t i = 0; i < pairs->count; i++) {
            PyObject *object = PyList_GetItem(lists[of], i);
            if (!object) return -1;
            Held *held = &pairs->each[pairs->held];
            memset(held->keeps, 0, sizeof held->keeps);
            held->view = NULL;
            pairs->arrays[pairs->held++] = &held->array;
            Py_INCREF(object); /* holding may run code that takes it off the list */
            int done = hold(pairs, held, of, i, object);
            Py_DECREF(object);
            if (done < 0) return -1;
        }
    return 0;
}

static void let_go(Pairs *pairs) {
    Raised raised = raised_take();
    for (Py_ssize_t i = 0; i < pairs->held; i++) {
        Held *held = &pairs->each[i];
        for (int k = 0; k < KEEPS; k++) Py_XDECREF(held->keeps[k]);
        if (!held->view || held->array.marks) continue; /* marks: a device may use it for ever */
        PyBuffer_Release(held->view);
        PyMem_Free(held->view);
    }
    PyMem_Free(pairs->each);
    PyMem_Free(pairs->arrays);
    Py_XDECREF((PyObject *)pairs->to);
    Py_XDECREF((PyObject *)pairs->from);
    raised_restore(raised);
}

/* An index, pinned, or NULL for None. */
static int pin_index(PyObject *given, Array **pinned) {
    if (given == Py_None) return 0;
    return is_array(given) && (*pinned = array_pinned((Array *)given)) ? 0 : -1;
}

/* Has this process's copy of the core know all of it: what Python's code did meanwhile may have been to fork. */
static int make_known(Pairs *pairs, PyObject *to, PyObject *from) {
    uint64_t generation;
    do {
        if (core_load() < 0) return -1;
        generation = core_generation;
        for (Py_ssize_t i = 0; i < pairs->held; i++) {
            PyObject *first = pairs->each[i].keeps[0];
            Block *block = !first || Py_TYPE(first) == block_type ? (Block *)first : ((Array *)first)->block;
            if (block && block_register(block) < 0) return -1;
            if (block) pairs->each[i].array.memory = block->memory.token;
        }
        Py_CLEAR(pairs->to);
        Py_CLEAR(pairs->from);
        if (pin_index(to, &pairs->to) < 0 || pin_index(from, &pairs->from) < 0) return -1;
    } while (generation != core_generation);
    return 0;
}

/* copy_many(destinations, sources, destination_index, source_index, transfer, names, share, plain) */
static PyObject *copy_many(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Pairs pairs = {0};
    int32_t transfer;
    if (arity(n, 8, "copy_many") < 0 || read_int32(arguments[4], "transfer", &transfer) < 0) return NULL;
    pairs.names = arguments[5];
    pairs.share = arguments[6];
    pairs.plain = arguments[7] == Py_True;
    hamr_error *error = NULL;
    int some = PyList_Size(arguments[0]) != 0 || arguments[2] != Py_None;
    int done = hold_all(&pairs, arguments[0], arguments[1]) == 0 &&
               (!some || make_known(&pairs, arguments[2], arguments[3]) == 0);
    const hamr_functions *functions = done && some ? core_functions() : NULL;
    if (functions) {
        PATIENT_CALL(error, pairs.count ? pairs.arrays[0] : &pairs.to->array,
                     functions->copy_many(pairs.count, pairs.arrays, pairs.arrays + pairs.count,
                                          pairs.to ? &pairs.to->array : NULL, pairs.from ? &pairs.from->array : NULL,
                                          transfer));
    }
    if (error) core_raise(error);
    let_go(&pairs);
    if (!done || error) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef many_functions[] = {
    {"copy_many", FAST(copy_many), METH_FASTCALL,
     "copy_many(destinations, sources, destination_index, source_index, transfer, names, share, plain): set the "
     "elements of each array of a list from those of another, broadcast, or with indices that are not None the blocks "
     "that these name; transfer -1 is each array's own. What is no array share(name, position, object) makes one, "
     "unless plain is True and it exports a buffer."},
    {NULL, NULL, 0, NULL},
};
