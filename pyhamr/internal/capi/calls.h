/* The functions of the table, which hamr/interface.h describes; table.c has them in order. */
#pragma once

#include "held.h"

/* capi_ and the name of each entry, of the entry's type. */
const char *capi_library_version(void);
hamr_status capi_create(hamr_buffer **made, int32_t element, int32_t ndim, const int64_t *shape,
                        const hamr_place *place, const void *value);
hamr_status capi_adopt(hamr_buffer **made, void *data, int32_t element, int32_t ndim, const int64_t *shape,
                       const int64_t *strides,
                       const hamr_place *place, uint32_t flags, hamr_deleter deleter, void *context);
hamr_status capi_release(hamr_buffer *buffer);
const hamr_info *capi_info_of(const hamr_buffer *buffer);
hamr_status capi_view(const hamr_buffer *buffer, hamr_buffer **made, int64_t offset, int32_t element, int32_t ndim,
                      const int64_t *shape,
                      const int64_t *strides);
hamr_status capi_reserve(hamr_buffer *buffer, int64_t size, const void *value);
hamr_status capi_resize(hamr_buffer *buffer, int32_t ndim, const int64_t *shape, const void *value);
hamr_status capi_free(hamr_buffer *buffer);
hamr_status capi_assign(hamr_buffer *buffer, const hamr_buffer *other);
hamr_status capi_assign_values(hamr_buffer *buffer, int32_t element, const void *values, int64_t size);
hamr_status capi_append(hamr_buffer *buffer, const hamr_buffer *other);
hamr_status capi_append_values(hamr_buffer *buffer, int32_t element, const void *values, int64_t size);
hamr_status capi_set(hamr_buffer *buffer, int64_t at, const hamr_buffer *other, int64_t start, int64_t size);
hamr_status capi_set_values(hamr_buffer *buffer, int64_t at, int32_t element, const void *values, int64_t size);
hamr_status capi_get_values(const hamr_buffer *buffer, int64_t start, int32_t element, void *values, int64_t size);
hamr_status capi_write(hamr_buffer *buffer, const hamr_buffer *other);
hamr_status capi_fill(hamr_buffer *buffer, int32_t element, const void *value);
hamr_status capi_copy(const hamr_buffer *buffer, hamr_buffer **made, int32_t element, const hamr_place *place);
hamr_status capi_copy_many(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                           int32_t transfer);
hamr_status capi_move(hamr_buffer *buffer, int32_t allocator, int32_t device);
hamr_status capi_swap(hamr_buffer *one, hamr_buffer *other);
hamr_status capi_reshape(const hamr_buffer *buffer, hamr_buffer **made, int32_t ndim, const int64_t *shape,
                         int32_t copying);
