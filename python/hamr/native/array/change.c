/* Changes of a buffer's contents, one after the other.
 *
 * What a change calls lets other threads run, and it ends by making the buffer what the call has described, so nobody
 * else may change the buffer meanwhile. Nothing here runs Python code between the two: a finaliser there that changes
 * this buffer would be undone, and one that changes another's could wait for a thread that waits for this one. */
#include "array/change.h"

#include "array/array.h"
#include "array/in_turn.h"
#include "array/result.h"
#include "array/snapshot.h"
#include "array/turn.h"
#include "base/dimensions.h"
#include "base/elements.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "core/relief.h"
#include "memory/block.h"
#include "plain/allocators.h"

static int is_of_parent(const Array *other) {
    return other && other->block && other->block->memory.generation != core_generation;
}

/* Whether nobody has the memory but the array, and the snapshot of it that the core is given. */
static int is_sole(const Array *self) {
    return self->block && Py_REFCNT((PyObject *)self->block) == 2 && block_is_sole(self->block);
}

/* Whether a buffer has an array's shape and type. */
static int fits(const hamr_array *array, const Py_buffer *view) {
    if (view->ndim != array->ndim || element_from_format(view->format, view->itemsize) != array->element) return 0;
    for (int i = 0; i < view->ndim; i++)
        if (view->shape[i] != array->shape[i]) return 0;
    return 1;
}

/* With the turn, and without Python code. */
static Outcome run(Array *self, void *state) {
    Change *change = state;
    if (self->closed) return FREED;
    const hamr_functions *functions = core_functions();
    if (!functions) return NO_LIBRARY;
    int held = array_hold(change->source, self);
    if (held > 0 || is_of_parent(change->other)) return UNKNOWN_MEMORY;
    if (held < 0) return FAILED;
    if (change->bytes && !fits(&change->source->array, change->bytes)) return DONE;
    if (is_sole(self)) change->source->array.flags |= HAMR_SOLE;
    result_start(&change->result, change->source);
    change->source->array.flags |= change->flags | patience_flags();
    Py_BEGIN_ALLOW_THREADS
    change->error = change->apply(functions, change, &change->source->array, &change->result.draft.array);
    Py_END_ALLOW_THREADS
    Turn *turn = self->turn;
    turn_let_read(turn, 1);
    change->error = patience_outcome(change->error);
    turn_let_read(turn, 0);
    if (change->error) return FAILED;
    if (self->closed) return FREED; /* by another thread meanwhile */
    if (change->bytes) return DONE;  /* in the memory that there was */
    Block *block;
    if (result_block(&change->result, change->source, &change->spare, &block) < 0) return FAILED;
    if (block && block != change->source->block) Py_CLEAR(self->source);
    return array_store(self, &change->result.draft.array, block) < 0 ? FAILED : DONE;
}

/* What another thread changes, or a consumer closes, is read as it was. */
static int pin_other(void *state) {
    Change *change = state;
    if (!change->other) return 0;
    Array *given = change->other;
    change->other = array_pinned(given);
    Py_DECREF(given);
    return change->other ? 0 : -1;
}

/* Makes the array what the operation makes of it. */
PyObject *change_make(PyObject *object, Change *change) {
    result_start(&change->result, NULL);
    Py_XINCREF((PyObject *)change->other);
    if (pin_other(change) < 0) return NULL;
    change->spare = change->bytes ? NULL : block_spare();
    Outcome outcome;
    Relief relief = relief_begin();
    uint32_t flags = 0;
    do {
        Py_XDECREF((PyObject *)change->source);
        change->error = NULL;
        change->flags = flags;
        change->source = array_new(array_type);
        outcome = change->source && (change->spare || change->bytes) ? in_turn((Array *)object, run, pin_other, change)
            : FAILED;
    } while (change->error && core_relieves(&relief, &change->error, &flags));
    relief_end(&relief);
    if (outcome == FREED) array_freed((Array *)object);
    else if (change->error) core_raise(change->error);
    Raised raised = raised_take();
    Py_XDECREF((PyObject *)change->source); /* only now may owners end */
    Py_XDECREF((PyObject *)change->other);
    result_end(&change->result);
    Py_XDECREF((PyObject *)change->spare);
    raised_restore(raised);
    if (outcome != DONE) return NULL;
    Py_RETURN_NONE;
}

int change_array(PyObject *array) { return is_array(array) ? 0 : -1; }

int change_other(Change *change, PyObject *other) {
    if (other == Py_None) return 0;
    if (!is_array(other)) return -1;
    change->other = (Array *)other;
    return 0;
}

int change_number(int64_t *into, PyObject *value) {
    *into = PyLong_AsLongLong(value);
    return *into == -1 && PyErr_Occurred() ? -1 : 0;
}

int change_shape(Change *change, PyObject *shape) {
    change->ndim = read_dimensions(shape, "shape", change->shape);
    return change->ndim < 0 ? -1 : 0;
}

/* Changes that C calls, by the name of the core's function. */
#define BY_OTHER(name)                                                                                                 \
    static hamr_error *name(const hamr_functions *functions, Change *change, hamr_array *array, hamr_array *becomes) { \
        return functions->name(array, &change->other->array, becomes);                                                 \
    }
BY_OTHER(fill)
BY_OTHER(write_elements)

PyObject *change_fill(PyObject *object, Array *value) {
    Change change = {.apply = fill, .other = value};
    return change_make(object, &change);
}

PyObject *change_write(PyObject *object, Array *other) {
    Change change = {.apply = write_elements, .other = other};
    return change_make(object, &change);
}

static hamr_error *write_bytes(const hamr_functions *functions, Change *change, hamr_array *array,
                               hamr_array *becomes) {
    (void)becomes;
    return functions->write_bytes(array, change->bytes->buf, change->bytes->len, &change->done);
}

int change_write_bytes(PyObject *object, PyObject *exporter) {
    const hamr_array *array = &((Array *)object)->array;
    if (array->flags & (HAMR_HOST_REACHABLE | HAMR_READ_ONLY) || !is_of_device(array->allocator)) return 0;
    Py_buffer view;
    if (PyObject_GetBuffer(exporter, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear(); /* the general way says what is wrong */
        return 0;
    }
    Change change = {.apply = write_bytes, .bytes = &view};
    PyObject *nothing = change_make(object, &change);
    PyBuffer_Release(&view);
    Py_XDECREF(nothing);
    return nothing ? change.done : -1;
}
