/* The store: sessions, and objects that are made and found. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "stored.h"

#define CHECK_NAME(name)                                                                \
    do {                                                                                \
        if (!(name)) return fail(HAMR_ERROR_VALUE, #name " is NULL: accepted is a name"); \
    } while (0)

#define CHECK_OBJECT(store, id) \
    do {                        \
        CHECK_ID(id);           \
        CHECK_SESSION(store);   \
    } while (0)

Numbered *numbered_new(Kind kind) {
    Object *object = object_new(kind);
    return object ? &object->numbered : NULL;
}

void numbered_free(Numbered *numbered) {
    free(numbered->text);
    object_free(numbered);
}

hamr_store_text text_of(const char *text) { return (hamr_store_text){text, text ? (int64_t)strlen(text) : 0}; }

static int is_here(const Numbered *numbered) { return numbered->head.generation == capi_generation; }

/* The one on a path that did not work is gone. */
static hamr_status finish(Numbered *numbered, hamr_error *error) {
    if (error) numbered_free(numbered);
    return keep(error);
}

/* The path; "" for the default one. Go sees the environment of the process's start, so it is told where that is. */
static const char *path_or_default(const char *path) {
    static const char *const names[] = {"HAMR_STORE", "XDG_RUNTIME_DIR"};
    for (int i = 0; !path && i < 2; i++)
        free(capi_own.functions->configure(names[i], getenv(names[i]) ? getenv(names[i]) : ""));
    return path ? path : "";
}

hamr_status capi_store_serve(const char *path, int64_t host_limit, int64_t device_limit, const char *spill,
                         hamr_store_server **made) {
    CHECK_RESULT(made, "made");
    if (host_limit < 0 || device_limit < 0)
        return fail(HAMR_ERROR_VALUE, "a limit is %lld: accepted are 0 and more",
                    (long long)(host_limit < 0 ? host_limit : device_limit));
    CAPI_LOAD();
    Numbered *server = numbered_new(SERVER);
    if (!server) return HAMR_ERROR_MEMORY;
    hamr_store_options options = {path_or_default(path), spill, .host = host_limit, .device = device_limit};
    hamr_status status = finish(server, GO->serve(&options, &server->token, &server->text));
    if (!status) *made = (hamr_store_server *)server;
    return status;
}

const char *capi_store_server_path(const hamr_store_server *server) {
    return object_check(server, SERVER, "server") ? NULL : server->numbered.text;
}

hamr_status capi_store_end_server(hamr_store_server *server) {
    CHECK_RELEASED(server, server->numbered.head, SERVER, "server");
    hamr_status status = is_here(&server->numbered) ? keep(GO->end_server(server->numbered.token)) : HAMR_OK;
    numbered_free(&server->numbered);
    return status;
}

hamr_status capi_store_connect(const char *path, int64_t milliseconds, hamr_store **made) {
    CHECK_RESULT(made, "made");
    CAPI_LOAD();
    Numbered *session = numbered_new(SESSION);
    if (!session) return HAMR_ERROR_MEMORY;
    hamr_error *error = GO->connect(0, path_or_default(path), milliseconds, &session->token, &session->text);
    hamr_status status = finish(session, error);
    if (!status) *made = (hamr_store *)session;
    return status;
}

const char *capi_store_path(const hamr_store *store) {
    return object_check(store, SESSION, "store") ? NULL : store->numbered.text;
}

hamr_status capi_store_close(hamr_store *store) {
    CHECK_RELEASED(store, store->numbered.head, SESSION, "store");
    hamr_status status = is_here(&store->numbered) ? keep(GO->disconnect(store->numbered.token)) : HAMR_OK;
    numbered_free(&store->numbered);
    return status;
}

/* Bytes that any server takes, and ids that a call can wait for. */
enum { MOST_METADATA = 48 << 10, MOST_WAIT = 4000 };

static hamr_status check_metadata(const void *metadata, size_t bytes) {
    if (bytes > MOST_METADATA)
        return fail(HAMR_ERROR_VALUE, "metadata_bytes is %zu: accepted are at most %d", bytes, MOST_METADATA);
    if (bytes && !metadata)
        return fail(HAMR_ERROR_VALUE, "metadata is NULL: accepted is the address of %zu bytes", bytes);
    return HAMR_OK;
}

