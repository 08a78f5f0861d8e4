/* What a buffer holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

/* Makes the buffer what the core has made of it. */
static hamr_status become(hamr_buffer *buffer, hamr_array *result) {
    Held *held = &buffer->held;
    uint64_t before = memory_of(held), stream = held->array.stream;
    Share *old = held->share, *share = old;
    int same = result->memory == before;
    if (same && old) old->memory.size = result->size; /* it may have grown */
    if (!same && !(share = result->memory ? share_new(result) : NULL) && result->memory)
        return fail(HAMR_ERROR_MEMORY, "no memory for a handle");
    hamr_status status = held_become(held, result, share);
    if (same) return status;
    share_end(status ? share : old, stream);
    return status;
}

/* The buffer's array for a change, and where its result goes. */
static hamr_status begin(hamr_buffer *buffer, hamr_array *array, Draft *result) {
    GIVE(&buffer->held, array);
    if (buffer->held.share && buffer->held.share->users == 1) array->flags |= HAMR_SOLE;
    draft_start(result);
    return HAMR_OK;
}

#define BEGIN(buffer)                                   \
    CHECK(buffer, BUFFER, "buffer");                    \
    CAPI_LOAD();                                        \
    Draft result;                                       \
    hamr_array array;                                   \
    hamr_status begun = begin(buffer, &array, &result); \
    if (begun) return begun

static hamr_status end(hamr_buffer *buffer, hamr_error *error, Draft *result) {
    return error ? keep(error) : become(buffer, &result->array);
}

hamr_status capi_reserve(hamr_buffer *buffer, int64_t size, const void *value) {
    Draft single;
    BEGIN(buffer);
    return end(buffer, capi_functions()->reserve(&array, size, draft_value(&single, array.element, value),
                                                 &result.array), &result);
}

hamr_status capi_resize(hamr_buffer *buffer, int32_t ndim, const int64_t *shape, const void *value) {
    Draft single;
    BEGIN(buffer);
    return end(buffer, capi_functions()->resize(&array, ndim, shape, draft_value(&single, array.element, value),
                                                &result.array), &result);
}

/* Leaves nothing, of memory that is the caller's then. */
static void become_empty(Held *held) {
    hamr_array empty = held->array;
    int64_t shape[1] = {0}, strides[1] = {element_size(empty.element)};
    empty.base = empty.pointer = empty.size = empty.marks = 0;
    empty.capacity = 0;
    empty.flags &= ~(uint32_t)(HAMR_READ_ONLY | HAMR_GROWS);
    empty.ndim = 1;
    empty.shape = shape;
    empty.strides = strides;
    held_become(held, &empty, NULL); /* cannot fail: one dimension */
}

hamr_status capi_free(hamr_buffer *buffer) {
    CHECK(buffer, BUFFER, "buffer");
    Share *share = buffer->held.share;
    become_empty(&buffer->held);
    share_end(share, buffer->held.array.stream);
    return HAMR_OK;
}

hamr_status capi_take(hamr_buffer *buffer, hamr_buffer **made) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    Object *object = object_new(BUFFER);
    if (!object) return HAMR_ERROR_MEMORY;
    hamr_status status = held_become(&object->buffer.held, &buffer->held.array, buffer->held.share);
    if (status) {
        object_free(object);
        return status;
    }
    object->buffer.cached = buffer->cached;
    buffer->cached = 0;
    become_empty(&buffer->held);
    *made = &object->buffer;
    return HAMR_OK;
}

static hamr_status draft_buffer(Draft *from, const hamr_buffer *other) {
    CHECK(other, BUFFER, "other");
    CAPI_LOAD();
    return held_give(&other->held, &from->array);
}

/* The body of a change of the buffer by what given makes the draft from. */
#define CHANGE(given, name, ...)                                                            \
    do {                                                                                    \
        Draft from;                                                                         \
        hamr_status given_ = given;                                                         \
        if (given_) return given_;                                                          \
        BEGIN(buffer);                                                                      \
        return end(buffer, capi_functions()->name(&array, __VA_ARGS__, &result.array), &result); \
    } while (0)

#include "changes.h" /* those that follow from the core's, which is generated */

hamr_status capi_assign_values(hamr_buffer *buffer, int32_t element, const void *values, int64_t size) {
    CHANGE(draft_values(&from, element, values, size), assign, &from.array);
}

hamr_status capi_append_values(hamr_buffer *buffer, int32_t element, const void *values, int64_t size) {
    CHANGE(draft_values(&from, element, values, size), append, &from.array);
}

hamr_status capi_set(hamr_buffer *buffer, int64_t at, const hamr_buffer *other, int64_t start, int64_t size) {
    CHANGE(draft_buffer(&from, other), set_elements, at, &from.array, start, size);
}

hamr_status capi_set_values(hamr_buffer *buffer, int64_t at, int32_t element, const void *values, int64_t size) {
    CHANGE(draft_values(&from, element, values, size), set_elements, at, &from.array, 0, size);
}

hamr_status capi_write(hamr_buffer *buffer, const hamr_buffer *other) {
    CHANGE(draft_buffer(&from, other), write_elements, &from.array);
}

hamr_status capi_fill(hamr_buffer *buffer, int32_t element, const void *value) {
    CHANGE(draft_values(&from, element, value, 1), fill, draft_value(&from, element, value));
}

hamr_status capi_get_values(const hamr_buffer *buffer, int64_t start, int32_t element, void *values, int64_t size) {
    Draft result, to;
    hamr_status status = draft_values(&to, element, values, size);
    if (status) return status;
    USE(buffer, from);
    draft_start(&result);
    status = keep(capi_functions()->set_elements(&to.array, 0, &from, start, size, &result.array));
    if (!status && result.array.memory) capi_functions()->release(result.array.memory);
    return status;
}

hamr_status capi_copy(const hamr_buffer *buffer, hamr_buffer **made, int32_t element, const hamr_place *place) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    if (element && !element_size(element))
        return fail(HAMR_ERROR_TYPE, "element is %d: accepted are 0 and the types of hamr_element_type", element);
    Draft result, there;
    hamr_status status = HAMR_OK;
    USE(buffer, array);
    int32_t allocator = HAMR_ALLOCATOR_SAME, device = array.device;
    if (place) {
        hamr_place known = *place;
        if (place->allocator == HAMR_ALLOCATOR_SAME) known.allocator = array.allocator;
        draft_start(&there);
        if ((status = draft_place(&there, &known))) return status;
        allocator = there.array.allocator;
        device = there.array.device;
        array.transfer = there.array.transfer;
    }
    draft_start(&result);
    status = keep(capi_functions()->copy(&array, allocator, device, element ? element : array.element, &result.array));
    if (!status) status = buffer_of(&result.array, made);
    if (status || !place) return status;
    /* It was written on the source's stream, where the work on that is ordered. */
    status = capi_set_stream(*made, (void *)(uintptr_t)there.array.stream, there.array.transfer);
    if (status) capi_release(*made);
    return status;
}

/* What lists of count buffers must be. */
static hamr_status check_lists(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                               int32_t transfer) {
    if (count < 0) return fail(HAMR_ERROR_VALUE, "count is %lld: accepted are 0 and more", (long long)count);
    if (transfer < -1 || transfer > HAMR_SYNC)
        return fail(HAMR_ERROR_VALUE, "transfer is %d: accepted are HAMR_ASYNC, HAMR_SYNC_HOST, HAMR_SYNC and -1",
                    transfer);
    if (count && (!destinations || !sources))
        return fail(HAMR_ERROR_VALUE, "%s is NULL: accepted is the address of %lld buffers",
                    destinations ? "sources" : "destinations", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        CHECK(destinations[i], BUFFER, "one of destinations");
        CHECK(sources[i], BUFFER, "one of sources");
    }
    return HAMR_OK;
}

/* Lists of count buffers for the core, the destinations first. The caller frees both. */
static hamr_status give_lists(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                              hamr_array **arrays, hamr_array ***pointers) {
    size_t n = (size_t)count;
    *arrays = calloc(2 * n + 1, sizeof **arrays);
    *pointers = calloc(2 * n + 1, sizeof **pointers);
    if (!*arrays || !*pointers)
        return fail(HAMR_ERROR_MEMORY, "no memory for a list of %lld pairs", (long long)count);
    for (size_t i = 0; i < 2 * n; i++) {
        const hamr_buffer *each = i < n ? destinations[i] : sources[i - n];
        hamr_status status = held_give(&each->held, &(*arrays)[i]);
        if (status) return status;
        (*pointers)[i] = &(*arrays)[i];
    }
    return HAMR_OK;
}

