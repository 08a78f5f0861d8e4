/* A device's elements as page-locked memory of the host. */
#include <string.h>

#include "calls.h"
#include "stored.h"

/* The allocator of page-locked memory of the runtime that has an allocator's; HAMR_UNKNOWN_ALLOCATOR: there is none. */
static int32_t page_locked_beside(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    for (int32_t i = 0; facts && i < HAMR_ALLOCATOR_COUNT; i++)
        if (memory_kind(i) == HAMR_PINNED && strcmp(facts->backend, allocator_table[i].backend) == 0) return i;
    return HAMR_UNKNOWN_ALLOCATOR;
}

static int32_t space_of(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
#define FIND(space, number, name, ...) \
    if (facts && strcmp(facts->backend, #name) == 0) return space;
    HAMR_DEVICE_SPACES(FIND)
#undef FIND
    return HAMR_HOST;
}

/* Makes the elements of one those of the other; both have memory, which they keep. */
static hamr_status write_elements(const Held *to, const Held *from) {
    Draft result;
    hamr_array target, source;
    GIVE(to, &target);
    GIVE(from, &source);
    draft_start(&result);
    return keep(capi_functions()->write_elements(&target, &source, &result.array));
}

/* Page-locked memory for what a handle reaches, with its elements unless all of them are to be written. */
static hamr_status beside(const hamr_handle *handle, int32_t pinned, int32_t mode, hamr_buffer **made) {
    const hamr_info *info = &handle->held.info;
    hamr_place place = {pinned, HAMR_CURRENT_DEVICE, NULL, HAMR_SYNC, 0};
    hamr_buffer *buffer;
    hamr_status status = capi_create(&buffer, info->element, info->ndim, info->shape, &place, NULL);
    if (!status && mode != HAMR_WRITE && (status = write_elements(&buffer->held, &handle->held))) capi_release(buffer);
    if (!status) *made = buffer;
    return status;
}

hamr_status capi_create_mirror(hamr_buffer *buffer, int32_t initialize, hamr_mirror **made) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    const hamr_info *info = &buffer->held.info;
    int32_t mode = info->flags & HAMR_INFO_READ_ONLY ? HAMR_READ : initialize ? HAMR_READ_WRITE : HAMR_WRITE;
    int32_t pinned = info->flags & HAMR_INFO_REACHABLE(HAMR_HOST) || !info->size ? HAMR_UNKNOWN_ALLOCATOR
        : page_locked_beside(info->allocator);
    Object *object = object_new(MIRROR);
    if (!object) return HAMR_ERROR_MEMORY;
    struct hamr_mirror *mirror = &object->mirror;
    mirror->mode = mode;
    hamr_status status;
    if (pinned == HAMR_UNKNOWN_ALLOCATOR) {
        status = capi_access(buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, mode, &mirror->handle);
    } else {
        /* As the device's own, so that nobody else writes the elements meanwhile. */
        status = capi_access(buffer, space_of(info->allocator), info->device, mode | HAMR_STRIDED, &mirror->handle);
        if (!status && (status = beside(mirror->handle, pinned, mode, &mirror->pinned)))
            capi_abandon_handle(mirror->handle);
    }
    if (status) {
        object_free(mirror);
        return status;
    }
    if (mode == HAMR_READ && mirror->pinned) {
        mirror->pinned->held.array.flags |= HAMR_READ_ONLY;
        held_describe(&mirror->pinned->held);
    }
    *made = mirror;
    return HAMR_OK;
}

const hamr_info *capi_mirror_info(const hamr_mirror *mirror) {
    if (object_check(mirror, MIRROR, "mirror")) return NULL;
    return mirror->pinned ? &mirror->pinned->held.info : &mirror->handle->held.info;
}

void *capi_mirror_data(const hamr_mirror *mirror) {
    if (object_check(mirror, MIRROR, "mirror")) return NULL;
    return mirror->pinned ? capi_data(mirror->pinned) : capi_handle_data(mirror->handle);
}

static hamr_status end_mirror(hamr_mirror *mirror, int commit) {
    CHECK_RELEASED(mirror, mirror->head, MIRROR, "mirror");
    int here = mirror->head.generation == capi_generation;
    hamr_status status = HAMR_OK;
    if (commit && mirror->pinned && mirror->mode != HAMR_READ)
        status = here ? write_elements(&mirror->handle->held, &mirror->pinned->held)
            : object_check(mirror, MIRROR, "mirror");
    if (status == HAMR_ERROR_MEMORY) return status;
    if (status) commit = 0;
    if (commit && !mirror->pinned) {
        status = capi_release_handle(mirror->handle);
        if (status == HAMR_ERROR_MEMORY) return status;
    } else {
        hamr_status ended = commit ? capi_release_handle(mirror->handle) : capi_abandon_handle(mirror->handle);
        if (!status) status = ended;
    }
    capi_release(mirror->pinned);
    object_free(mirror);
    return status;
}

hamr_status capi_release_mirror(hamr_mirror *mirror) { return end_mirror(mirror, 1); }

hamr_status capi_abandon_mirror(hamr_mirror *mirror) { return end_mirror(mirror, 0); }
