#include "held.h"

#include <stdlib.h>
#include <string.h>

void draft_start(Draft *draft) {
    memset(&draft->array, 0, sizeof draft->array);
    draft->array.shape = draft->dimensions;
    draft->array.strides = draft->dimensions + HAMR_MAX_DIMENSIONS;
}

int64_t element_size(int32_t element) {
    switch (element) {
#define SIZE(type, number, name, size, ...) case number: return size;
        HAMR_ELEMENT_TYPES(SIZE)
    default: return 0;
    }
}

hamr_status draft_shape(Draft *draft, int32_t element, int32_t ndim, const int64_t *shape) {
    if (!element_size(element)) return fail(HAMR_ERROR_TYPE, "element is %d: accepted are the types of hamr_element_type", element);
    if (ndim < 0 || ndim > HAMR_MAX_DIMENSIONS) return fail(HAMR_ERROR_VALUE, "ndim is %d: accepted are 0 ... %d", ndim, HAMR_MAX_DIMENSIONS);
    if (ndim && !shape) return fail(HAMR_ERROR_VALUE, "shape is NULL: accepted is the address of %d sizes", ndim);
    draft->array.element = element;
    draft->array.ndim = ndim;
    if (ndim) memcpy(draft->array.shape, shape, (size_t)ndim * sizeof *shape);
    return HAMR_OK;
}

enum { PER_THREAD_STREAM = 2 };

hamr_status resolve_stream(int32_t allocator, int32_t device, uint64_t *stream) {
    const char *backend = allocator == HAMR_ALLOCATOR_ANY ? "cuda" : backend_of(allocator);
    if (*stream != PER_THREAD_STREAM || !backend || strcmp(backend, "cuda") != 0) return HAMR_OK;
    hamr_status status = device < 0 ? keep(capi_functions()->current_device(backend, &device)) : HAMR_OK;
    return status ? status : keep(capi_functions()->resolve_stream(backend, device, PER_THREAD_STREAM, stream));
}

hamr_status draft_place(Draft *draft, const hamr_place *place) {
    hamr_array *array = &draft->array;
    if (!place) {
        array->allocator = HAMR_ALLOCATOR_MALLOC;
        array->device = HAMR_HOST_DEVICE;
        array->transfer = HAMR_SYNC_HOST;
        return HAMR_OK;
    }
    if (place->allocator < HAMR_ALLOCATOR_ANY || place->allocator >= HAMR_ALLOCATOR_COUNT)
        return fail(HAMR_ERROR_VALUE, "allocator is %d: accepted are those of hamr_allocator", place->allocator);
    if (place->transfer < HAMR_ASYNC || place->transfer > HAMR_SYNC)
        return fail(HAMR_ERROR_VALUE, "transfer is %d: accepted are HAMR_ASYNC, HAMR_SYNC_HOST and HAMR_SYNC", place->transfer);
    if (place->reserved) return fail(HAMR_ERROR_VALUE, "reserved is %d: accepted is 0", place->reserved);
    array->allocator = place->allocator;
    array->device = is_of_device(place->allocator) || place->allocator < 0 ? place->device : HAMR_HOST_DEVICE;
    array->stream = (uint64_t)(uintptr_t)place->stream;
    array->transfer = place->transfer;
    return resolve_stream(place->allocator, place->device, &array->stream);
}

hamr_status draft_c_strides(Draft *draft) {
    const hamr_array *array = &draft->array;
    int64_t step = element_size(array->element);
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = step;
        if (array->shape[i] > 1 && __builtin_mul_overflow(step, array->shape[i], &step))
            return fail(HAMR_ERROR_VALUE, "shape has %lld in dimension %d: accepted are sizes whose bytes fit in 63 bits", (long long)array->shape[i], i);
    }
    return HAMR_OK;
}

int64_t count_of(const hamr_array *array) {
    int64_t n = 1;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 0) return 0; /* beside sizes whose product is too large */
        if (__builtin_mul_overflow(n, array->shape[i], &n)) n = INT64_MAX;
    }
    return n;
}

int is_in_order(const hamr_array *array) {
    int64_t step = element_size(array->element);
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] > 1 && array->strides[i] != step) return count_of(array) == 0;
        step *= array->shape[i];
    }
    return 1;
}

