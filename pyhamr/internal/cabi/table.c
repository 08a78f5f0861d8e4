#include "hamr_abi.h"
#include "_cgo_export.h"

static const hamr_functions functions = {
    HAMR_ABI_VERSION,
    hamrCreate,
    hamrAdopt,
    hamrRelease,
};

const hamr_functions *hamr_function_table(void) { return &functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }
