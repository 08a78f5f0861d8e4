/* What arrays and tensors of DLPack say of each other. */
#pragma once

#include "hamr/functions.h"
#include "plain/dlpack.h"

/* The number that a device has there: memory of the host's is on none. */
static inline int32_t tensor_device(int32_t device_type, int32_t device) {
    return (device_type == kDLCUDA || device_type == kDLROCM) && device > 0 ? device : 0;
}

/* Makes tensor what array is on a device of a type, with shape and strides at dimensions: -1. Else the dimension whose
 * stride is no number of elements. */
int tensor_fill(DLTensor *tensor, const hamr_array *array, int32_t device_type, int64_t *dimensions);
/* Makes the strides of array, of which all else is known, those of tensor: -1. Else the dimension whose do not fit. */
int tensor_read_strides(const DLTensor *tensor, hamr_array *array);
