#include "native.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(Owner *) finished_owners;

/* PyGILState_Check, which every CPython has, though the limited API does not. */
static int (*holds_gil)(void);
static atomic_int drain_pending; /* the interpreter will call drain_when_asked */
static atomic_int ending;        /* the interpreter does nothing more that is asked of it */

Owner *owner_new(PyObject *object, Py_buffer *view) {
    Owner *owner = PyMem_Malloc(sizeof *owner);
    if (!owner) {
        PyErr_NoMemory();
        return NULL;
    }
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
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (owner->view) {
        PyBuffer_Release(owner->view);
        PyMem_Free(owner->view);
    }
    Py_XDECREF(owner->object);
    if (owner->memory) owner->finish(owner->memory);
    PyMem_Free(owner);
    PyErr_Restore(type, value, traceback);
}

/* Lock-free, since the core may call from a thread that Python never saw. */
void owner_finished(uint64_t key) {
    Owner *owner = (Owner *)(uintptr_t)key;
    owner->next = atomic_load(&finished_owners);
    while (!atomic_compare_exchange_weak(&finished_owners, &owner->next, owner)) {}
}

void owner_drain(void) {
    /* The end of an owner may be that of another one: a chain of them is undone
     * in a loop, since nested calls would run out of stack. */
    static _Thread_local int draining;
    if (draining || !atomic_load_explicit(&finished_owners, memory_order_relaxed)) return;
    draining = 1;
    for (Owner *owner; (owner = atomic_exchange(&finished_owners, NULL));) {
        while (owner) {
            Owner *next = owner->next;
            owner_drop(owner);
            owner = next;
        }
    }
    draining = 0;
}

static int drain_when_asked(void *unused) {
    (void)unused;
    atomic_store(&drain_pending, 0);
    owner_drain();
    return 0;
}

/* Where this thread does not hold the GIL it must not wait for it: who holds it may
 * wait for this thread, and at the end of the interpreter nobody gets it any more. */
void owner_finished_soon(Owner *owner) {
    owner_finished((uint64_t)(uintptr_t)owner);
    if (!Py_IsInitialized()) return;
    if (holds_gil && holds_gil()) owner_drain();
    else if (!atomic_load(&ending) && !atomic_exchange(&drain_pending, 1) && Py_AddPendingCall(drain_when_asked, NULL) < 0)
        atomic_store(&drain_pending, 0); /* its queue is full: the next call of hamr's drains */
}

static PyObject *end_owners(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    owner_drain();
    atomic_store(&ending, 1);
    Py_RETURN_NONE;
}

PyMethodDef owner_functions[] = {
    {"end_owners", end_owners, METH_NOARGS, "end_owners(): from now on what other threads finish with is kept; for the interpreter's end."},
    {NULL, NULL, 0, NULL},
};

int owner_setup(void) {
    *(void **)&holds_gil = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    return 0;
}
