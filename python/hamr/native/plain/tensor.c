#include "plain/tensor.h"

#include <stddef.h>

#include "plain/dlpack.h"
#include "plain/layout.h"

/* In elements. Consumers may look at a stride that means nothing, too: it is the array's where it is a number of
 * elements forwards, else the one of C order, as it is without elements. */
static int put_dimensions(const hamr_array *array, int empty, int64_t *shape, int64_t *strides) {
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

int tensor_fill(DLTensor *tensor, const hamr_array *array, int32_t device_type, int64_t *dimensions) {
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

/* A stride in bytes; 0 if it does not fit. CuPy 14 divides negative ones as unsigned numbers: those come back by a
 * product of 64 bits. */
static int in_bytes(int64_t stride, int64_t size, int64_t *bytes) {
    uint64_t product;
    if (!__builtin_mul_overflow(stride, size, bytes)) return 1;
    if (stride < 0 || __builtin_mul_overflow((uint64_t)stride, (uint64_t)size, &product)) return 0;
    *bytes = (int64_t)product;
    return 1;
}

int tensor_read_strides(const DLTensor *tensor, hamr_array *array) {
    int64_t size = element_size(array->element);
    for (int i = 0; i < array->ndim; i++) {
        if (in_bytes(tensor->strides[i], size, &array->strides[i])) continue;
        if (array->shape[i] > 1) return i;
        array->strides[i] = size; /* which means nothing, however large it was */
    }
    return -1;
}
