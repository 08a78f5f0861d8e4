/* Whose it is to change an object: one thread after the other. */
#pragma once

#include "base/python.h"

/* An object's is at an address of its own, NULL until the first change. */
typedef struct Turn Turn;

/* Begins the calling thread's turn, which turn_end ends. -1: a signal's exception, or no memory. */
int turn_begin(Turn **turn);
void turn_end(Turn *turn);
/* While signals' handlers run, the thread that has the turn may read and not change. */
void turn_let_read(Turn *turn, int reading);
int turn_wait(Turn *const *turn); /* until no other thread changes the object; -1: a signal's exception */
int turn_wait_both(Turn *const *a, Turn *const *b);
int turn_is_taken(const Turn *turn); /* by any thread */
void turn_free(Turn *turn);
