#include "hamr_abi.h"
#include "_cgo_export.h"

static hamr_devices devices;

static const hamr_functions functions = {
    HAMR_ABI_VERSION,
    hamrCreate,
    hamrAdopt,
    hamrRelease,
    hamrAdoptDevice,
    hamrAccess,
    hamrCovering,
    &devices,
};

const hamr_functions *hamr_function_table(void) { return &functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }

void hamr_set_devices(int32_t count, void *current) {
    devices.cuda_current = (int (*)(int *))current;
    devices.cuda_count = count;
}
