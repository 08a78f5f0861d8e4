/* What arrays and tensors of DLPack say of each other. */
#pragma once

#include "hamr/functions.h"
#include "plain/dlpack.h"
#include "plain/layout.h"

/* The number that a device has there: memory of the host's is on none. */
static inline int32_t tensor_device(int32_t device_type, int32_t device) {
    return (device_type == kDLCUDA || device_type == kDLROCM) && device > 0 ? device : 0;
}

/* In elements. Consumers may look at a stride that means nothing, too: it is the array's where it is a number of
 * elements forwards, else the one of C order, as it is without elements. */
static inline int put_dimensions(const hamr_array *array, int empty, int64_t *shape, int64_t *strides) {
    int64_t size = element_size(array->element), step = 1;
    for (int i = array->ndim - 1; i >= 0; i--) {
        int64_t n = shape[i] = array->shape[i], stride = array->strides[i];
        if (empty || (n == 1 && (stride < 0 || stride % size))) strides[i] = step;
        else if (stride % size) return i;
        else strides[i] = stride / size;
        if (n > 1) step *= n;
    }
    return -1;
}

/* Makes tensor what array is on a device of a type, with shape and strides at dimensions: -1. Else the dimension whose
 * stride is no number of elements. */
static inline int tensor_fill(DLTensor *tensor, const hamr_array *array, int32_t device_type, int64_t *dimensions) {
    const ElementFacts *facts = element_facts(array->element);
    int empty = array_count(array) == 0;
    *tensor = (DLTensor){
        .data = empty ? NULL : (void *)(uintptr_t)array->pointer,
        .device = {device_type, tensor_device(device_type, array->device)},
        .ndim = array->ndim, .dtype = {facts->code, (uint8_t)(8 * facts->size), 1},
        .shape = dimensions, .strides = dimensions + array->ndim,
    };
    return put_dimensions(array, empty, tensor->shape, tensor->strides);
}

/* Makes the strides of array, of which all else is known, those of tensor: -1. Else the dimension whose do not fit. */
int tensor_read_strides(const DLTensor *tensor, hamr_array *array);
