#include "core/stacks.h"

#include <stdint.h>

#include "base/lock.h"
#include "base/python.h"

#define MOST_FRAMES 64

int stacks_wanted; /* how many want them */
/* {(code, line, ...): number}: the innermost frame first. Once there are most in known, they become those that
 * are in older, which are forgotten if nobody was there since. */
static PyObject *known, *older;
static Py_ssize_t most;
static int64_t last; /* number */
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

/* Makes room for one more. 0, or -1 with an exception. */
static int grow_old(void) {
    if (PyDict_Size(known) < most) return 0;
    PyDict_Clear(older);
    if (PyDict_Update(older, known) < 0) return -1;
    PyDict_Clear(known);
    return 0;
}

static int64_t number_of(PyObject *stack) {
    PyObject *number = PyDict_GetItemWithError(known, stack);
    if (number) return PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return 0;
    number = PyDict_GetItemWithError(older, stack);
    if (!number && PyErr_Occurred()) return 0;
    number = number ? Py_NewRef(number) : PyLong_FromLongLong(++last);
    int kept = number && grow_old() == 0 && PyDict_SetItem(known, stack, number) == 0;
    int64_t found = kept ? PyLong_AsLongLong(number) : 0;
    Py_XDECREF(number);
    return found;
}

/* The number of a frame's stack; 0 where there is no memory for it. */
static int64_t number_of_frame(PyObject *frame) {
    noting = 1;
    int collects = PyGC_Disable(); /* whoever asks is in the middle of something that a finaliser may fork in */
    Raised raised = raised_take();
    PyObject *stack = take(frame);
    int64_t number = stack ? number_of(stack) : 0;
    Py_XDECREF(stack);
    raised_restore(raised); /* without a stack it goes on */
    if (collects) PyGC_Enable();
    noting = 0;
    return number;
}

void stacks_take(void) {
    if (noting || !older) return; /* a finaliser of what goes below */
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

enum { MOST_STACKS = 1 << 16 };

static PyObject *record_stacks(PyObject *Py_UNUSED(module), PyObject *arguments) {
    int is;
    Py_ssize_t asked = MOST_STACKS;
    if (!PyArg_ParseTuple(arguments, "p|n:record_stacks", &is, &asked)) return NULL;
    if (!known && !(known = PyDict_New())) return NULL;
    if (!older && !(older = PyDict_New())) return NULL;
    if (is && !stacks_wanted) {
        most = asked;
        PyDict_Clear(known);
        PyDict_Clear(older);
    }
    current = 0;
    int wanted = stacks_wanted + (is ? 1 : -1);
    __atomic_store_n(&stacks_wanted, wanted > 0 ? wanted : 0, __ATOMIC_RELAXED);
    return PyLong_FromUnsignedLongLong((unsigned long long)(uintptr_t)stack_here);
}

static PyObject *with_stack(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *function = PyTuple_GetItem(arguments, 0);
    PyObject *rest = function ? PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments)) : NULL;
    if (!rest) return NULL;
    stacks_note();
    PyObject *result = PyObject_Call(function, rest, NULL);
    stacks_forget();
    Py_DECREF(rest);
    return result;
}

static PyObject *stack_of(PyObject *Py_UNUSED(module), PyObject *frame) {
    PyFrameObject *here = PyEval_GetFrame();
    if (!here || Py_TYPE(frame) != Py_TYPE((PyObject *)here))
        return PyErr_Format(PyExc_TypeError, "frame is %R: accepted is a frame", frame);
    return PyLong_FromLongLong(noting || !older ? 0 : number_of_frame(frame));
}

static PyObject *recorded_stacks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *all = older ? PyDict_Copy(older) : PyDict_New();
    if (all && older && PyDict_Update(all, known) < 0) Py_CLEAR(all);
    return all;
}

PyMethodDef stacks_methods[] = {
    {"record_stacks", record_stacks, METH_VARARGS,
     "record_stacks(on, most) -> int: number the stacks of threads that take memory, anew where nobody does yet, "
     "until as many calls have ended it; "
     "the address of the C function that tells the number. At least the last most different ones, 65536 by default, "
     "are kept, and at most twice as many."},
    {"with_stack", with_stack, METH_VARARGS,
     "with_stack(function, *arguments): what the function returns, which lets go of Python's lock and then takes "
     "memory for its caller."},
    {"stack_of", stack_of, METH_O,
     "stack_of(frame) -> int: the number of a frame's stack, or 0 where none are numbered."},
    {"recorded_stacks", recorded_stacks, METH_NOARGS,
     "recorded_stacks() -> {(code, line, code, line, ...): number}, of those that are kept: the innermost frame "
     "first."},
    {NULL, NULL, 0, NULL},
};
