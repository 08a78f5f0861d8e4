/* The functions of hamr_store_table, which hamr/store_interface.h describes; store_table.c has them in order. */
#pragma once

#include "object.h"

Numbered *numbered_new(Kind kind); /* NULL: no memory, which is told */
void numbered_free(Numbered *numbered); /* with its text */
hamr_status buffer_leased(const hamr_array *array, uint64_t lease, hamr_buffer **made);

hamr_status stored_connect(const char *path, int64_t milliseconds, hamr_store **made);
const char *stored_path(const hamr_store *store);
hamr_status stored_close(hamr_store *store);
hamr_status stored_serve(const char *path, int64_t host_limit, int64_t device_limit, const char *spill,
                         hamr_store_server **made);
const char *stored_server_path(const hamr_store_server *server);
hamr_status stored_end_server(hamr_store_server *server);
hamr_status stored_create(hamr_store *store, int32_t element, int32_t ndim, const int64_t *shape,
                          const hamr_place *place, uint32_t flags,
                          const void *metadata, size_t metadata_bytes, hamr_store_builder **made);
hamr_store_id stored_builder_id(const hamr_store_builder *builder);
hamr_buffer *stored_builder_buffer(const hamr_store_builder *builder);
hamr_status stored_seal(hamr_store_builder *builder, hamr_buffer **made);
hamr_status stored_abort(hamr_store_builder *builder);
hamr_status stored_put(hamr_store *store, const hamr_buffer *buffer, uint32_t flags, const void *metadata,
                       size_t metadata_bytes, hamr_store_id *id);
hamr_status stored_get(hamr_store *store, const hamr_store_id *id, int32_t unsafe, int64_t milliseconds,
                       hamr_buffer **made);
hamr_status stored_delete(hamr_store *store, const hamr_store_id *id, int32_t force);
hamr_status stored_put_name(hamr_store *store, const char *name, const hamr_store_id *id, int32_t replace);
hamr_status stored_get_name(hamr_store *store, const char *name, int64_t milliseconds, hamr_store_id *id);
hamr_status stored_drop_name(hamr_store *store, const char *name);
hamr_status stored_exists(hamr_store *store, const hamr_store_id *id, int32_t *there, int32_t *sealed);
hamr_status stored_describe(hamr_store *store, const hamr_store_id *id, hamr_store_info *info);
hamr_status stored_metadata(hamr_store *store, const hamr_store_id *id, char **text, size_t *bytes);
hamr_status stored_list(hamr_store *store, uint32_t which, const char *prefix, uint64_t *after, hamr_store_id *ids,
                        int64_t room, int64_t *found);
hamr_status stored_wait(hamr_store *store, const hamr_store_id *ids, int64_t n, int64_t count, int64_t milliseconds,
                        hamr_store_id *ready, int64_t *found);
hamr_status stored_figures(hamr_store *store, hamr_store_figures *figures);
hamr_status stored_pin(hamr_store *store, const hamr_store_id *id, int32_t on);
hamr_status stored_set_evictable(hamr_store *store, const hamr_store_id *id, int32_t on);
hamr_status stored_set_metadata(hamr_store *store, const hamr_store_id *id, const void *metadata,
                                size_t metadata_bytes);
hamr_status stored_set_timeout(hamr_store *store, int64_t milliseconds);
hamr_status mirror_create(hamr_buffer *buffer, int32_t initialize, hamr_mirror **made);
const hamr_info *mirror_info(const hamr_mirror *mirror);
void *mirror_data(const hamr_mirror *mirror);
hamr_status mirror_release(hamr_mirror *mirror);
hamr_status mirror_abandon(hamr_mirror *mirror);
hamr_status shared_share(const hamr_buffer *buffer, uint32_t flags, hamr_shared **made);
hamr_status shared_frame(const hamr_shared *shared, const void **frame, size_t *bytes, const int **descriptors,
                         int32_t *count, uint32_t *flags);
hamr_status shared_release(hamr_shared *shared);
hamr_status shared_send(const hamr_shared *shared, int socket);
hamr_status shared_open_frame(const void *frame, size_t bytes, const int *descriptors, int32_t count,
                              hamr_buffer **made);
hamr_status shared_open(int socket, hamr_buffer **made);
