#include "hamr_abi.h"
#include "_cgo_export.h"

static hamr_devices devices;
static uint8_t reach[HAMR_ALLOCATORS];

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
    reach,
};

const hamr_functions *hamr_function_table(void) { return &functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }

void hamr_set_devices(int32_t count, void *current, void *attributes, void *context, void *query, void *capturing, void *contexts) {
    devices.cuda_context = (int (*)(void **))context;
    devices.cuda_query = (int (*)(uint64_t))query;
    devices.cuda_capturing = (int (*)(uint64_t, int *))capturing;
    devices.cuda_contexts = contexts;
    devices.cuda_current = (int (*)(int *))current;
    devices.cuda_attributes = (int (*)(unsigned, int *, void **, uint64_t))attributes;
    devices.cuda_count = count;
}

void hamr_set_reach(int32_t allocator, int32_t spaces) { reach[allocator] = (uint8_t)spaces; }
