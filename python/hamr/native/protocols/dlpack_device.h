/* Devices, as DLPack and Arrow number them. */
#pragma once

#include "array/array.h"
#include "hamr/functions.h"
#include "plain/allocators.h"
#include "plain/dlpack.h"

/* A handle is for code in one space: to a consumer there, memory that several reach is that space's own, which more
 * libraries take than page-locked and managed memory. 0: there is no number. */
static inline int32_t dlpack_device_type(const hamr_array *array, char for_space) {
    if (for_space == FOR_SPACE(HAMR_HOST) && array->flags & HAMR_HOST_REACHABLE) return kDLCPU;
    int32_t type = dlpack_type_of(array->allocator);
    return for_space == FOR_SPACE(HAMR_CUDA) && type == kDLCUDAManaged ? kDLCUDA : type;
}

static inline int dlpack_is_cuda(int32_t device_type) {
    return device_type == kDLCUDA || device_type == kDLCUDAManaged;
}

int dlpack_check_device(int32_t type, int32_t number); /* whether hamr knows it; 0, or -1 with an exception */
