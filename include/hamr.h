/* hamr for C and C++: memory that any device and any array library can share.
 *
 *     hamr_buffer *field;
 *     int64_t n = 1024;
 *     if (hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, NULL)) return fail(hamr_last_error());
 *     double *values = hamr_data(field);
 *     …
 *     hamr_release(field);
 *
 * Nothing is linked: the first call finds the library, see hamr/open.h, and shares it with Python
 * where that is in the process. What the functions do is said in hamr/interface.h, at the table's
 * entry of the same name. Needs -ldl and -pthread where the C library is older than glibc 2.34. */
#ifndef HAMR_H
#define HAMR_H

#include "hamr/interface.h"
#include "hamr/open.h"
#include "hamr/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Finds the library now. Any function does, at its first call. */
static inline hamr_status hamr_open(void) { return hamr_get() ? HAMR_OK : HAMR_ERROR_LIBRARY; }

/* What went wrong in the calling thread's last call; "" if nothing did. Never NULL. A release that succeeds
 * leaves what there was. */
static inline const char *hamr_last_error(void) {
    const hamr_table *table = hamr_open_error[0] ? NULL : hamr_get();
    return table ? table->last_error() : hamr_open_error;
}

static inline void hamr_last_failure(hamr_failure *failure) {
    const hamr_table *table = hamr_open_error[0] ? NULL : hamr_get();
    memset(failure, 0, sizeof *failure);
    if (table) {
        table->last_failure(failure, sizeof *failure);
    } else {
        failure->status = HAMR_ERROR_LIBRARY;
        failure->message = hamr_open_error;
    }
}

/* NULL without a library. */
static inline const char *hamr_library_version(void) {
    const hamr_table *table = hamr_get();
    return table ? table->library_version() : NULL;
}

#define HAMR_OTHER_FUNCTION(result, name, parameters, arguments, failed)                                             \
    static inline result hamr_##name parameters {                                                                    \
        const hamr_table *table = hamr_get_with(offsetof(hamr_table, name) + sizeof(void (*)(void)), #name);         \
        if (!table) return failed;                                                                                   \
        return table->name arguments;                                                                                \
    }
#define HAMR_VOID_FUNCTION(name, parameters, arguments)                                                              \
    static inline void hamr_##name parameters {                                                                      \
        const hamr_table *table = hamr_get_with(offsetof(hamr_table, name) + sizeof(void (*)(void)), #name);         \
        if (table) table->name arguments;                                                                            \
    }
#define HAMR_FUNCTION(name, parameters, arguments) HAMR_OTHER_FUNCTION(hamr_status, name, parameters, arguments, HAMR_ERROR_LIBRARY)

/* Buffers. */
HAMR_FUNCTION(create, (hamr_buffer **made, int32_t element, int32_t ndim, const int64_t *shape, const hamr_place *place, const void *value), (made,
              element, ndim, shape, place, value))
HAMR_FUNCTION(adopt, (hamr_buffer **made, void *data, int32_t element, int32_t ndim, const int64_t *shape, const int64_t *strides,
              const hamr_place *place, uint32_t flags, hamr_deleter deleter, void *context), (made, data, element, ndim, shape, strides, place,
              flags, deleter, context))
HAMR_FUNCTION(release, (hamr_buffer *buffer), (buffer))
HAMR_OTHER_FUNCTION(const hamr_info *, info_of, (const hamr_buffer *buffer), (buffer), (const hamr_info *)hamr_no_pointer())
HAMR_OTHER_FUNCTION(void *, data, (const hamr_buffer *buffer), (buffer), hamr_no_pointer())
HAMR_FUNCTION(view, (const hamr_buffer *buffer, hamr_buffer **made, int64_t offset, int32_t element, int32_t ndim, const int64_t *shape,
              const int64_t *strides), (buffer, made, offset, element, ndim, shape, strides))

HAMR_FUNCTION(read_only, (const hamr_buffer *buffer, hamr_buffer **made), (buffer, made))
HAMR_FUNCTION(take, (hamr_buffer *buffer, hamr_buffer **made), (buffer, made))

