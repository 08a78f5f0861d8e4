/* The store, and sharing without one, for C and C++: arrays that processes of one user on one machine
 * have in common. docs/store.md and docs/sharing.md say what holds.
 *
 *     hamr_store *store;
 *     hamr_store_builder *builder;
 *     hamr_store_id id;
 *     if (hamr_store_connect(NULL, -1, &store)) return fail(hamr_last_error());
 *     if (hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, 0, NULL, 0, &builder)) …
 *     id = hamr_store_builder_id(builder);
 *     … hamr_store_builder_buffer(builder) …
 *     if (hamr_store_seal(builder, NULL)) …
 *
 * What the functions do is said in hamr/store_interface.h, at the table's entry of the same name. */
#ifndef HAMR_STORE_H
#define HAMR_STORE_H

#include "hamr.h"
#include "hamr/store_interface.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline const hamr_store_table *hamr_store_get_with(size_t end, const char *function) {
    const hamr_store_table *table = (const hamr_store_table *)hamr_other_table("store", HAMR_STORE_VERSION);
    if (table && table->size >= end) return table;
    if (hamr_get() && !hamr_open_error[0]) {
        hamr_open_say("hamr's library is older than this program: it has no hamr_store_");
        hamr_open_say(function);
    }
    return NULL;
}

