/* Where code in a space can touch the elements, and in which order. */
#include <string.h>

#include "calls.h"

static hamr_status handle_of(const hamr_buffer *buffer, uint64_t memory, const hamr_array *result, uint64_t access,
                             int32_t mode, hamr_handle **made) {
    Share *share = buffer->held.share;
    if (result->memory == memory) {
        if (share) atomic_fetch_add(&share->users, 1);
    } else if (result->memory) {
        if (!(share = share_new(result))) return fail(HAMR_ERROR_MEMORY, "no memory for a handle");
        share->temporary = !(result->flags & HAMR_MAPPED);
    } else {
        share = NULL;
    }
    Object *object = object_new(HANDLE);
    hamr_status status = object ? held_become(&object->handle.held, result, share) : HAMR_ERROR_MEMORY;
    if (status) {
        share_end(share, result->stream);
        if (object) object_free(object);
        return status;
    }
    object->handle.access = access;
    object->handle.mode = mode;
    *made = &object->handle;
    return HAMR_OK;
}

hamr_status capi_access(hamr_buffer *buffer, int32_t space, int32_t device, int32_t mode, hamr_handle **made) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    if (space < HAMR_HOST || space > HAMR_SYCL)
        return fail(HAMR_ERROR_VALUE, "space is %d: accepted are those of hamr_space", space);
    int strided = mode > 0 && mode & HAMR_STRIDED;
    if (strided) mode -= HAMR_STRIDED;
    if (mode < HAMR_READ || mode > HAMR_PLAIN)
        return fail(HAMR_ERROR_VALUE,
                    "mode is %d: accepted are HAMR_READ, HAMR_WRITE, HAMR_READ_WRITE and HAMR_PLAIN, each with "
                    "HAMR_STRIDED or without", mode);
    CAPI_LOAD();
    Draft result;
    uint64_t access = 0;
    hamr_array array = held_seen(&buffer->held);
    int apart = !strided && !array_contiguous(&array, 0);
    if (mode == HAMR_PLAIN && !apart && space == HAMR_HOST && host_in_place(&array, array.marks))
        return handle_of(buffer, array.memory, &array, 0, mode, made);
    GIVE(&buffer->held, &array);
    draft_start(&result);
    if (buffer->cached) array.flags |= HAMR_KEPT;
    if (apart) array.flags |= HAMR_IN_ORDER;
    const hamr_functions *functions = capi_functions();
    hamr_status status = keep(mode == HAMR_PLAIN ? functions->access(&array, space, device, &result.array)
                                                 : functions->open_access(&array, space, device, mode, &result.array,
                                                                          &access));
    if (status) return status;
    int kept = (result.array.flags & HAMR_KEPT) != 0;
    result.array.flags &= ~(uint32_t)HAMR_KEPT;
    status = handle_of(buffer, array.memory, &result.array, access, mode, made);
    if (status && access) functions->free(functions->end_access(access, 0, 0, NULL, NULL));
    /* Others use it on their own streams. */
    if (!status && kept && (*made)->held.share) (*made)->held.share->memory.stream = UINT64_MAX;
    return status;
}

static hamr_status end_handle(hamr_handle *handle, int commit) {
    CHECK_RELEASED(handle, handle->head, HANDLE, "handle");
    hamr_status status = HAMR_OK;
    int here = handle->head.generation == capi_generation;
    if (handle->access && here) {
        status = keep(capi_functions()->end_access(handle->access, commit, 0, NULL, NULL));
        if (status == HAMR_ERROR_MEMORY && commit) return status;
    } else if (commit && handle->access && handle->held.info.flags & HAMR_INFO_TEMPORARY) {
        status = fail(HAMR_ERROR_FORKED,
                      "handle was made before fork(), and what was written to it stays in this child: the parent has "
                      "its own");
    }
    held_end(&handle->held);
    object_free(handle);
    return status;
}

hamr_status capi_release_handle(hamr_handle *handle) { return end_handle(handle, handle && handle->mode != HAMR_READ); }

hamr_status capi_abandon_handle(hamr_handle *handle) { return end_handle(handle, 0); }

hamr_status capi_changed(hamr_buffer *buffer) {
    USE(buffer, array);
    return keep(capi_functions()->changed(&array));
}

hamr_status capi_keep_temporaries(hamr_buffer *buffer, int32_t on) {
    CHECK(buffer, BUFFER, "buffer");
    buffer->cached = on != 0;
    return on ? HAMR_OK : capi_changed(buffer);
}

static hamr_status check_transfer(int32_t transfer) {
    if (transfer >= HAMR_ASYNC && transfer <= HAMR_SYNC) return HAMR_OK;
    return fail(HAMR_ERROR_VALUE, "transfer is %d: accepted are HAMR_ASYNC, HAMR_SYNC_HOST and HAMR_SYNC", transfer);
}

hamr_status capi_set_transfer(hamr_buffer *buffer, int32_t transfer) {
    CHECK(buffer, BUFFER, "buffer");
    hamr_status status = check_transfer(transfer);
    if (!status) held_set_order(&buffer->held, buffer->held.array.stream, transfer);
    return status;
}

/* Who has the memory waits for what the old stream holds. */
hamr_status capi_set_stream(hamr_buffer *buffer, void *stream, int32_t transfer) {
    uint64_t wanted = (uint64_t)(uintptr_t)stream;
    USE(buffer, array);
    hamr_status status = check_transfer(transfer);
    if (status) return status;
    if ((status = resolve_stream(array.allocator, array.device, &wanted))) return status;
    if (wanted != array.stream && array.memory && is_of_device(array.allocator) &&
        (status = keep(capi_functions()->leave(array.memory, array.stream))))
        return status;
    held_set_order(&buffer->held, wanted, transfer);
    return HAMR_OK;
}

hamr_status capi_synchronize(const hamr_buffer *buffer) {
    USE(buffer, array);
    return keep(capi_functions()->synchronize(&array));
}

hamr_status capi_wait(const hamr_buffer *buffer, int64_t milliseconds, int32_t *over) {
    CHECK_RESULT(over, "over");
    USE(buffer, array);
    return keep(capi_functions()->wait_array(&array, milliseconds < 0 ? INT64_MAX : milliseconds, over));
}

hamr_status capi_order_before(const hamr_buffer *buffer, void *stream) {
    USE(buffer, array);
    return keep(capi_functions()->order_before(&array, (uint64_t)(uintptr_t)stream));
}

hamr_status capi_order_after(const hamr_buffer *buffer, void *stream) {
    USE(buffer, array);
    if (!array.memory || !is_of_device(array.allocator)) return HAMR_OK; /* the host has no streams */
    return keep(capi_functions()->leave(array.memory, (uint64_t)(uintptr_t)stream));
}