hamr_status check_flags(uint32_t flags, const void *metadata, size_t bytes) {
    if (flags & ~(uint32_t)(HAMR_STORE_EVICTABLE | HAMR_STORE_PINNED | HAMR_STORE_SEPARATE | HAMR_STORE_SESSION))
        return fail(HAMR_ERROR_VALUE,
                    "flags is %#x: accepted are HAMR_STORE_EVICTABLE, HAMR_STORE_PINNED, HAMR_STORE_SEPARATE and "
                    "HAMR_STORE_SESSION",
                    (unsigned)flags);
    return check_metadata(metadata, bytes);
}

/* A buffer of what Go has described, with a lease, which it takes over, of the same elements, or 0. */
hamr_status buffer_leased(const hamr_array *array, uint64_t lease, hamr_buffer **made) {
    hamr_status status = buffer_of(array, made);
    Share *share = status ? NULL : (*made)->held.share;
    if (share) share->lease = lease;
    else if (lease) GO->end_object(lease);
    return status;
}

hamr_status capi_store_create(hamr_store *store, int32_t element, int32_t ndim, const int64_t *shape,
                          const hamr_place *place, uint32_t flags,
                          const void *metadata, size_t metadata_bytes, hamr_store_builder **made) {
    Draft draft;
    CHECK_RESULT(made, "made");
    CHECK_SESSION(store);
    hamr_status status = check_flags(flags, metadata, metadata_bytes);
    draft_start(&draft);
    if (!status) status = draft_place(&draft, place);
    if (!status) status = draft_shape(&draft, element, ndim, shape);
    if (status) return status;
    Numbered *builder = numbered_new(BUILDER);
    if (!builder) return HAMR_ERROR_MEMORY;
    status = finish(builder, GO->create_object(0, store->numbered.token, &draft.array, flags, metadata, metadata_bytes,
                                        &builder->id, &builder->token));
    if (status) return status;
    builder->memory = draft.array.memory;
    if ((status = buffer_of(&draft.array, &builder->buffer))) {
        GO->end_object(builder->token);
        numbered_free(builder);
        return status;
    }
    *made = (hamr_store_builder *)builder;
    return HAMR_OK;
}

hamr_store_id capi_store_builder_id(const hamr_store_builder *builder) {
    static const hamr_store_id none;
    return object_check(builder, BUILDER, "builder") ? none : builder->numbered.id;
}

hamr_buffer *capi_store_builder_buffer(const hamr_store_builder *builder) {
    return object_check(builder, BUILDER, "builder") ? NULL : builder->numbered.buffer;
}

static void end_builder(Numbered *builder) {
    capi_release(builder->buffer);
    numbered_free(builder);
}

static hamr_status check_elements(const Numbered *builder) {
    if (builder->buffer->head.kind != BUFFER)
        return fail(HAMR_ERROR_VALUE, "the builder's buffer was released: that is the builder's to do");
    if (memory_of(&builder->buffer->held) == builder->memory) return HAMR_OK;
    return fail(HAMR_ERROR_VALUE,
                "the builder's buffer has other elements than the object's: accepted is one that was not resized, "
                "moved or swapped");
}

hamr_status capi_store_seal(hamr_store_builder *given, hamr_buffer **made) {
    Draft result;
    CHECK(given, BUILDER, "builder");
    CAPI_LOAD();
    Numbered *builder = &given->numbered;
    hamr_status status = check_elements(builder);
    if (status) return status;
    int32_t sealed;
    hamr_array written;
    GIVE(&builder->buffer->held, &written);
    draft_start(&result);
    /* Also what is on the buffer's own stream. */
    status = keep(capi_functions()->synchronize(&written));
    if (!status) status = keep(GO->seal_object(0, builder->token, 0, made ? &result.array : NULL, &sealed));
    if (!status && made) status = buffer_leased(&result.array, builder->token, made);
    else GO->end_object(builder->token);
    end_builder(builder);
    return status;
}