#define HAMR_STORE_OTHER(result, name, entry, parameters, arguments, failed)                                                               \
    static inline result name parameters {                                                                                                 \
        const hamr_store_table *table = hamr_store_get_with(offsetof(hamr_store_table, entry) + sizeof(void (*)(void)), #entry);           \
        if (!table) return failed;                                                                                                         \
        return table->entry arguments;                                                                                                     \
    }
#define HAMR_STORE_NAMED(name, entry, parameters, arguments) HAMR_STORE_OTHER(hamr_status, name, entry, parameters, arguments, HAMR_ERROR_LIBRARY)
#define HAMR_STORE_FUNCTION(name, parameters, arguments) HAMR_STORE_NAMED(hamr_store_##name, name, parameters, arguments)

HAMR_STORE_FUNCTION(connect, (const char *path, int64_t milliseconds, hamr_store **made), (path, milliseconds, made))
HAMR_STORE_OTHER(const char *, hamr_store_path, path, (const hamr_store *store), (store), NULL)
HAMR_STORE_FUNCTION(close, (hamr_store *store), (store))
HAMR_STORE_FUNCTION(serve, (const char *path, int64_t host_limit, int64_t device_limit, const char *spill, hamr_store_server **made), (path, host_limit,
                    device_limit, spill, made))
HAMR_STORE_OTHER(const char *, hamr_store_server_path, server_path, (const hamr_store_server *server), (server), NULL)
HAMR_STORE_FUNCTION(end_server, (hamr_store_server *server), (server))

HAMR_STORE_FUNCTION(create, (hamr_store *store, int32_t element, int32_t ndim, const int64_t *shape, const hamr_place *place, uint32_t flags,
                    const void *metadata, size_t metadata_bytes, hamr_store_builder **made), (store, element, ndim, shape, place, flags, metadata,
                    metadata_bytes, made))
static inline hamr_store_id hamr_store_builder_id(const hamr_store_builder *builder) {
    const hamr_store_table *table = hamr_store_get_with(offsetof(hamr_store_table, builder_id) + sizeof(void (*)(void)), "builder_id");
    hamr_store_id none;
    memset(&none, 0, sizeof none);
    return table ? table->builder_id(builder) : none;
}
HAMR_STORE_OTHER(hamr_buffer *, hamr_store_builder_buffer, builder_buffer, (const hamr_store_builder *builder), (builder), NULL)
HAMR_STORE_FUNCTION(seal, (hamr_store_builder *builder, hamr_buffer **made), (builder, made))
HAMR_STORE_FUNCTION(abort, (hamr_store_builder *builder), (builder))
HAMR_STORE_FUNCTION(put, (hamr_store *store, const hamr_buffer *buffer, uint32_t flags, const void *metadata, size_t metadata_bytes, hamr_store_id *id),
                    (store, buffer, flags, metadata, metadata_bytes, id))

HAMR_STORE_FUNCTION(get, (hamr_store *store, const hamr_store_id *id, int32_t unsafe, int64_t milliseconds, hamr_buffer **made), (store, id, unsafe,
                    milliseconds, made))
HAMR_STORE_NAMED(hamr_store_delete, delete_object, (hamr_store *store, const hamr_store_id *id, int32_t force), (store, id, force))
HAMR_STORE_FUNCTION(put_name, (hamr_store *store, const char *name, const hamr_store_id *id, int32_t replace), (store, name, id, replace))
HAMR_STORE_FUNCTION(get_name, (hamr_store *store, const char *name, int64_t milliseconds, hamr_store_id *id), (store, name, milliseconds, id))
HAMR_STORE_FUNCTION(drop_name, (hamr_store *store, const char *name), (store, name))
HAMR_STORE_FUNCTION(exists, (hamr_store *store, const hamr_store_id *id, int32_t *there, int32_t *sealed), (store, id, there, sealed))
HAMR_STORE_FUNCTION(describe, (hamr_store *store, const hamr_store_id *id, hamr_store_info *info), (store, id, info))
HAMR_STORE_FUNCTION(metadata, (hamr_store *store, const hamr_store_id *id, char **text, size_t *bytes), (store, id, text, bytes))
HAMR_STORE_FUNCTION(set_metadata, (hamr_store *store, const hamr_store_id *id, const void *metadata, size_t metadata_bytes), (store, id, metadata,
                    metadata_bytes))
HAMR_STORE_FUNCTION(pin, (hamr_store *store, const hamr_store_id *id, int32_t on), (store, id, on))
HAMR_STORE_FUNCTION(set_evictable, (hamr_store *store, const hamr_store_id *id, int32_t on), (store, id, on))
HAMR_STORE_FUNCTION(set_timeout, (hamr_store *store, int64_t milliseconds), (store, milliseconds))
HAMR_STORE_FUNCTION(list, (hamr_store *store, uint32_t which, const char *prefix, uint64_t *after, hamr_store_id *ids, int64_t room, int64_t *found),
                    (store, which, prefix, after, ids, room, found))
HAMR_STORE_FUNCTION(wait, (hamr_store *store, const hamr_store_id *ids, int64_t n, int64_t count, int64_t milliseconds, hamr_store_id *ready,
                    int64_t *found), (store, ids, n, count, milliseconds, ready, found))
HAMR_STORE_FUNCTION(statistics, (hamr_store *store, hamr_store_figures *figures), (store, figures))

HAMR_STORE_NAMED(hamr_create_mirror, create_mirror, (hamr_buffer *buffer, int32_t initialize, hamr_mirror **made), (buffer, initialize, made))
HAMR_STORE_OTHER(const hamr_info *, hamr_mirror_info, mirror_info, (const hamr_mirror *mirror), (mirror), NULL)
HAMR_STORE_OTHER(void *, hamr_mirror_data, mirror_data, (const hamr_mirror *mirror), (mirror), NULL)
HAMR_STORE_NAMED(hamr_release_mirror, release_mirror, (hamr_mirror *mirror), (mirror))
HAMR_STORE_NAMED(hamr_abandon_mirror, abandon_mirror, (hamr_mirror *mirror), (mirror))

HAMR_STORE_NAMED(hamr_share, share, (const hamr_buffer *buffer, uint32_t flags, hamr_shared **made), (buffer, flags, made))
HAMR_STORE_NAMED(hamr_shared_frame, shared_frame, (const hamr_shared *shared, const void **frame, size_t *bytes, const int **descriptors,
                 int32_t *count, uint32_t *flags), (shared, frame, bytes, descriptors, count, flags))
HAMR_STORE_NAMED(hamr_release_shared, release_shared, (hamr_shared *shared), (shared))
HAMR_STORE_NAMED(hamr_send_shared, send_shared, (const hamr_shared *shared, int socket), (shared, socket))
HAMR_STORE_NAMED(hamr_open_frame, open_frame, (const void *frame, size_t bytes, const int *descriptors, int32_t count, hamr_buffer **made),
                 (frame, bytes, descriptors, count, made))
HAMR_STORE_NAMED(hamr_open_shared, open_shared, (int socket, hamr_buffer **made), (socket, made))

#undef HAMR_STORE_FUNCTION
#undef HAMR_STORE_NAMED
#undef HAMR_STORE_OTHER

/* 32 hexadecimal digits and a NUL. */
static inline void hamr_store_id_text(const hamr_store_id *id, char text[33]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        text[2 * i] = digits[id->bytes[i] >> 4];
        text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text[32] = '\0';
}

/* Reads what hamr_store_id_text writes, and says whether it is that: 1, or 0, and then id is zero. */
static inline int hamr_store_id_parse(const char *text, hamr_store_id *id) {
    static const char digits[] = "0123456789abcdefABCDEF";
    memset(id, 0, sizeof *id);
    if (!text || strlen(text) != 32) return 0;
    for (int i = 0; i < 32; i++) {
        const char *found = (strchr)(digits, text[i]);
        int digit = found ? (int)(found - digits) : -1;
        if (digit < 0) {
            memset(id, 0, sizeof *id);
            return 0;
        }
        if (digit > 15) digit -= 6;
        id->bytes[i / 2] = (uint8_t)(id->bytes[i / 2] << 4 | digit);
    }
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
