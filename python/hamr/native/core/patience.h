/* Operations of the core that take long, on the thread that handles signals. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

/* HAMR_PROMPT on the thread that handles signals, else 0: to be added to the flags of a call. */
uint32_t patience_flags(void);

/* With the GIL, after a call that was given patience_flags: waits for its outcome as long as that takes, while signals
 * are handled. Where a handler raises an exception, or forks and this is the child, the error is one that core_raise
 * makes that exception of: the core then uses nothing any more that the call was given. Handlers are Python code. */
hamr_error *patience_outcome(hamr_error *error);

/* Calls the core with an array and waits for the outcome, while signals are handled. */
#define PATIENT_CALL(error, array, call)         \
    do {                                         \
        (array)->flags |= patience_flags();      \
        Py_BEGIN_ALLOW_THREADS                   \
        error = call;                            \
        Py_END_ALLOW_THREADS                     \
        error = patience_outcome(error);         \
        (array)->flags &= ~HAMR_PROMPT;          \
    } while (0)
