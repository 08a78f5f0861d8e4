#include "core/patience.h"

#include <stdlib.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"

/* A process's first thread is Python's main one, in a forked child, too. */
static int is_main_thread(void) {
    static _Thread_local uint64_t asked; /* the generation: a fork makes another thread the first */
    static _Thread_local int is;
    if (asked != core_generation) {
        is = (pid_t)syscall(SYS_gettid) == getpid();
        asked = core_generation;
    }
    return is;
}

uint32_t patience_flags(void) { return is_main_thread() ? HAMR_PROMPT : 0; }

hamr_error *patience_outcome(hamr_error *error) {
    uint64_t generation = core_generation;
    hamr_error *interrupted = NULL;
    while (error && error->kind == HAMR_BUSY) {
        uint64_t operation = (uint64_t)error->size;
        free(error);
        if (PyErr_CheckSignals() < 0) interrupted = core_interruption();
        if (generation != core_generation) { /* of the parent, whose operation it is */
            if (!interrupted && core_forked_within() < 0) interrupted = core_interruption();
            return interrupted;
        }
        Py_BEGIN_ALLOW_THREADS
        error = interrupted ? core_functions()->stop(operation) : core_functions()->proceed(operation);
        Py_END_ALLOW_THREADS
    }
    if (!interrupted) return error;
    free(error);
    return interrupted;
}
