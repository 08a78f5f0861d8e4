#include "array/in_turn.h"

#include "array/array.h"
#include "array/turn.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"

/* Makes the core know the memory. */
static int tell(Array *self) {
    Block *block = (Block *)Py_XNewRef((PyObject *)self->block);
    int known = block ? block_register(block) : 0;
    Py_XDECREF((PyObject *)block);
    return known;
}

Outcome in_turn(Array *self, Outcome (*run)(Array *self, void *state), int (*prepare)(void *state), void *state) {
    for (;;) {
        if (turn_begin(&self->turn) < 0) return FAILED;
        Turn *turn = self->turn;
        Outcome outcome = run(self, state);
        turn_end(turn);
        if (outcome == NO_LIBRARY) {
            if (core_load() < 0) return FAILED;
        } else if (outcome == UNKNOWN_MEMORY) {
            if (tell(self) < 0 || (prepare && prepare(state) < 0)) return FAILED;
        } else {
            return outcome;
        }
    }
}
