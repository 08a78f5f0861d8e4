/* What the core does with an array while nobody else changes it. */
#pragma once

#include "array/array.h"
#include "base/python.h"

typedef enum { DONE, FAILED, FREED, UNKNOWN_MEMORY, NO_LIBRARY } Outcome;

/* run is called with self's turn, and runs no Python code. After NO_LIBRARY it is called again
 * when the core is loaded, after UNKNOWN_MEMORY when the core knows the memory and prepare,
 * which may be NULL, has returned 0 and not -1 with an exception. */
Outcome in_turn(Array *self, Outcome (*run)(Array *self, void *state), int (*prepare)(void *state), void *state);
