/* Which Python code allocates, while memory is recorded. */
#pragma once

#include "base/python.h"

extern int stacks_wanted; /* memory is recorded, with stacks */
void stacks_take(void);
void stacks_drop(void);

/* With the GIL, before an operation of the core that may take memory on this thread: the core asks for
 * the number of what is noted. Costs nothing while nobody records. */
static inline void stacks_note(void) {
    if (__atomic_load_n(&stacks_wanted, __ATOMIC_RELAXED)) stacks_take();
}
/* At its end. */
static inline void stacks_forget(void) {
    if (__atomic_load_n(&stacks_wanted, __ATOMIC_RELAXED)) stacks_drop();
}
extern PyMethodDef stacks_methods[];