hamr_status capi_store_abort(hamr_store_builder *given) {
    CHECK_RELEASED(given, given->numbered.head, BUILDER, "builder");
    hamr_status status = HAMR_OK;
    if (is_here(&given->numbered)) {
        status = keep(GO->abort_object(0, given->numbered.token));
        GO->end_object(given->numbered.token);
    }
    end_builder(&given->numbered);
    return status;
}

hamr_status capi_store_put(hamr_store *store, const hamr_buffer *buffer, uint32_t flags, const void *metadata,
                       size_t metadata_bytes, hamr_store_id *id) {
    CHECK_RESULT(id, "id");
    CHECK(buffer, BUFFER, "buffer");
    CHECK_SESSION(store);
    hamr_status status = check_flags(flags, metadata, metadata_bytes);
    if (status) return status;
    hamr_array array;
    GIVE(&buffer->held, &array);
    return keep(GO->put_object(0, store->numbered.token, &array, HAMR_ALLOCATOR_ANY, HAMR_HOST_DEVICE, flags, metadata,
                        metadata_bytes, id));
}

hamr_status capi_store_get(hamr_store *store, const hamr_store_id *id, int32_t unsafe, int64_t milliseconds,
                       hamr_buffer **made) {
    Draft result;
    uint64_t lease = 0;
    int32_t sealed;
    CHECK_RESULT(made, "made");
    CHECK_OBJECT(store, id);
    draft_start(&result);
    hamr_status status = keep(GO->get_object(0, store->numbered.token, id, unsafe, milliseconds, &result.array, &lease,
                                      &sealed));
    return status ? status : buffer_leased(&result.array, lease, made);
}

#include "store_calls.h" /* those that check their arguments and call Go, which is generated */

hamr_status capi_store_exists(hamr_store *store, const hamr_store_id *id, int32_t *there, int32_t *sealed) {
    int32_t unasked;
    CHECK_RESULT(there, "there");
    CHECK_OBJECT(store, id);
    return keep(GO->object_exists(0, store->numbered.token, id, there, sealed ? sealed : &unasked));
}

/* With the page, which goes to free. */
hamr_status capi_store_wait_name(hamr_store *store, const char *name, const hamr_store_id *known, int64_t milliseconds,
                             hamr_store_id *id) {
    static const hamr_store_id none;
    CHECK_RESULT(id, "id");
    CHECK_NAME(name);
    CHECK_SESSION(store);
    return keep(GO->wait_name(0, store->numbered.token, text_of(name), known ? known : &none, milliseconds, id));
}

static hamr_status describe(const hamr_store *store, const hamr_store_id *id, hamr_store_page **page) {
    CHECK_OBJECT(store, id);
    return keep(GO->describe_object(0, store->numbered.token, id, page));
}

hamr_status capi_store_describe(hamr_store *store, const hamr_store_id *id, hamr_store_info *info) {
    hamr_store_page *page;
    CHECK_RESULT(info, "info");
    hamr_status status = describe(store, id, &page);
    if (status) return status;
    *info = page->objects[0].info;
    free(page);
    return HAMR_OK;
}

hamr_status capi_store_metadata(hamr_store *store, const hamr_store_id *id, char **text, size_t *bytes) {
    hamr_store_page *page;
    CHECK_RESULT(text, "text");
    hamr_status status = describe(store, id, &page);
    if (status) return status;
    size_t size = (size_t)page->objects[0].metadata.bytes;
    char *copy = calloc(1, size + 1);
    if (copy && size) memcpy(copy, page->objects[0].metadata.text, size);
    free(page);
    if (!copy) return fail(HAMR_ERROR_MEMORY, "no memory for %zu bytes of metadata", size);
    if (bytes) *bytes = size;
    *text = copy;
    return HAMR_OK;
}

hamr_status capi_store_pin(hamr_store *store, const hamr_store_id *id, int32_t on) {
    CHECK_OBJECT(store, id);
    return keep(GO->mark_object(0, store->numbered.token, id, HAMR_STORE_PINNED, on));
}

