/* Changes of a buffer's contents, one after the other.
 *
 * What a change calls lets other threads run, and it ends by making the buffer what the
 * call has described, so nobody else may change the buffer meanwhile. Nothing here runs
 * Python code between the two: a finaliser there that changes this buffer would be undone,
 * and one that changes another's could wait for a thread that waits for this one. */
#include "array/change.h"

#include "array/array.h"
#include "array/result.h"
#include "array/turn.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/block.h"

/* What a change needs of Python's memory, made before it begins. */
typedef struct {
    Array *source;
    Result *result;
    Block *spare; /* for new memory */
    PyObject *arguments;
} Change;

static void change_end(Change *change) {
    Py_XDECREF((PyObject *)change->source);
    Py_XDECREF((PyObject *)change->result);
    Py_XDECREF((PyObject *)change->spare);
    Py_XDECREF(change->arguments);
}

static PyObject *address_of(const hamr_array *array) { return PyLong_FromUnsignedLongLong((uint64_t)(uintptr_t)array); }

/* Arrays go to the core as addresses of what describes them, None as 0. */
static PyObject *plain(PyObject *argument) {
    if (argument == Py_None) return PyLong_FromLong(0);
    return PyObject_TypeCheck(argument, array_type) ? address_of(&((Array *)argument)->array) : Py_NewRef(argument);
}

static int change_begin(Change *change, PyObject *arguments) {
    Py_ssize_t n = PyTuple_Size(arguments);
    *change = (Change){.source = array_new(array_type), .result = result_new(), .spare = block_spare(), .arguments = PyTuple_New(n + 2)};
    if (!change->source || !change->result || !change->spare || !change->arguments) return -1;
    for (Py_ssize_t i = 0; i < n + 2; i++) {
        PyObject *value = i == 0 ? address_of(&change->source->array) : i > n ? address_of(&change->result->array) : plain(PyTuple_GetItem(arguments, i - 1));
        if (!value || PyTuple_SetItem(change->arguments, i, value) < 0) return -1;
    }
    return 0;
}

enum { DONE, FAILED, FREED, UNKNOWN_MEMORY, NO_LIBRARY };

/* With the turn, and without Python code, but for what the error of a call that has failed
 * may run. */
static int run(Array *self, PyObject *name, Change *change) {
    if (self->closed) return FREED;
    PyObject *function = core_function(name);
    if (!function) return PyErr_Occurred() ? FAILED : NO_LIBRARY;
    int held = array_hold(change->source, self);
    PyObject *nothing = NULL;
    if (held == 0) {
        change->result->before = change->source->array.memory;
        change->result->generation = core_generation;
        nothing = PyObject_Call(function, change->arguments, NULL);
    }
    Py_DECREF(function);
    if (held > 0) return UNKNOWN_MEMORY;
    if (!nothing) return FAILED;
    Py_DECREF(nothing);
    if (self->closed) return FREED; /* by another thread meanwhile */
    Block *block;
    if (result_block(change->result, change->source, &change->spare, &block) < 0) return FAILED;
    if (block && block != change->source->block) Py_CLEAR(self->source);
    return array_store(self, &change->result->array, block) < 0 ? FAILED : DONE;
}

static int run_in_turn(Array *self, PyObject *name, Change *change) {
    for (;;) {
        if (turn_begin(&self->turn) < 0) return FAILED;
        Turn *turn = self->turn;
        int outcome = run(self, name, change);
        turn_end(turn);
        if (outcome == NO_LIBRARY) {
            if (core_load() < 0) return FAILED;
        } else if (outcome == UNKNOWN_MEMORY) {
            Block *block = (Block *)Py_XNewRef((PyObject *)self->block);
            int known = block ? block_register(block) : 0;
            Py_XDECREF((PyObject *)block);
            if (known < 0) return FAILED;
        } else {
            return outcome;
        }
    }
}

/* change(array, name, arguments): make the array what a function of the core makes of it. */
static PyObject *change_array(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
    (void)module;
    if (n != 3 || !PyObject_TypeCheck(arguments[0], array_type) || !PyTuple_Check(arguments[2]))
        return PyErr_Format(PyExc_TypeError, "change takes an array, a name and a tuple");
    Change change;
    int outcome = change_begin(&change, arguments[2]) < 0 ? FAILED : run_in_turn((Array *)arguments[0], arguments[1], &change);
    if (outcome == FREED) core_freed();
    else if (outcome == FAILED) core_translate();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    change_end(&change); /* only now may owners end */
    PyErr_Restore(type, value, traceback);
    if (outcome != DONE) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef change_functions[] = {
    {"change", FAST(change_array), METH_FASTCALL, "change(array, name, arguments): make the array what a function of the core makes of it."},
    {NULL, NULL, 0, NULL},
};
