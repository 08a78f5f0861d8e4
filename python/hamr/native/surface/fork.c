/* What a forked child is to forget. */
#include "surface/fork.h"

#include <pthread.h>

#include "base/exclusive.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"
#include "memory/owner.h"

/* Runs inside fork(): before CPython comes to Python's hooks it drops what other
 * threads held, and hooks of others may drop buffers, too. */
static void forget_parent(void) {
    exclusive_forget();
    core_forget();
    blocks_forget();
    owners_forget();
}

int fork_setup(void) {
    static int registered;
    if (registered) return 0;
    if (pthread_atfork(NULL, NULL, forget_parent) != 0) return PyErr_NoMemory(), -1;
    registered = 1;
    return 0;
}

static PyObject *after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    owner_drain();
    Py_RETURN_NONE;
}

PyMethodDef fork_functions[] = {
    {"after_fork", after_fork, METH_NOARGS, "after_fork(): drop what the parent's Go core had finished with."},
    {NULL, NULL, 0, NULL},
};
