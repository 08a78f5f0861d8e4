#include "plain/layout.h"

#include <string.h>

/* One with "" for a format that does not exist. */
#define TEXT(format) (sizeof format > 1 ? format : NULL)
#define FACTS(type, number, name, size, kind, dlpack, bits, typestr, format, arrow) \
    [type] = {name, typestr, TEXT(format), TEXT(arrow), size, dlpack},

const ElementFacts element_table[HAMR_ELEMENT_TYPE_COUNT] = {HAMR_ELEMENT_TYPES(FACTS)};

int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes) {
    for (int32_t i = HAMR_INVALID + 1; i < HAMR_ELEMENT_TYPE_COUNT; i++)
        if (element_table[i].code == code && (unsigned)element_table[i].size * 8 == bits && lanes == 1) return i;
    return HAMR_INVALID;
}

void draft_start(Draft *draft) {
    memset(&draft->array, 0, sizeof draft->array);
    draft->array.shape = draft->dimensions;
    draft->array.strides = draft->dimensions + HAMR_MAX_DIMENSIONS;
}

/* Dimensions of size 1, and all of them in an empty array, have strides that mean nothing. */
int array_contiguous(const hamr_array *array, int fortran) {
    int64_t expected = element_size(array->element);
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0) return 1;
    for (int k = 0; k < array->ndim; k++) {
        int i = fortran ? k : array->ndim - 1 - k;
        if (array->shape[i] == 1) continue;
        if (array->strides[i] != expected) return 0;
        expected *= array->shape[i];
    }
    return 1;
}

int array_span(const hamr_array *array, int64_t *low, int64_t *high) {
    int64_t step, bytes = element_size(array->element), reach = bytes;
    int empty = 0;
    *low = 0;
    *high = bytes;
    for (int i = 0; i < array->ndim; i++) {
        int64_t n = array->shape[i];
        if (n < 0) return -1;
        empty |= n == 0;
        if (n <= 1) continue;
        if (__builtin_mul_overflow(bytes, n, &bytes) || __builtin_mul_overflow(n - 1, array->strides[i], &step) ||
            step == INT64_MIN || __builtin_add_overflow(reach, step < 0 ? -step : step, &reach))
            return -1;
        *(step < 0 ? low : high) += step;
    }
    return !empty;
}

int array_bounds(hamr_array *array) {
    int64_t low, high;
    if (array_span(array, &low, &high) <= 0) return 0;
    array->base = array->pointer + (uint64_t)low;
    array->size = (uint64_t)high - (uint64_t)low;
    array->capacity = array_count(array);
    return 1;
}

int64_t array_c_strides(hamr_array *array) {
    int64_t step = element_size(array->element);
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = step;
        if (array->shape[i] > 1 && __builtin_mul_overflow(step, array->shape[i], &step)) return ~i;
    }
    return step;
}
