#include "array/turn.h"

#include <pythread.h>
#include <stdlib.h>

#include "base/python.h"
#include "core/core.h"

struct Turn {
    PyThread_type_lock lock;
    uint64_t generation;  /* a lock from before a fork may be held by nobody */
    unsigned long thread; /* that has the turn */
    int depth;            /* how often */
    int reading;          /* a signal is being handled in the middle of it */
};

static Turn *turn_new(void) {
    Turn *turn = calloc(1, sizeof *turn);
    if (turn && !(turn->lock = PyThread_allocate_lock())) {
        free(turn);
        turn = NULL;
    }
    if (!turn) PyErr_NoMemory();
    else turn->generation = core_generation;
    return turn;
}

void turn_free(Turn *turn) {
    if (!turn) return;
    if (turn->generation == core_generation) PyThread_free_lock(turn->lock);
    free(turn);
}

/* A thread that waits handles signals, as it does for Python's own locks. */
static int take(Turn *turn) {
    while (PyThread_acquire_lock_timed(turn->lock, 0, 0) != PY_LOCK_ACQUIRED) {
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(turn->lock, -1, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_ACQUIRED) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
    }
    return 0;
}

int turn_begin(Turn **at) {
    Turn *turn = *at;
    if (!turn || turn->generation != core_generation) {
        Turn *fresh = turn_new();
        if (!fresh) return -1;
        *at = fresh;
        /* The handler of a signal may have forked in the middle of a turn, which this thread ends. */
        if (!turn || !turn->depth || turn->thread != PyThread_get_thread_ident()) turn_free(turn);
        turn = fresh;
    }
    unsigned long thread = PyThread_get_thread_ident();
    /* An error that CPython 3.11 makes may run a finaliser. The change has failed then. */
    if (turn->depth && turn->thread == thread) {
        if (turn->reading)
            return RAISE(PyExc_RuntimeError,
                         "a signal's handler cannot change a buffer in the middle of a change of it");
        turn->depth++;
        return 0;
    }
    if (take(turn) < 0) return -1;
    turn->thread = thread;
    turn->depth = 1;
    return 0;
}

void turn_let_read(Turn *turn, int reading) {
    if (turn->generation == core_generation) turn->reading = reading;
}

void turn_end(Turn *turn) {
    if (--turn->depth) return;
    PyThread_release_lock(turn->lock);
}

static int is_anothers(const Turn *turn) {
    return turn && turn->depth && turn->generation == core_generation && turn->thread != PyThread_get_thread_ident();
}

int turn_is_taken(const Turn *turn) { return turn && turn->depth && turn->generation == core_generation; }

/* Until nobody is changing the array: what then is done at once needs no turn. */
int turn_wait(Turn *const *at) {
    while (is_anothers(*at)) {
        Turn *turn = *at;
        if (take(turn) < 0) return -1;
        PyThread_release_lock(turn->lock);
    }
    return 0;
}

int turn_wait_both(Turn *const *a, Turn *const *b) {
    while (is_anothers(*a) || is_anothers(*b))
        if (turn_wait(a) < 0 || turn_wait(b) < 0) return -1;
    return 0;
}