/* Contents. */
HAMR_FUNCTION(reserve, (hamr_buffer *buffer, int64_t size, const void *value), (buffer, size, value))
HAMR_FUNCTION(resize, (hamr_buffer *buffer, int32_t ndim, const int64_t *shape, const void *value), (buffer, ndim, shape, value))
HAMR_FUNCTION(free, (hamr_buffer *buffer), (buffer))
HAMR_FUNCTION(assign, (hamr_buffer *buffer, const hamr_buffer *other), (buffer, other))
HAMR_FUNCTION(assign_values, (hamr_buffer *buffer, int32_t element, const void *values, int64_t size), (buffer, element, values, size))
HAMR_FUNCTION(append, (hamr_buffer *buffer, const hamr_buffer *other), (buffer, other))
HAMR_FUNCTION(append_values, (hamr_buffer *buffer, int32_t element, const void *values, int64_t size), (buffer, element, values, size))
HAMR_FUNCTION(set, (hamr_buffer *buffer, int64_t at, const hamr_buffer *other, int64_t start, int64_t size), (buffer, at, other, start, size))
HAMR_FUNCTION(set_values, (hamr_buffer *buffer, int64_t at, int32_t element, const void *values, int64_t size), (buffer, at, element, values, size))
HAMR_FUNCTION(get_values, (const hamr_buffer *buffer, int64_t start, int32_t element, void *values, int64_t size), (buffer, start, element, values,
              size))
HAMR_FUNCTION(write, (hamr_buffer *buffer, const hamr_buffer *other), (buffer, other))
HAMR_FUNCTION(fill, (hamr_buffer *buffer, int32_t element, const void *value), (buffer, element, value))
HAMR_FUNCTION(copy, (const hamr_buffer *buffer, hamr_buffer **made, int32_t element, const hamr_place *place), (buffer, made, element, place))
HAMR_FUNCTION(copy_many, (int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources, int32_t transfer), (count,
              destinations, sources, transfer))
HAMR_FUNCTION(move, (hamr_buffer *buffer, int32_t allocator, int32_t device), (buffer, allocator, device))
HAMR_FUNCTION(swap, (hamr_buffer *one, hamr_buffer *other), (one, other))
HAMR_FUNCTION(reshape, (const hamr_buffer *buffer, hamr_buffer **made, int32_t ndim, const int64_t *shape, int32_t copying), (buffer, made, ndim,
              shape, copying))
HAMR_FUNCTION(text, (const hamr_buffer *buffer, int64_t limit, char **text), (buffer, limit, text))
HAMR_VOID_FUNCTION(free_text, (char *text), (text))
HAMR_FUNCTION(print, (const hamr_buffer *buffer), (buffer))

/* Reaching the elements. */
HAMR_FUNCTION(access, (hamr_buffer *buffer, int32_t space, int32_t device, int32_t mode, hamr_handle **made), (buffer, space, device, mode, made))
HAMR_OTHER_FUNCTION(const hamr_info *, handle_info, (const hamr_handle *handle), (handle), (const hamr_info *)hamr_no_pointer())
HAMR_OTHER_FUNCTION(void *, handle_data, (const hamr_handle *handle), (handle), hamr_no_pointer())
HAMR_FUNCTION(release_handle, (hamr_handle *handle), (handle))
HAMR_FUNCTION(abandon_handle, (hamr_handle *handle), (handle))
HAMR_FUNCTION(keep_temporaries, (hamr_buffer *buffer, int32_t on), (buffer, on))
HAMR_FUNCTION(changed, (hamr_buffer *buffer), (buffer))

/* Order. */
HAMR_FUNCTION(set_stream, (hamr_buffer *buffer, void *stream, int32_t transfer), (buffer, stream, transfer))
HAMR_FUNCTION(set_transfer, (hamr_buffer *buffer, int32_t transfer), (buffer, transfer))
HAMR_FUNCTION(synchronize, (const hamr_buffer *buffer), (buffer))
HAMR_FUNCTION(wait, (const hamr_buffer *buffer, int64_t milliseconds, int32_t *over), (buffer, milliseconds, over))
HAMR_FUNCTION(order_before, (const hamr_buffer *buffer, void *stream), (buffer, stream))
HAMR_FUNCTION(order_after, (const hamr_buffer *buffer, void *stream), (buffer, stream))

/* Streams and events. */
HAMR_FUNCTION(create_stream, (const char *backend, int32_t device, hamr_stream **made), (backend, device, made))
HAMR_FUNCTION(wrap_stream, (const char *backend, int32_t device, void *native, hamr_stream **made), (backend, device, native, made))
HAMR_OTHER_FUNCTION(void *, native_stream, (const hamr_stream *stream), (stream), NULL)
HAMR_FUNCTION(release_stream, (hamr_stream *stream), (stream))
HAMR_FUNCTION(wait_stream, (const hamr_stream *stream, int64_t milliseconds, int32_t *over), (stream, milliseconds, over))
HAMR_FUNCTION(stream_wait_event, (const hamr_stream *stream, const hamr_event *event), (stream, event))
HAMR_FUNCTION(record_event, (const hamr_stream *stream, int32_t timed, hamr_event **made), (stream, timed, made))
HAMR_FUNCTION(wrap_event, (const char *backend, int32_t device, void *native, hamr_event **made), (backend, device, native, made))
HAMR_OTHER_FUNCTION(void *, native_event, (const hamr_event *event), (event), NULL)
HAMR_FUNCTION(release_event, (hamr_event *event), (event))
HAMR_FUNCTION(wait_event, (const hamr_event *event, int64_t milliseconds, int32_t *over), (event, milliseconds, over))
HAMR_FUNCTION(elapsed, (const hamr_event *from, const hamr_event *to, int64_t *nanoseconds), (from, to, nanoseconds))

