#include "native.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(Owner *) finished_owners;

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

Owner *owner_of_memory(void *memory) {
    Owner *owner = owner_new(NULL, NULL);
    if (owner) owner->memory = memory;
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
    free(owner->memory);
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