static void describe(Held *held) {
    const hamr_array *array = &held->array;
    int64_t n = count_of(array);
    const Share *share = held->share;
    int pooled = share && share->pooled;
    held->info = (hamr_info){
        .size = n, .bytes = n * element_size(array->element), .capacity = array->capacity,
        .shape = array->shape, .strides = array->strides, .stream = (void *)(uintptr_t)array->stream, .ndim = array->ndim,
        .element = array->element, .allocator = array->allocator, .device = array->device, .transfer = array->transfer,
        .flags = (array->flags & 0xffffu) | (share && share->temporary ? HAMR_INFO_TEMPORARY : 0) |
                 (pooled ? 0 : HAMR_INFO_ADDRESS),
        .address = pooled ? NULL : (void *)(uintptr_t)array->pointer,
    };
}

hamr_status held_become(Held *held, const hamr_array *array, Share *share) {
    int64_t *own = held->array.shape, *to = held->dimensions;
    int ndim = array->ndim;
    if (ndim > SHORT && !(to = malloc(2 * (size_t)ndim * sizeof *to))) return fail(HAMR_ERROR_MEMORY, "no memory for %d dimensions", ndim);
    memmove(to + ndim, array->strides, (size_t)ndim * sizeof *to); /* array may be held's own */
    memmove(to, array->shape, (size_t)ndim * sizeof *to);
    held->array = *array;
    held->array.shape = to;
    held->array.strides = to + ndim;
    held->share = share;
    held->array.memory = 0; /* see memory_of: the core may be told later */
    if (own && own != held->dimensions) free(own);
    describe(held);
    return HAMR_OK;
}

void held_end(Held *held) {
    share_end(held->share, held->array.stream);
    held->share = NULL;
    if (held->array.shape && held->array.shape != held->dimensions) free(held->array.shape);
    held->array.shape = NULL;
}

uint64_t memory_of(const Held *held) { return held->share ? atomic_load(&held->share->token) : 0; }

hamr_array held_seen(const Held *held) {
    hamr_array array = held->array;
    if (!held->share) return array;
    held->share->pristine = 0;
    array.memory = memory_of(held);
    if (held->share->finished && array.memory) array.marks = held->share->marks;
    return array;
}

hamr_status held_give(const Held *held, hamr_array *array) {
    hamr_status status = share_tell_core(held->share);
    if (!status) *array = held_seen(held);
    return status;
}

hamr_status check_values(int32_t element, const void *values, int64_t size) {
    if (!element_size(element)) return fail(HAMR_ERROR_TYPE, "element is %d: accepted are the types of hamr_element_type", element);
    if (size < 0 || size > INT64_MAX / element_size(element)) return fail(HAMR_ERROR_VALUE, "size is %lld: accepted are 0 and more, as far as memory goes", (long long)size);
    if (size && !values) return fail(HAMR_ERROR_VALUE, "values is NULL: accepted is the address of %lld elements", (long long)size);
    return HAMR_OK;
}

hamr_array values_array(int32_t element, const void *values, int64_t size, int64_t *dimensions) {
    dimensions[0] = size;
    dimensions[1] = element_size(element);
    uint64_t at = (uint64_t)(uintptr_t)values;
    return (hamr_array){
        .base = at, .pointer = at, .size = (uint64_t)(size * element_size(element)), .capacity = size, .allocator = HAMR_ALLOCATOR_MALLOC,
        .device = HAMR_HOST_DEVICE, .element = element, .transfer = HAMR_SYNC, .flags = HAMR_HOST_REACHABLE, .ndim = 1,
        .shape = dimensions, .strides = dimensions + 1,
    };
}

hamr_array single_value(int32_t element, const void *value) {
    static int64_t none[1];
    uint64_t at = (uint64_t)(uintptr_t)value;
    return (hamr_array){
        .base = at, .pointer = at, .size = (uint64_t)element_size(element), .capacity = 1, .allocator = HAMR_ALLOCATOR_MALLOC,
        .device = HAMR_HOST_DEVICE, .element = element, .flags = HAMR_HOST_REACHABLE | HAMR_READ_ONLY, .shape = none, .strides = none,
    };
}
