/* Changes of a buffer's contents, one after the other.
 *
 * What a change calls lets other threads run, and it ends by making the buffer what the
 * call has described, so nobody else may change the buffer meanwhile. Nothing here runs
 * Python code between the two: a finaliser there that changes this buffer would be undone,
 * and one that changes another's could wait for a thread that waits for this one. */
#include "array/change.h"

#include "array/array.h"
#include "array/in_turn.h"
#include "array/result.h"
#include "array/snapshot.h"
#include "array/turn.h"
#include "base/dimensions.h"
#include "base/elements.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "core/relief.h"
#include "memory/block.h"
#include "plain/allocators.h"

typedef enum { RESERVE, RESIZE, APPEND, ASSIGN, SET, WRITE, WRITE_BYTES, FILL, MOVE } Operation;

/* What is to be done, and what it needs of Python's memory, made before it begins. */
typedef struct {
    Operation operation;
    Array *other; /* an argument, pinned, or NULL */
    int64_t n, at, start;
    int32_t ndim, allocator, device;
    int64_t shape[HAMR_MAX_DIMENSIONS];
    const Py_buffer *bytes; /* elements in C order, of WRITE_BYTES */
    int32_t done;           /* WRITE_BYTES was that simple */
    Array *source;
    Block *spare; /* for new memory */
    uint32_t flags; /* more of the source's */
    hamr_error *error;
    Result result;
} Change;

static hamr_error *apply(const hamr_functions *functions, Change *change) {
    hamr_array *array = &change->source->array, *other = change->other ? &change->other->array : NULL;
    hamr_array *result = &change->result.draft.array;
    switch (change->operation) {
    case RESERVE: return functions->reserve(array, change->n, other, result);
    case RESIZE: return functions->resize(array, change->ndim, change->shape, other, result);
    case APPEND: return functions->append(array, other, result);
    case ASSIGN: return functions->assign(array, other, result);
    case SET: return functions->set(array, change->at, other, change->start, change->n, result);
    case WRITE: return functions->write(array, other, result);
    case WRITE_BYTES: return functions->write_bytes(array, change->bytes->buf, change->bytes->len, &change->done);
    case FILL: return functions->fill(array, other, result);
    case MOVE: return functions->move(array, change->allocator, change->device, result);
    }
    return NULL;
}

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
    change->error = apply(functions, change);
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
static PyObject *make(PyObject *object, Change *change) {
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

/* The arguments of a change: the array, and where other is among them, that; None is none. */
static int begin(Change *change, Operation operation, PyObject *const *arguments, Py_ssize_t n, Py_ssize_t wanted,
                 Py_ssize_t other, const char *name) {
    *change = (Change){.operation = operation};
    if (arity(n, wanted, name) < 0) return -1;
    if (!is_array(arguments[0])) return -1;
    if (!other || arguments[other] == Py_None) return 0;
    if (!is_array(arguments[other])) return -1;
    change->other = (Array *)arguments[other];
    return 0;
}

static int read_count(PyObject *value, int64_t *into) {
    *into = PyLong_AsLongLong(value);
    return *into == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *reserve(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Change change;
    if (begin(&change, RESERVE, arguments, n, 3, 2, "reserve") < 0 || read_count(arguments[1], &change.n) < 0)
        return NULL;
    return make(arguments[0], &change);
}

static PyObject *resize(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Change change;
    if (begin(&change, RESIZE, arguments, n, 3, 2, "resize") < 0) return NULL;
    if ((change.ndim = read_dimensions(arguments[1], "shape", change.shape)) < 0) return NULL;
    return make(arguments[0], &change);
}

/* What takes the array and another one. */
#define WITH_OTHER(name, operation)                                                                             \
    static PyObject *name(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {                         \
        Change change;                                                                                          \
        (void)module;                                                                                           \
        return begin(&change, operation, arguments, n, 2, 1, #name) < 0 ? NULL : make(arguments[0], &change);   \
    }

WITH_OTHER(append, APPEND)
WITH_OTHER(assign, ASSIGN)
WITH_OTHER(write_elements, WRITE)
WITH_OTHER(fill, FILL)

PyObject *change_fill(PyObject *object, Array *value) {
    Change change = {.operation = FILL, .other = value};
    return make(object, &change);
}

PyObject *change_write(PyObject *object, Array *other) {
    Change change = {.operation = WRITE, .other = other};
    return make(object, &change);
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
    Change change = {.operation = WRITE_BYTES, .bytes = &view};
    PyObject *nothing = make(object, &change);
    PyBuffer_Release(&view);
    Py_XDECREF(nothing);
    return nothing ? change.done : -1;
}

static PyObject *set_elements(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Change change;
    if (begin(&change, SET, arguments, n, 5, 2, "set_elements") < 0) return NULL;
    if (read_count(arguments[1], &change.at) < 0 || read_count(arguments[3], &change.start) < 0 ||
        read_count(arguments[4], &change.n) < 0)
        return NULL;
    return make(arguments[0], &change);
}

static PyObject *move(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Change change;
    if (begin(&change, MOVE, arguments, n, 3, 0, "move") < 0) return NULL;
    if (read_int32(arguments[1], "allocator", &change.allocator) < 0 ||
        read_int32(arguments[2], "device", &change.device) < 0)
        return NULL;
    return make(arguments[0], &change);
}

PyMethodDef change_functions[] = {
    {"reserve", FAST(reserve), METH_FASTCALL,
     "reserve(array, n, value): make room for n elements; new room holds value, if that is not None."},
    {"resize", FAST(resize), METH_FASTCALL,
     "resize(array, shape, value): hold the elements of a shape; new ones hold value, if that is not None."},
    {"append", FAST(append), METH_FASTCALL, "append(array, other): add the elements of other behind the last."},
    {"assign", FAST(assign), METH_FASTCALL, "assign(array, other): become the contents and shape of other."},
    {"set_elements", FAST(set_elements), METH_FASTCALL,
     "set_elements(array, at, other, start, n): write n elements of other, from start on, from element at on."},
    {"write_elements", FAST(write_elements), METH_FASTCALL,
     "write_elements(array, other): set every element from other, broadcast."},
    {"fill", FAST(fill), METH_FASTCALL, "fill(array, value): set every element to the single one of value."},
    {"move", FAST(move), METH_FASTCALL, "move(array, allocator, device): take the contents to other memory."},
    {NULL, NULL, 0, NULL},
};
