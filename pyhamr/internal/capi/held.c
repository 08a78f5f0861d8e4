#include "held.h"

#include <stdlib.h>
#include <string.h>

hamr_status draft_shape(Draft *draft, int32_t element, int32_t ndim, const int64_t *shape) {
    if (!element_size(element))
        return fail(HAMR_ERROR_TYPE, "element is %d: accepted are the types of hamr_element_type", element);
    if (ndim < 0 || ndim > HAMR_MAX_DIMENSIONS)
        return fail(HAMR_ERROR_VALUE, "ndim is %d: accepted are 0 ... %d", ndim, HAMR_MAX_DIMENSIONS);
    if (ndim && !shape) return fail(HAMR_ERROR_VALUE, "shape is NULL: accepted is the address of %d sizes", ndim);
    draft->array.element = element;
    draft->array.ndim = ndim;
    if (ndim) memcpy(draft->array.shape, shape, (size_t)ndim * sizeof *shape);
    return HAMR_OK;
}

enum { PER_THREAD_STREAM = 2 };

hamr_status resolve_stream(int32_t allocator, int32_t device, uint64_t *stream) {
    if (*stream != PER_THREAD_STREAM || (allocator != HAMR_ALLOCATOR_ANY && !is_of_cuda(allocator))) return HAMR_OK;
    hamr_status status = device < 0 ? keep(capi_functions()->current_device("cuda", &device)) : HAMR_OK;
    return status ? status : keep(capi_functions()->resolve_stream("cuda", device, PER_THREAD_STREAM, stream));
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
        return fail(HAMR_ERROR_VALUE, "transfer is %d: accepted are HAMR_ASYNC, HAMR_SYNC_HOST and HAMR_SYNC",
                    place->transfer);
    if (place->reserved) return fail(HAMR_ERROR_VALUE, "reserved is %d: accepted is 0", place->reserved);
    array->allocator = place->allocator;
    array->device = is_of_device(place->allocator) || place->allocator < 0 ? place->device : HAMR_HOST_DEVICE;
    array->stream = (uint64_t)(uintptr_t)place->stream;
    array->transfer = place->transfer;
    return resolve_stream(place->allocator, place->device, &array->stream);
}

hamr_status draft_c_strides(Draft *draft) {
    int64_t bytes = array_c_strides(&draft->array);
    if (bytes >= 0) return HAMR_OK;
    return fail(HAMR_ERROR_VALUE, "shape has %lld in dimension %d: accepted are sizes whose bytes fit in 63 bits",
                (long long)draft->array.shape[~bytes], (int)~bytes);
}

void held_describe(Held *held) {
    const hamr_array *array = &held->array;
    int64_t n = array_count(array);
    const Share *share = held->share;
    int pooled = share && is_pooled(share->memory.allocator);
    held->info = (hamr_info){
        .size = n, .bytes = n * element_size(array->element), .capacity = array->capacity,
        .shape = array->shape, .strides = array->strides, .stream = (void *)(uintptr_t)array->stream,
        .ndim = array->ndim,
        .element = array->element, .allocator = array->allocator, .device = array->device, .transfer = array->transfer,
        .flags = (array->flags & 0xffffu) | (share && share->temporary ? HAMR_INFO_TEMPORARY : 0) |
                 (pooled ? 0 : HAMR_INFO_ADDRESS),
        .address = pooled ? NULL : (void *)(uintptr_t)array->pointer,
    };
}

hamr_status held_become(Held *held, const hamr_array *array, Share *share) {
    int64_t *own = held->array.shape, *to = held->dimensions;
    int ndim = array->ndim;
    if (ndim > SHORT && !(to = malloc(2 * (size_t)ndim * sizeof *to)))
        return fail(HAMR_ERROR_MEMORY, "no memory for %d dimensions", ndim);
    memmove(to + ndim, array->strides, (size_t)ndim * sizeof *to); /* array may be held's own */
    memmove(to, array->shape, (size_t)ndim * sizeof *to);
    held->array = *array;
    held->array.shape = to;
    held->array.strides = to + ndim;
    held->share = share;
    held->array.memory = 0; /* see memory_of: the core may be told later */
    if (own && own != held->dimensions) free(own);
    held_describe(held);
    return HAMR_OK;
}

void held_set_order(Held *held, uint64_t stream, int32_t transfer) {
    held->array.stream = stream;
    held->info.stream = (void *)(uintptr_t)stream;
    held->array.transfer = held->info.transfer = transfer;
}

void held_end(Held *held) {
    share_end(held->share, held->array.stream);
    held->share = NULL;
    if (held->array.shape && held->array.shape != held->dimensions) free(held->array.shape);
    held->array.shape = NULL;
}

uint64_t memory_of(const Held *held) { return held->share ? share_token(held->share) : 0; }

hamr_array held_seen(const Held *held) {
    hamr_array array = held->array;
    if (!held->share) return array;
    held->share->pristine = 0;
    array.memory = memory_of(held);
    if (held->share->finished && array.memory) array.marks = held->share->memory.marks;
    return array;
}

hamr_status held_give(const Held *held, hamr_array *array) {
    hamr_status status = share_tell_core(held->share);
    if (!status) *array = held_seen(held);
    return status;
}

hamr_status draft_values(Draft *draft, int32_t element, const void *values, int64_t size) {
    if (!element_size(element))
        return fail(HAMR_ERROR_TYPE, "element is %d: accepted are the types of hamr_element_type", element);
    if (size < 0 || size > INT64_MAX / element_size(element))
        return fail(HAMR_ERROR_VALUE, "size is %lld: accepted are 0 and more, as far as memory goes", (long long)size);
    if (size && !values)
        return fail(HAMR_ERROR_VALUE, "values is NULL: accepted is the address of %lld elements", (long long)size);
    draft_value(draft, element, values);
    hamr_array *array = &draft->array;
    array->size *= (uint64_t)size;
    array->capacity = array->shape[0] = size;
    array->strides[0] = element_size(element);
    array->transfer = HAMR_SYNC;
    array->flags = HAMR_HOST_REACHABLE;
    array->ndim = 1;
    return HAMR_OK;
}

hamr_array *draft_value(Draft *draft, int32_t element, const void *value) {
    draft_start(draft);
    hamr_array *array = &draft->array;
    array->base = array->pointer = (uint64_t)(uintptr_t)value;
    array->size = (uint64_t)element_size(element);
    array->capacity = 1;
    array->allocator = HAMR_ALLOCATOR_MALLOC;
    array->device = HAMR_HOST_DEVICE;
    array->element = element;
    array->flags = HAMR_HOST_REACHABLE | HAMR_READ_ONLY;
    return value ? array : NULL;
}
