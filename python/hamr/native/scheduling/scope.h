/* What a thread or task is in: the scopes of contexts, with their devices and streams. */
#pragma once

#include "base/python.h"
#include "scheduling/placed.h"
#include "scheduling/product.h"

typedef struct Context {
    PyObject_HEAD
    StreamPlace place;
    PyObject *outer;   /* the blocks around this one; NULL: it is not entered */
    PyObject *blocks;  /* those with this one, and it */
    PyObject *token;   /* of the variable's, to have those around again */
    Succession *succession;
    struct Context *enclosing; /* the scope around this one in the same task, if it was not suspended */
    unsigned enclosing_scope;
    uint64_t before;   /* what was current, for restore */
    uint64_t inside;   /* what was when the scope was suspended; it is an outermost one then */
    unsigned long thread;
    unsigned scope;       /* how often it was entered: a suspension is of one scope */
    unsigned suspensions; /* which may be within each other, or of tasks that wait at the same time */
    char activated;
} Context; /* a ScopedContext */

/* The variable of the blocks that a thread or task is in, and how to leave one that is not the innermost. */
void scope_set_hooks(PyObject *variable, PyObject *without);

/* Each returns 0, or -1 with an exception. */
int scope_enter(Context *self);
int scope_exit(Context *self);
void scope_forget(Context *self); /* of one that is left open */

/* What is current on the thread outside of the scope and of all that the task is in is so until as many calls of
 * resume. A coroutine that waits leaves the thread to others. */
PyObject *scope_suspend(Context *self);                /* what was suspended; NULL with an exception */
int scope_resume(PyObject *suspended);                 /* of scopes that have ended, nothing */

void scope_setup(void);
