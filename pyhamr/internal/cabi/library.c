/* The table of this copy of the library, which table.c has, and what else is of C. */
#include "table.h"

#include <stdlib.h>

hamr_devices hamr_known_devices;

static hamr_raise_function raise_error;

void hamr_set_raise(hamr_raise_function raise) { raise_error = raise; }

const hamr_functions *hamr_function_table(void) { return &hamr_own_functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }

int hamr_call_raise(hamr_error *error) {
    if (!raise_error) {
        free(error);
        return 0;
    }
    raise_error(error);
    return 1;
}

/* Whoever sees that there are devices sees the rest. */
void hamr_set_devices(hamr_devices known) {
    int32_t count = known.cuda_count;
    known.cuda_count = 0;
    hamr_known_devices = known;
    __atomic_store_n(&hamr_known_devices.cuda_count, count, __ATOMIC_RELEASE);
}
