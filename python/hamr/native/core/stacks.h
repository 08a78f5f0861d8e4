/* Which Python code allocates, while memory is recorded. */
#ifndef HAMR_CORE_STACKS_H
#define HAMR_CORE_STACKS_H

#include "base/python.h"

/* With the GIL, before an operation of the core that may take memory on this thread: the core asks for
 * the number of what is noted. Costs nothing while nobody records. */
void stacks_note(void);
void stacks_forget(void); /* at its end */
extern PyMethodDef stacks_methods[];

#endif
