/* What is done when memory runs out: others are asked to give back what they do not use. */
#pragma once

#include "base/python.h"
#include "core/stacks.h"
#include "hamr/functions.h"

/* Of one operation. */
typedef struct {
    char *tried; /* what was done, for the error */
    char *held;  /* who has the device's memory, likewise */
    uint64_t helped; /* relief_helped when it began, or was tried again */
    int asked;       /* who was asked, see relief.c */
} Relief;

extern uint64_t relief_helped; /* how often memory was given back to some operation */

/* With the GIL, before an operation that may take memory. */
static inline Relief relief_begin(void) {
    stacks_note();
    return (Relief){.helped = __atomic_load_n(&relief_helped, __ATOMIC_RELAXED)};
}

void relief_free(Relief *relief);
static inline void relief_end(Relief *relief) {
    if (relief->tried || relief->held) relief_free(relief);
    stacks_forget();
}

/* With the GIL, after the core's answer to an operation that has left everything as it was: whether it is to be tried
 * again, after *error was freed. flags, if not NULL, are those of the array whose options new memory follows. Runs
 * Python code, which may fork: the table of functions is to be asked for anew. At last *error says what was tried. */
int core_relieves(Relief *relief, hamr_error **error, uint32_t *flags);
extern PyMethodDef relief_methods[];
