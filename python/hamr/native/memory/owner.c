#include "memory/owner.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/python.h"

static _Atomic(Owner *) finished_owners;

static PyInterpreterState *interpreter;
static atomic_int drain_pending; /* the interpreter will call drain_when_asked */
static atomic_int ending;        /* the interpreter does nothing more that is asked of it */
static atomic_int asking;        /* threads that are asking it, perhaps */

/* C's memory, since what a consumer has of it may be used after the interpreter's end. */
Owner *owner_new(PyObject *object, Py_buffer *view) {
    Owner *owner = malloc(sizeof *owner);
    if (!owner) return PyErr_NoMemory(), NULL;
    Py_XINCREF(object);
    *owner = (Owner){.object = object, .view = view};
    return owner;
}

Owner *owner_of_memory(void *memory, void (*finish)(void *)) {
    Owner *owner = owner_new(NULL, NULL);
    if (!owner) return NULL;
    owner->memory = memory;
    owner->finish = finish;
    return owner;
}

void owner_drop(Owner *owner) {
    if (!owner) return;
    Raised raised = raised_take();
    if (owner->view) {
        PyBuffer_Release(owner->view);
        PyMem_Free(owner->view);
    }
    Py_XDECREF(owner->object);
    if (owner->memory) owner->finish(owner->memory);
    free(owner);
    raised_restore(raised);
}

/* Lock-free, since the core may call from a thread that Python never saw. */
void owner_finished(uint64_t key) {
    Owner *owner = (Owner *)(uintptr_t)key;
    owner->next = atomic_load(&finished_owners);
    while (!atomic_compare_exchange_weak(&finished_owners, &owner->next, owner)) {}
}

/* The end of an owner may be that of another one: a chain of them is undone in a
 * loop, since nested calls would run out of stack. */
static _Thread_local int draining;

static void drain(void) {
    for (Owner *owner; atomic_load_explicit(&finished_owners, memory_order_relaxed) &&
         (owner = atomic_exchange(&finished_owners, NULL));) {
        while (owner) {
            Owner *next = owner->next;
            owner_drop(owner);
            owner = next;
        }
    }
}

void owner_drain(void) {
    if (draining || !atomic_load_explicit(&finished_owners, memory_order_relaxed)) return;
    draining = 1;
    drain();
    draining = 0;
}

void owner_finished_here(Owner *owner) {
    if (draining) {
        owner_finished((uint64_t)(uintptr_t)owner);
        return;
    }
    draining = 1;
    owner_drop(owner);
    drain();
    draining = 0;
}

static int drain_when_asked(void *Py_UNUSED(unused)) {
    atomic_store(&drain_pending, 0);
    /* CPython 3.11 lets the interpreter of the thread that asked do it. */
    if (PyInterpreterState_Get() == interpreter) owner_drain();
    return 0;
}

/* Where this thread does not hold the GIL it must not wait for it: who holds it may
 * wait for this thread, and at the end of the interpreter nobody gets it any more. */
static void ask_to_drain(void) {
    atomic_fetch_add(&asking, 1);
    if (!atomic_load(&ending) && !atomic_exchange(&drain_pending, 1) && Py_AddPendingCall(drain_when_asked, NULL) < 0)
        atomic_store(&drain_pending, 0); /* its queue is full: the next call of hamr's drains */
    atomic_fetch_sub(&asking, 1);
}

void owner_finished_soon(Owner *owner) {
    if (lock_held()) {
        owner_finished_here(owner);
        return;
    }
    owner_finished((uint64_t)(uintptr_t)owner);
    ask_to_drain();
}

void owner_drain_soon(void) {
    if (!atomic_load_explicit(&finished_owners, memory_order_relaxed)) return;
    if (lock_held()) owner_drain();
    else ask_to_drain();
}

void owners_forget(void) {
    atomic_store(&drain_pending, 0);
    atomic_store(&asking, 0);
}

static PyObject *end_owners(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    owner_drain();
    atomic_store(&ending, 1);
    while (atomic_load(&asking)) sched_yield(); /* for a moment: asking takes no lock of Python's */
    Py_RETURN_NONE;
}

PyMethodDef owner_functions[] = {
    {"end_owners", end_owners, METH_NOARGS,
     "end_owners(): from now on what other threads finish with is kept; for the interpreter's end."},
    {NULL, NULL, 0, NULL},
};

int owner_setup(void) {
    interpreter = PyInterpreterState_Get();
    return 0;
}
