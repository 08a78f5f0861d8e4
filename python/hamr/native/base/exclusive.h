/* One thread at a time in this extension, as the GIL has it, in builds for free-threaded CPython.
 *
 * All here relies on the GIL: fields, tables and counters have no locks. Where there is none, one critical section of
 * CPython's stands for it. It is entered wherever Python or C calls this extension, and CPython leaves it where a
 * thread would let go of the GIL: around Py_BEGIN_ALLOW_THREADS, and where Python code that was called waits for
 * anything. In ordinary builds all of this is nothing. */
#pragma once

#include "base/python.h"

#ifdef Py_GIL_DISABLED

typedef struct {
    PyCriticalSection section;
    int nested; /* the thread was in it: there is nothing to leave */
} Exclusive;

void exclusive_begin(Exclusive *here);
void exclusive_end(Exclusive *here);
#define EXCLUSIVE_BEGIN      \
    {                        \
        Exclusive exclusive; \
        exclusive_begin(&exclusive);
#define EXCLUSIVE_END              \
        exclusive_end(&exclusive); \
    }

int exclusive_setup(void); /* 0, or -1 with an exception */
void exclusive_forget(void); /* in a forked child, before anything else: who was in the section is the parent's */
/* As CPython's functions, in whose place they stand. What they are given enters the section from then on. */
PyObject *exclusive_type(PyObject *module, PyType_Spec *spec, PyObject *base);
int exclusive_functions(PyObject *module, PyMethodDef *functions);
PyObject *exclusive_function(PyMethodDef *function, PyObject *self, PyObject *module);

#else

#define EXCLUSIVE_BEGIN {
#define EXCLUSIVE_END }
#define exclusive_setup() 0
#define exclusive_forget() ((void)0)
#define exclusive_type PyType_FromModuleAndSpec
#define exclusive_functions PyModule_AddFunctions
#define exclusive_function PyCFunction_NewEx

#endif