/* copy_many, or copy_blocks by indices, which are both NULL or neither. */
static hamr_status copy_lists(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                              const hamr_buffer *to_index, const hamr_buffer *from_index, int32_t transfer) {
    CAPI_LOAD();
    hamr_array *arrays, **pointers, to, from;
    hamr_status status = give_lists(count, destinations, sources, &arrays, &pointers);
    if (!status && to_index) status = held_give(&to_index->held, &to);
    if (!status && from_index) status = held_give(&from_index->held, &from);
    if (!status)
        status = keep(capi_functions()->copy_many(count, pointers, pointers + count, to_index ? &to : NULL,
                                                  from_index ? &from : NULL, transfer));
    free(arrays);
    free(pointers);
    return status;
}

hamr_status capi_copy_many(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                           int32_t transfer) {
    hamr_status status = check_lists(count, destinations, sources, transfer);
    return status || !count ? status : copy_lists(count, destinations, sources, NULL, NULL, transfer);
}

hamr_status capi_copy_blocks(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *destination_index,
                             const hamr_buffer *const *sources, const hamr_buffer *source_index, int32_t transfer) {
    hamr_status status = check_lists(count, destinations, sources, transfer);
    if (status) return status;
    CHECK(destination_index, BUFFER, "destination_index");
    CHECK(source_index, BUFFER, "source_index");
    return copy_lists(count, destinations, sources, destination_index, source_index, transfer);
}

hamr_status capi_move(hamr_buffer *buffer, int32_t allocator, int32_t device) {
    BEGIN(buffer);
    if (!is_of_device(allocator)) device = HAMR_HOST_DEVICE;
    return end(buffer, capi_functions()->move(&array, allocator, device, &result.array), &result);
}

/* Short dimensions lie in the struct itself. */
static void settle(Held *held, const Held *from) {
    if (held->array.shape != from->dimensions) return;
    held->array.shape = held->dimensions;
    held->array.strides = held->dimensions + held->array.ndim;
    held_describe(held);
}

hamr_status capi_swap(hamr_buffer *one, hamr_buffer *other) {
    CHECK(one, BUFFER, "one");
    CHECK(other, BUFFER, "other");
    if (one == other) return HAMR_OK;
    Held held = one->held;
    int32_t cached = one->cached;
    one->held = other->held;
    one->cached = other->cached;
    other->held = held;
    other->cached = cached;
    settle(&one->held, &other->held);
    settle(&other->held, &one->held);
    return HAMR_OK;
}

hamr_status capi_reshape(const hamr_buffer *buffer, hamr_buffer **made, int32_t ndim, const int64_t *shape,
                         int32_t copying) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    if (copying < 0 || copying > 2) return fail(HAMR_ERROR_VALUE, "copying is %d: accepted are 0, 1 and 2", copying);
    Draft result;
    int32_t is_view = 0;
    USE(buffer, array);
    draft_start(&result);
    hamr_status status = keep(capi_functions()->reshape(&array, ndim, shape, copying, &result.array, &is_view));
    if (status) return status;
    if (result.array.memory != array.memory || !array.memory) return buffer_of(&result.array, made);
    result.array.flags &= ~(uint32_t)HAMR_GROWS;
    atomic_fetch_add(&buffer->held.share->users, 1);
    return buffer_with(&result.array, buffer->held.share, made);
}

hamr_status capi_text(const hamr_buffer *buffer, int64_t limit, char **text) {
    CHECK_RESULT(text, "text");
    CHECK(buffer, BUFFER, "buffer");
    if (limit < 0) return fail(HAMR_ERROR_VALUE, "limit is %lld: accepted are 0, for all, and more", (long long)limit);
    USE(buffer, array);
    return keep(capi_functions()->text(&array, limit, text));
}

void capi_free_text(char *text) { free(text); }

hamr_status capi_print(const hamr_buffer *buffer) {
    char *text = NULL;
    hamr_status status = capi_text(buffer, 0, &text);
    if (status) return status;
    const hamr_info *info = &buffer->held.info;
    const AllocatorFacts *facts = allocator_facts(info->allocator);
    printf("allocator %s, device %d, size %lld, capacity %lld, address %p\n%s\n", facts ? facts->name : "none",
           info->device, (long long)info->size,
           (long long)info->capacity, (void *)(uintptr_t)buffer->held.array.pointer, text);
    free(text);
    return HAMR_OK;
}
