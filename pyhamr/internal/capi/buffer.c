/* Buffers: made, shared with others, and given back. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "spare.h"

static hamr_status finish(Object *object, const hamr_array *array, Share *share, hamr_buffer **made) {
    hamr_status status = object ? held_become(&object->buffer.held, array, share) : HAMR_ERROR_MEMORY;
    if (status) {
        share_end(share, array->stream);
        if (object) object_free(object);
        return status;
    }
    *made = &object->buffer;
    return HAMR_OK;
}

hamr_status buffer_with(const hamr_array *array, Share *share, hamr_buffer **made) {
    return finish(object_new(BUFFER), array, share, made);
}

hamr_status buffer_of(const hamr_array *array, hamr_buffer **made) {
    Share *share = array->memory ? share_new(array) : NULL;
    if (array->memory && !share) return fail(HAMR_ERROR_MEMORY, "no memory for a handle");
    return buffer_with(array, share, made);
}

/* A buffer of memory that is there already. */
static hamr_buffer *create_from_spare(Draft *draft) {
    hamr_array *array = &draft->array;
    Share *share = NULL;
    if (array->allocator != HAMR_ALLOCATOR_MALLOC || array->stream || array->ndim > SHORT) return NULL;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] <= 0) return NULL; /* the core says what is wrong, if anything is */
    int64_t bytes = array_c_strides(array);
    if (bytes < 0) return NULL;
    Object *object = spare_take((uint64_t)bytes, &share);
    if (!object) return NULL;
    share->users = 1;
    array->base = array->pointer = share->memory.base;
    array->size = (uint64_t)bytes;
    array->marks = share->memory.marks;
    array->flags = share->flags;
    array->capacity = bytes / element_size(array->element);
    object->head = (Head){.kind = BUFFER, .generation = capi_generation};
    object->buffer.cached = 0;
    object->buffer.held.array.shape = NULL;
    held_become(&object->buffer.held, array, share); /* cannot fail: few dimensions */
    return &object->buffer;
}

hamr_status capi_create(hamr_buffer **made, int32_t element, int32_t ndim, const int64_t *shape,
                        const hamr_place *place, const void *value) {
    Draft draft;
    CHECK_RESULT(made, "made");
    CAPI_LOAD();
    draft_start(&draft);
    hamr_status status = draft_place(&draft, place);
    if (!status) status = draft_shape(&draft, element, ndim, shape);
    if (status) return status;
    if (!value) {
        hamr_buffer *buffer = create_from_spare(&draft);
        if (buffer) {
            *made = buffer;
            return HAMR_OK;
        }
    }
    status = keep(capi_functions()->create(&draft.array, (void *)(uintptr_t)value, value ? element : 0));
    if (!status) status = buffer_of(&draft.array, made);
    if (!status && (*made)->held.share) (*made)->held.share->pristine = 1;
    return status;
}

typedef struct {
    hamr_deleter deleter;
    void *data, *context;
} Foreign;

static void finished(uint64_t key) {
    Foreign *foreign = (Foreign *)(uintptr_t)key;
    if (foreign->deleter) foreign->deleter(foreign->data, foreign->context);
    free(foreign);
}

/* The core asks the runtimes about memory of devices. */
static hamr_error *adopt_by_core(hamr_array *array, uint64_t key, uint64_t producer) {
    const hamr_functions *functions = capi_functions();
    if (array->allocator == HAMR_ALLOCATOR_ANY || is_of_device(array->allocator))
        return functions->adopt_device(array, key, finished, producer);
    return functions->adopt(array, key, finished);
}

static hamr_status adopted(Draft *draft, int foreign, hamr_buffer **made) {
    hamr_status status = buffer_of(&draft->array, made);
    if (!status && (*made)->held.share) (*made)->held.share->foreign = (char)foreign;
    return status;
}

/* The deleter is armed at last: after an error it is the caller's to call. */
hamr_status adopt_foreign(Draft *draft, hamr_deleter deleter, void *context, uint64_t producer, hamr_buffer **made) {
    Foreign *foreign = malloc(sizeof *foreign);
    if (!foreign) return fail(HAMR_ERROR_MEMORY, "no memory for a handle");
    *foreign = (Foreign){.data = (void *)(uintptr_t)draft->array.pointer, .context = context};
    hamr_status status = keep(adopt_by_core(&draft->array, (uint64_t)(uintptr_t)foreign, producer));
    if (status) {
        free(foreign);
        return status;
    }
    if (!(status = adopted(draft, 1, made))) foreign->deleter = deleter;
    return status;
}