hamr_status capi_store_set_evictable(hamr_store *store, const hamr_store_id *id, int32_t on) {
    CHECK_OBJECT(store, id);
    return keep(GO->mark_object(0, store->numbered.token, id, HAMR_STORE_EVICTABLE, on));
}

hamr_status capi_store_set_metadata(hamr_store *store, const hamr_store_id *id, const void *metadata,
                                size_t metadata_bytes) {
    hamr_status status = check_metadata(metadata, metadata_bytes);
    if (status) return status;
    CHECK_OBJECT(store, id);
    return keep(GO->set_metadata(0, store->numbered.token, id, (hamr_store_text){metadata, (int64_t)metadata_bytes}));
}

hamr_status capi_store_set_timeout(hamr_store *store, int64_t milliseconds) {
    CHECK_SESSION(store);
    if (milliseconds < -1 || milliseconds == 0)
        return fail(HAMR_ERROR_VALUE, "milliseconds is %lld: accepted are -1 for no limit, and 1 or more",
                    (long long)milliseconds);
    return keep(GO->limit_answers(store->numbered.token, milliseconds));
}

hamr_status capi_store_list(hamr_store *store, uint32_t which, const char *prefix, uint64_t *after, hamr_store_id *ids,
                        int64_t room, int64_t *found) {
    CHECK_RESULT(after, "after");
    CHECK_RESULT(ids, "ids");
    CHECK_RESULT(found, "found");
    if (which & ~(uint32_t)(HAMR_STORE_LIST_UNSEALED | HAMR_STORE_LIST_NAMED))
        return fail(HAMR_ERROR_VALUE, "which is %#x: accepted are HAMR_STORE_LIST_UNSEALED and HAMR_STORE_LIST_NAMED",
                    (unsigned)which);
    if (room < 1 || room > INT32_MAX)
        return fail(HAMR_ERROR_VALUE, "room is %lld: accepted are 1 ... %d", (long long)room, INT32_MAX);
    CHECK_SESSION(store);
    hamr_store_page *page;
    hamr_status status = keep(GO->list_objects(0, store->numbered.token, which, text_of(prefix), *after, room, &page));
    if (status) return status;
    for (int64_t i = 0; i < page->count; i++) ids[i] = page->objects[i].info.id;
    *found = page->count;
    *after = page->after;
    free(page);
    return HAMR_OK;
}

hamr_status capi_store_wait(hamr_store *store, const hamr_store_id *ids, int64_t n, int64_t count, int64_t milliseconds,
                        hamr_store_id *ready, int64_t *found) {
    CHECK_RESULT(found, "found");
    if (n < 0 || n > MOST_WAIT)
        return fail(HAMR_ERROR_VALUE, "n is %lld: accepted are 0 ... %d", (long long)n, MOST_WAIT);
    if (count < 0 || count > n)
        return fail(HAMR_ERROR_VALUE, "count is %lld: accepted are 0 ... %lld, which is n", (long long)count,
                    (long long)n);
    CHECK_SESSION(store);
    *found = 0;
    if (!n) return HAMR_OK;
    CHECK_RESULT(ready, "ready");
    CHECK_ID(ids);
    return keep(GO->wait_for_objects(0, store->numbered.token, ids, n, count, milliseconds, ready, found));
}

hamr_status capi_store_statistics(hamr_store *store, hamr_store_figures *figures) {
    CHECK_RESULT(figures, "figures");
    CHECK_SESSION(store);
    hamr_store_report *report;
    hamr_status status = keep(GO->store_statistics(0, store->numbered.token, &report));
    if (status) return status;
    *figures = (hamr_store_figures){.objects = report->objects, .unsealed = report->unsealed, .names = report->names,
                                    .leases = report->leases, .sessions = report->connections,
                                    .evicted = report->evicted, .spilled = report->spilled,
                                    .requests = report->requests};
    for (int64_t i = 0; i < report->count; i++) {
        const hamr_store_memory *memory = &report->memories[i];
        if (strcmp(memory->name, "host") != 0) continue;
        figures->limit = memory->limit;
        figures->used = memory->used;
        figures->peak = memory->peak;
        figures->lingering = memory->lingering;
    }
    free(report);
    return HAMR_OK;
}
