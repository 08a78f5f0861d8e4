#include "plain/tensor.h"

#include "plain/dlpack.h"
#include "plain/layout.h"

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
