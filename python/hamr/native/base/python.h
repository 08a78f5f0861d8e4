/* Python's own header, as all files here want it. Everything runs with the GIL held unless it says otherwise. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The headers of 3.12 take these objects for immortal, which 3.11 counts like others. */
#undef Py_RETURN_NONE
#undef Py_RETURN_TRUE
#undef Py_RETURN_FALSE
#define Py_RETURN_NONE return Py_NewRef(Py_None)
#define Py_RETURN_TRUE return Py_NewRef(Py_True)
#define Py_RETURN_FALSE return Py_NewRef(Py_False)

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

/* -1 with an exception, whose class and text are those of PyErr_Format. */
#define RAISE(...) (PyErr_Format(__VA_ARGS__), -1)

/* 0, or -1 with an exception: a function that Python calls got another number of arguments. */
static inline int arity(Py_ssize_t got, Py_ssize_t wanted, const char *name) {
    return got == wanted ? 0 : RAISE(PyExc_TypeError, "%s takes %zd arguments, got %zd", name, wanted, got);
}

/* Has *reference name another object, of which it takes over a reference, before the end of what it named. */
static inline void replace_reference(PyObject **reference, PyObject *object) {
    PyObject *before = *reference;
    *reference = object;
    Py_XDECREF(before);
}

/* An exception that is to wait, or none. */
typedef struct {
    PyObject *type, *value, *traceback;
} Raised;

static inline Raised raised_take(void) {
    Raised raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    return raised;
}

static inline void raised_restore(Raised raised) { PyErr_Restore(raised.type, raised.value, raised.traceback); }
