#include "core/stacks.h"

#include <stdint.h>

#include "base/lock.h"
#include "base/python.h"

#define MOST_FRAMES 64

int stacks_wanted; /* how many want them */
static PyObject *known; /* {(code, line, ...): number}: the innermost frame first */
static _Thread_local int64_t current; /* of what this thread does; 0: not known */
static _Thread_local int noting;

/* (code, line, code, line, ...) of a frame, which may be NULL, and those that called it; NULL with an exception. */
static PyObject *take(PyObject *frame) {
    PyObject *parts[2 * MOST_FRAMES];
    Py_ssize_t n = 0;
    Py_XINCREF(frame);
    while (frame && n < 2 * MOST_FRAMES) {
        parts[n] = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        parts[n + 1] = PyLong_FromLong(PyFrame_GetLineNumber((PyFrameObject *)frame));
        n += 2;
        PyObject *back = parts[n - 1] ? PyObject_GetAttrString(frame, "f_back") : NULL;
        replace_reference(&frame, Py_IsNone(back) ? NULL : back);
        if (!frame && back) Py_DECREF(back);
        if (!back) break;
    }
    Py_XDECREF(frame);
    PyObject *stack = PyErr_Occurred() ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (stack) PyTuple_SetItem(stack, i, parts[i]);
        else Py_XDECREF(parts[i]);
    }
    return stack;
}

static int64_t number_of(PyObject *stack) {
    PyObject *number = PyDict_GetItemWithError(known, stack);
    if (number) return PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return 0;
    int64_t next = PyDict_Size(known) + 1;
    number = PyLong_FromLongLong(next);
    int kept = number && PyDict_SetItem(known, stack, number) == 0;
    Py_XDECREF(number);
    return kept ? next : 0;
}

/* The number of a frame's stack; 0 where there is no memory for it. */
static int64_t number_of_frame(PyObject *frame) {
    noting = 1;
    int collects = PyGC_Disable(); /* whoever asks is in the middle of something that a finaliser may fork in */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *stack = take(frame);
    int64_t number = stack ? number_of(stack) : 0;
    Py_XDECREF(stack);
    PyErr_Restore(type, value, traceback); /* without a stack it goes on */
    if (collects) PyGC_Enable();
    noting = 0;
    return number;
}

void stacks_take(void) {
    if (noting || !known) return; /* a finaliser of what goes below */
    current = number_of_frame((PyObject *)PyEval_GetFrame());
}

void stacks_drop(void) { current = 0; }

/* What the core calls, on any thread. A library that takes memory by C may have the lock, too. */
static int64_t stack_here(void) {
#ifdef Py_GIL_DISABLED
    return current; /* what is here would need a lock, and the core has some */
#endif
    if (current || !lock_held()) return current;
    stacks_note();
    int64_t number = current;
    current = 0;
    return number;
}

static PyObject *record_stacks(PyObject *module, PyObject *on) {
    (void)module;
    int is = PyObject_IsTrue(on);
    if (is < 0) return NULL;
    PyObject *before = NULL;
    if (is && !stacks_wanted) {
        PyObject *fresh = PyDict_New();
        if (!fresh) return NULL;
        before = known;
        known = fresh;
    }
    current = 0;
    int wanted = stacks_wanted + (is ? 1 : -1);
    __atomic_store_n(&stacks_wanted, wanted > 0 ? wanted : 0, __ATOMIC_RELAXED);
    Py_XDECREF(before);
    return PyLong_FromUnsignedLongLong((unsigned long long)(uintptr_t)stack_here);
}

static PyObject *with_stack(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *function = PyTuple_GetItem(arguments, 0);
    PyObject *rest = function ? PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments)) : NULL;
    if (!rest) return NULL;
    stacks_note();
    PyObject *result = PyObject_Call(function, rest, NULL);
    stacks_forget();
    Py_DECREF(rest);
    return result;
}

static PyObject *stack_of(PyObject *module, PyObject *frame) {
    (void)module;
    PyFrameObject *here = PyEval_GetFrame();
    if (!here || Py_TYPE(frame) != Py_TYPE((PyObject *)here)) return PyErr_Format(PyExc_TypeError, "frame is %R: accepted is a frame", frame);
    return PyLong_FromLongLong(noting || !known ? 0 : number_of_frame(frame));
}

static PyObject *recorded_stacks(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return known ? PyDict_Copy(known) : PyDict_New();
}

PyMethodDef stacks_methods[] = {
    {"record_stacks", record_stacks, METH_O,
     "record_stacks(on) -> int: number the stacks of threads that take memory, anew where nobody does yet, until as many calls have ended it; the address of the C function that tells the number."},
    {"with_stack", with_stack, METH_VARARGS,
     "with_stack(function, *arguments): what the function returns, which lets go of Python's lock and then takes memory for its caller."},
    {"stack_of", stack_of, METH_O, "stack_of(frame) -> int: the number of a frame's stack, or 0 where none are numbered."},
    {"recorded_stacks", recorded_stacks, METH_NOARGS,
     "recorded_stacks() -> {(code, line, code, line, ...): number}: the innermost frame first."},
    {NULL, NULL, 0, NULL},
};