hamr_status capi_adopt(hamr_buffer **made, void *data, int32_t element, int32_t ndim, const int64_t *shape,
                       const int64_t *strides,
                       const hamr_place *place, uint32_t flags, hamr_deleter deleter, void *context) {
    Draft draft;
    CHECK_RESULT(made, "made");
    CAPI_LOAD();
    draft_start(&draft);
    hamr_status status = draft_place(&draft, place);
    if (!status) status = draft_shape(&draft, element, ndim, shape);
    if (!status && !strides) status = draft_c_strides(&draft);
    if (status) return status;
    if (flags & ~(uint32_t)(HAMR_ADOPT_READ_ONLY | HAMR_ADOPT_TAKE))
        return fail(HAMR_ERROR_VALUE, "flags is %#x: accepted are HAMR_ADOPT_READ_ONLY and HAMR_ADOPT_TAKE",
                    (unsigned)flags);
    if (flags & HAMR_ADOPT_TAKE && deleter)
        return fail(HAMR_ERROR_VALUE,
                    "both HAMR_ADOPT_TAKE and a deleter are given: accepted is one of them, since the memory is freed "
                    "once");
    if (strides && ndim) memcpy(draft.array.strides, strides, (size_t)ndim * sizeof *strides);
    draft.array.pointer = (uint64_t)(uintptr_t)data;
    if (flags & HAMR_ADOPT_READ_ONLY) draft.array.flags |= HAMR_READ_ONLY;
    if (!(flags & HAMR_ADOPT_TAKE)) return adopt_foreign(&draft, deleter, context, 0, made);
    status = keep(adopt_by_core(&draft.array, 0, 0));
    return status ? status : adopted(&draft, 0, made);
}

hamr_status capi_release(hamr_buffer *buffer) {
    CHECK_RELEASED(buffer, buffer->head, BUFFER, "buffer");
    held_end(&buffer->held);
    object_free(buffer);
    return HAMR_OK;
}

static const Held *held_of(const void *object, Kind kind, const char *name) {
    if (object && ((const Head *)object)->kind == (int32_t)kind)
        return kind == BUFFER ? &((const hamr_buffer *)object)->held : &((const hamr_handle *)object)->held;
    object_check(object, kind, name);
    return NULL;
}

const hamr_info *capi_info_of(const hamr_buffer *buffer) {
    const Held *held = held_of(buffer, BUFFER, "buffer");
    return held ? &held->info : NULL;
}

const hamr_info *capi_handle_info(const hamr_handle *handle) {
    const Held *held = held_of(handle, HANDLE, "handle");
    return held ? &held->info : NULL;
}

/* Whoever has an address of a device's memory may use it on any stream. Of other memory the info has it. */
static void *tell(const Held *held) {
    if (!held) return NULL;
    if (held->share && !(held->info.flags & HAMR_INFO_ADDRESS)) memory_tell_address(&held->share->memory);
    return (void *)(uintptr_t)held->array.pointer;
}

void *capi_data(const hamr_buffer *buffer) { return tell(held_of(buffer, BUFFER, "buffer")); }

void *capi_handle_data(const hamr_handle *handle) { return tell(held_of(handle, HANDLE, "handle")); }

static hamr_status check_inside(const hamr_array *source, const hamr_array *view, int64_t *offset) {
    int64_t low, high, first, last;
    int touched = array_span(view, &first, &last);
    if (!touched) {
        *offset = 0; /* of no elements */
        return HAMR_OK;
    }
    if (touched > 0 && array_span(source, &low, &high) > 0 && !__builtin_add_overflow(first, *offset, &first) &&
        !__builtin_add_overflow(last, *offset, &last) && first >= low && last <= high)
        return HAMR_OK;
    return fail(HAMR_ERROR_INDEX,
                "offset is %lld bytes, and with shape and strides it reaches outside of the buffer's elements",
                (long long)*offset);
}

/* Another buffer of the memory, without room behind its elements. */
static hamr_status beside(const hamr_buffer *buffer, hamr_array array, hamr_buffer **made) {
    array.capacity = array_count(&array);
    array.flags &= ~(uint32_t)HAMR_GROWS;
    Share *share = buffer->held.share;
    if (share) atomic_fetch_add(&share->users, 1);
    return buffer_with(&array, share, made);
}

hamr_status capi_view(const hamr_buffer *buffer, hamr_buffer **made, int64_t offset, int32_t element, int32_t ndim,
                      const int64_t *shape,
                      const int64_t *strides) {
    Draft draft;
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    draft_start(&draft);
    hamr_status status = draft_shape(&draft, element ? element : buffer->held.array.element, ndim, shape);
    for (int i = 0; !status && i < ndim; i++)
        if (shape[i] < 0)
            status = fail(HAMR_ERROR_VALUE, "shape has %lld in dimension %d: accepted are 0 and more",
                          (long long)shape[i], i);
    if (!status) status = draft_c_strides(&draft);
    if (status) return status;
    if (strides && ndim) memcpy(draft.array.strides, strides, (size_t)ndim * sizeof *strides);
    hamr_array array = held_seen(&buffer->held); /* from now on others use the memory, too */
    if ((status = check_inside(&array, &draft.array, &offset))) return status;
    array.element = draft.array.element;
    array.ndim = ndim;
    array.shape = draft.array.shape;
    array.strides = draft.array.strides;
    if (array.pointer) array.pointer += (uint64_t)offset;
    return beside(buffer, array, made);
}

hamr_status capi_read_only(const hamr_buffer *buffer, hamr_buffer **made) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    hamr_array array = held_seen(&buffer->held);
    array.flags |= HAMR_READ_ONLY;
    return beside(buffer, array, made);
}