hamr_status capi_text(const hamr_buffer *buffer, int64_t limit, char **text);
void capi_free_text(char *text);
hamr_status capi_print(const hamr_buffer *buffer);
hamr_status capi_access(hamr_buffer *buffer, int32_t space, int32_t device, int32_t mode, hamr_handle **made);
const hamr_info *capi_handle_info(const hamr_handle *handle);
hamr_status capi_release_handle(hamr_handle *handle);
hamr_status capi_abandon_handle(hamr_handle *handle);
hamr_status capi_keep_temporaries(hamr_buffer *buffer, int32_t on);
hamr_status capi_changed(hamr_buffer *buffer);
hamr_status capi_set_stream(hamr_buffer *buffer, void *stream, int32_t transfer);
hamr_status capi_set_transfer(hamr_buffer *buffer, int32_t transfer);
hamr_status capi_synchronize(const hamr_buffer *buffer);
hamr_status capi_wait(const hamr_buffer *buffer, int64_t milliseconds, int32_t *over);
hamr_status capi_order_before(const hamr_buffer *buffer, void *stream);
hamr_status capi_order_after(const hamr_buffer *buffer, void *stream);
hamr_status capi_create_stream(const char *backend, int32_t device, hamr_stream **made);
hamr_status capi_wrap_stream(const char *backend, int32_t device, void *native, hamr_stream **made);
void *capi_native_stream(const hamr_stream *stream);
hamr_status capi_release_stream(hamr_stream *stream);
hamr_status capi_wait_stream(const hamr_stream *stream, int64_t milliseconds, int32_t *over);
hamr_status capi_stream_wait_event(const hamr_stream *stream, const hamr_event *event);
hamr_status capi_record_event(const hamr_stream *stream, int32_t timed, hamr_event **made);
hamr_status capi_wrap_event(const char *backend, int32_t device, void *native, hamr_event **made);
void *capi_native_event(const hamr_event *event);
hamr_status capi_release_event(hamr_event *event);
hamr_status capi_wait_event(const hamr_event *event, int64_t milliseconds, int32_t *over);
hamr_status capi_elapsed(const hamr_event *from, const hamr_event *to, int64_t *nanoseconds);
hamr_status capi_device_count(const char *backend, int32_t *count);
hamr_status capi_current_device(const char *backend, int32_t *device);
hamr_status capi_enter_device(const char *backend, int32_t device, uint64_t *before);
hamr_status capi_leave_device(const char *backend, uint64_t before);
hamr_status capi_can_access_peer(const char *backend, int32_t user, int32_t owner, int32_t *can);
hamr_status capi_enable_peer(const char *backend, int32_t user, int32_t owner);
hamr_status capi_memory_info(const char *backend, int32_t device, int64_t *free, int64_t *total);
hamr_status capi_locate(const void *address, hamr_found *found);
hamr_status capi_has_backend(const char *name, int32_t *available, char **reason);
hamr_status capi_preferred_allocator(int32_t for_host, int32_t *allocator);
int32_t capi_memory_usage(hamr_usage *rows, int32_t room);
void capi_reset_peaks(void);
hamr_status capi_trim(void);
hamr_status capi_set_limit(int32_t allocator, int32_t device, int64_t bytes);
hamr_status capi_limit_in_use(const char *library, const char *backend, int32_t device, int64_t bytes);
hamr_status capi_limit_kept(int64_t bytes);
hamr_status capi_configure(const char *name, const char *value);
hamr_status capi_set_verbose(int32_t level);
hamr_status capi_to_dlpack(const hamr_buffer *buffer, void *stream, struct DLManagedTensorVersioned **made);
hamr_status capi_to_old_dlpack(const hamr_buffer *buffer, void *stream, struct DLManagedTensor **made);
hamr_status capi_from_dlpack(struct DLManagedTensorVersioned *tensor, void *producer, hamr_buffer **made);
hamr_status capi_from_old_dlpack(struct DLManagedTensor *tensor, void *producer, hamr_buffer **made);
hamr_status capi_disable_peer(const char *backend, int32_t user, int32_t owner);
void *capi_data(const hamr_buffer *buffer);
void *capi_handle_data(const hamr_handle *handle);
hamr_status capi_read_only(const hamr_buffer *buffer, hamr_buffer **made);
hamr_status capi_take(hamr_buffer *buffer, hamr_buffer **made);
const void *capi_other_table(const char *name, uint32_t version);

/* NULL for programs of another version. It does not start the core: each function does that. */
HAMR_EXPORT const hamr_table *hamr_get_table(uint32_t version);

/* A new buffer of what the core has made, whose reference it takes over. */
hamr_status buffer_of(const hamr_array *array, hamr_buffer **made);

/* A new buffer with a part in memory that others have, which it takes over. */
hamr_status buffer_with(const hamr_array *array, Share *share, hamr_buffer **made);

/* Foreign memory: what from_dlpack and adopt have in common. */
hamr_status adopt_foreign(Draft *draft, hamr_deleter deleter, void *context, uint64_t producer, hamr_buffer **made);
