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
    hamrRead,
    hamrCovering,
    hamrLeave,
    hamrReleaseAfter,
    hamrOrderBefore,
    &devices,
};

const hamr_functions *hamr_function_table(void) { return &functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }

/* Whoever sees that there are devices sees the rest. */
void hamr_set_devices(hamr_devices known) {
    int32_t count = known.cuda_count;
    known.cuda_count = 0;
    devices = known;
    __atomic_store_n(&devices.cuda_count, count, __ATOMIC_RELEASE);
}