/* Devices. */
HAMR_FUNCTION(device_count, (const char *backend, int32_t *count), (backend, count))
HAMR_FUNCTION(current_device, (const char *backend, int32_t *device), (backend, device))
HAMR_FUNCTION(enter_device, (const char *backend, int32_t device, uint64_t *before), (backend, device, before))
HAMR_FUNCTION(leave_device, (const char *backend, uint64_t before), (backend, before))
HAMR_FUNCTION(can_access_peer, (const char *backend, int32_t user, int32_t owner, int32_t *can), (backend, user, owner, can))
HAMR_FUNCTION(enable_peer, (const char *backend, int32_t user, int32_t owner), (backend, user, owner))
HAMR_FUNCTION(disable_peer, (const char *backend, int32_t user, int32_t owner), (backend, user, owner))
HAMR_FUNCTION(memory_info, (const char *backend, int32_t device, int64_t *free, int64_t *total), (backend, device, free, total))
HAMR_FUNCTION(locate, (const void *address, hamr_found *found), (address, found))
HAMR_FUNCTION(has_backend, (const char *name, int32_t *available, char **reason), (name, available, reason))
HAMR_FUNCTION(preferred_allocator, (int32_t for_host, int32_t *allocator), (for_host, allocator))

/* The memory of the process. */
HAMR_OTHER_FUNCTION(int32_t, memory_usage, (hamr_usage *rows, int32_t room), (rows, room), 0)
HAMR_VOID_FUNCTION(reset_peaks, (void), ())
HAMR_FUNCTION(trim, (void), ())
HAMR_FUNCTION(set_limit, (int32_t allocator, int32_t device, int64_t bytes), (allocator, device, bytes))
HAMR_FUNCTION(limit_in_use, (const char *library, const char *backend, int32_t device, int64_t bytes), (library, backend, device, bytes))
HAMR_FUNCTION(limit_kept, (int64_t bytes), (bytes))
HAMR_FUNCTION(configure, (const char *name, const char *value), (name, value))
HAMR_FUNCTION(set_verbose, (int32_t level), (level))

/* DLPack. */
HAMR_FUNCTION(to_dlpack, (const hamr_buffer *buffer, void *stream, struct DLManagedTensorVersioned **made), (buffer, stream, made))
HAMR_FUNCTION(to_old_dlpack, (const hamr_buffer *buffer, void *stream, struct DLManagedTensor **made), (buffer, stream, made))
HAMR_FUNCTION(from_dlpack, (struct DLManagedTensorVersioned *tensor, void *producer, hamr_buffer **made), (tensor, producer, made))
HAMR_FUNCTION(from_old_dlpack, (struct DLManagedTensor *tensor, void *producer, hamr_buffer **made), (tensor, producer, made))

/* Other headers ask. */
HAMR_OTHER_FUNCTION(const void *, other_table, (const char *name, uint32_t version), (name, version), NULL)

#undef HAMR_FUNCTION
#undef HAMR_OTHER_FUNCTION
#undef HAMR_VOID_FUNCTION

/* Of a buffer's info; 0 where there is no buffer. */
static inline int64_t hamr_size(const hamr_buffer *buffer) {
    const hamr_info *info = hamr_info_of(buffer);
    return info ? info->size : 0;
}

/* The name of an allocator, as Python has it; NULL of a number that is none. */
static inline const char *hamr_allocator_name(int32_t allocator) {
    switch (allocator) {
#define HAMR_NAME(allocator, number, name, ...) case number: return name;
        HAMR_ALLOCATOR_FACTS(HAMR_NAME)
#undef HAMR_NAME
    default: return NULL;
    }
}

/* The name of an element type, as NumPy has it; NULL of a number that is none. */
static inline const char *hamr_element_name(int32_t element) {
    switch (element) {
#define HAMR_NAME(type, number, name, ...) case number: return name;
        HAMR_ELEMENT_TYPES(HAMR_NAME)
#undef HAMR_NAME
    default: return NULL;
    }
}

/* In bytes; 0 of a number that is none. */
static inline int64_t hamr_element_size(int32_t element) {
    switch (element) {
#define HAMR_SIZE(type, number, name, size, ...) case number: return size;
        HAMR_ELEMENT_TYPES(HAMR_SIZE)
#undef HAMR_SIZE
    default: return 0;
    }
}

#ifdef __cplusplus
}
#endif

#endif
