/* The store: many objects by one call, and groups, which are objects of many arrays. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "stored.h"

static hamr_status check_count(int64_t n, const void *list, const char *name) {
    forget_failure();
    if (n < 0 || n > INT32_MAX)
        return fail(HAMR_ERROR_VALUE, "n is %lld: accepted are 0 ... %d", (long long)n, INT32_MAX);
    if (n && !list)
        return fail(HAMR_ERROR_VALUE, "%s is NULL: accepted is the address of %lld of them", name, (long long)n);
    return HAMR_OK;
}

/* n of something, zero; at least one, so that NULL is no memory. */
static void *room_for(int64_t n, size_t each) {
    void *room = calloc((size_t)n + 1, each);
    if (!room) fail(HAMR_ERROR_MEMORY, "no memory for a list of %lld", (long long)n);
    return room;
}

/* What the core is given of n buffers of a list, and where each is. The caller frees both. */
static hamr_status give_each(int64_t n, const hamr_buffer *(*buffer)(const void *list, int64_t i), const void *list,
                             hamr_array **arrays, hamr_array ***pointers) {
    *arrays = room_for(n, sizeof **arrays);
    *pointers = *arrays ? room_for(n, sizeof **pointers) : NULL;
    if (!*pointers) return HAMR_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const hamr_buffer *each = buffer(list, i);
        CHECK(each, BUFFER, "one of the buffers");
        hamr_status status = held_give(&each->held, &(*arrays)[i]);
        if (status) return status;
        (*pointers)[i] = &(*arrays)[i];
    }
    return HAMR_OK;
}

static const hamr_buffer *of_buffers(const void *list, int64_t i) { return ((const hamr_buffer *const *)list)[i]; }

static const hamr_buffer *of_items(const void *list, int64_t i) { return ((const hamr_group_item *)list)[i].buffer; }

hamr_status capi_store_put_many(hamr_store *store, const hamr_buffer *const *buffers, int64_t n, uint32_t flags,
                                const void *metadata, size_t metadata_bytes, const char *const *names,
                                hamr_store_id *ids) {
    hamr_status status = check_count(n, buffers, "buffers");
    if (!status) status = check_count(n, ids, "ids");
    if (!status) status = check_flags(flags, metadata, metadata_bytes);
    if (status) return status;
    CHECK_SESSION(store);
    hamr_array *arrays, **pointers;
    hamr_store_text *texts = names ? room_for(n, sizeof *texts) : NULL;
    if (names && !texts) return HAMR_ERROR_MEMORY;
    for (int64_t i = 0; names && i < n; i++) texts[i] = text_of(names[i]);
    status = give_each(n, of_buffers, buffers, &arrays, &pointers);
    if (!status && n)
        status = keep(GO->put_objects(0, store->numbered.token, n, pointers, HAMR_ALLOCATOR_ANY, HAMR_HOST_DEVICE,
                                      flags, metadata, metadata_bytes, texts, ids));
    free(arrays);
    free(pointers);
    free(texts);
    return status;
}

hamr_status capi_store_get_many(hamr_store *store, const hamr_store_id *ids, int64_t n, hamr_buffer **made) {
    hamr_status status = check_count(n, ids, "ids");
    if (!status) status = check_count(n, made, "made");
    if (status) return status;
    CHECK_SESSION(store);
    if (!n) return HAMR_OK;
    hamr_store_id *asked = room_for(n, sizeof *asked);
    uint64_t *leases = room_for(n, sizeof *leases);
    Draft *drafts = room_for(n, sizeof *drafts);
    hamr_array **results = room_for(n, sizeof *results);
    hamr_store_text *names = room_for(n, sizeof *names);
    int64_t done = 0;
    if (!asked || !leases || !drafts || !results || !names) {
        status = HAMR_ERROR_MEMORY;
    } else {
        memcpy(asked, ids, (size_t)n * sizeof *ids);
        for (int64_t i = 0; i < n; i++) {
            draft_start(&drafts[i]);
            results[i] = &drafts[i].array;
        }
        status = keep(GO->get_objects(0, store->numbered.token, n, names, asked, results, leases));
        for (; !status && done < n; done++) status = buffer_leased(results[done], leases[done], &made[done]);
        if (status && done) {
            for (int64_t i = done; i < n; i++) GO->end_object(leases[i]);
            for (int64_t i = 0; i < done - 1; i++) capi_release(made[i]);
        }
    }
    free(asked);
    free(leases);
    free(drafts);
    free(results);
    free(names);
    return status;
}

hamr_status capi_store_delete_many(hamr_store *store, const hamr_store_id *ids, int64_t n, int32_t force) {
    hamr_status status = check_count(n, ids, "ids");
    if (status) return status;
    CHECK_SESSION(store);
    return n ? keep(GO->delete_objects(0, store->numbered.token, ids, n, force)) : HAMR_OK;
}

hamr_status capi_store_put_group(hamr_store *store, const hamr_group_item *items, int64_t n, uint32_t flags,
                                 const void *metadata, size_t metadata_bytes, const char *name, hamr_store_id *id) {
    CHECK_RESULT(id, "id");
    hamr_status status = check_count(n, items, "items");
    if (!status) status = check_flags(flags, metadata, metadata_bytes);
    for (int64_t i = 0; !status && i < n; i++)
        if (!items[i].path)
            status = fail(HAMR_ERROR_VALUE, "items[%lld].path is NULL: accepted is a text", (long long)i);
    if (status) return status;
    CHECK_SESSION(store);
    hamr_array *arrays, **pointers;
    hamr_store_text *texts = room_for(2 * n, sizeof *texts);
    if (!texts) return HAMR_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        texts[i] = text_of(items[i].path);
        texts[n + i] = text_of(items[i].metadata);
    }
    status = give_each(n, of_items, items, &arrays, &pointers);
    if (!status)
        status = keep(GO->put_group(0, store->numbered.token, n, pointers, texts, texts + n, flags, metadata,
                                    metadata_bytes, text_of(name), id));
    free(arrays);
    free(pointers);
    free(texts);
    return status;
}

static void end_group(hamr_store_group *group) {
    for (int64_t i = 0; i < group->count; i++) capi_release(group->items[i].buffer);
    capi_release(group->whole);
    free(group->items);
    free(group->sorted);
    free(group->parts);
    object_free(group);
}

/* Paths may have NUL within. */
static int compare_texts(const hamr_store_text *a, const hamr_store_text *b) {
    int64_t both = a->bytes < b->bytes ? a->bytes : b->bytes;
    int order = both ? memcmp(a->text, b->text, (size_t)both) : 0;
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Of one path the first array comes first. */
static int compare_parts(const void *a, const void *b) {
    const hamr_store_part *one = *(const hamr_store_part *const *)a, *other = *(const hamr_store_part *const *)b;
    int order = compare_texts(&one->path, &other->path);
    return order ? order : (one > other) - (one < other);
}

/* Makes a group's arrays of what Go has told. After an error those that were made are in it. */
static hamr_status make_items(hamr_store_group *group) {
    const hamr_store_parts *parts = group->parts;
    group->items = room_for(parts->count, sizeof *group->items);
    group->sorted = group->items ? room_for(parts->count, sizeof *group->sorted) : NULL;
    if (!group->sorted) return HAMR_ERROR_MEMORY;
    for (int64_t i = 0; i < parts->count; i++) group->sorted[i] = &parts->parts[i];
    qsort(group->sorted, (size_t)parts->count, sizeof *group->sorted, compare_parts);
    for (; group->count < parts->count; group->count++) {
        const hamr_store_part *part = &parts->parts[group->count];
        hamr_group_item *item = &group->items[group->count];
        hamr_status status = capi_view(group->whole, &item->buffer, part->offset, part->element, part->ndim,
                                       part->shape, NULL);
        if (status) return status;
        item->path = part->path.text ? part->path.text : "";
        item->metadata = part->metadata.text;
    }
    return HAMR_OK;
}

hamr_status capi_store_get_group(hamr_store *store, const hamr_store_id *id, const char *const *only, int64_t n_only,
                                 int64_t milliseconds, hamr_store_group **made) {
    Draft result;
    uint64_t lease = 0;
    CHECK_RESULT(made, "made");
    CHECK_ID(id);
    hamr_status status = only ? check_count(n_only, only, "only") : HAMR_OK;
    for (int64_t i = 0; !status && only && i < n_only; i++)
        if (!only[i]) status = fail(HAMR_ERROR_VALUE, "only[%lld] is NULL: accepted is a path", (long long)i);
    if (status) return status;
    CHECK_SESSION(store);
    hamr_store_text *paths = only ? room_for(n_only, sizeof *paths) : NULL;
    if (only && !paths) return HAMR_ERROR_MEMORY;
    for (int64_t i = 0; only && i < n_only; i++) paths[i] = text_of(only[i]);
    Object *object = object_new(GROUP);
    hamr_store_group *group = object ? &object->group : NULL;
    draft_start(&result);
    status = group ? keep(GO->get_group(0, store->numbered.token, id, paths, only ? n_only : 0, milliseconds,
                                        &result.array, &lease, &group->parts))
                   : HAMR_ERROR_MEMORY;
    free(paths);
    if (!group) return status;
    if (!status) status = buffer_leased(&result.array, lease, &group->whole);
    if (!status) status = make_items(group);
    if (status) end_group(group);
    else *made = group;
    return status;
}

const hamr_group_item *capi_store_group_items(const hamr_store_group *group, int64_t *n) {
    if (n) *n = 0;
    if (object_check(group, GROUP, "group")) return NULL;
    if (n) *n = group->count;
    return group->items;
}

const hamr_group_item *capi_store_group_find(const hamr_store_group *group, const char *path) {
    if (object_check(group, GROUP, "group")) return NULL;
    if (!path) {
        fail(HAMR_ERROR_VALUE, "path is NULL: accepted is that of an array");
        return NULL;
    }
    hamr_store_text wanted = text_of(path);
    int64_t low = 0, high = group->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare_texts(&group->sorted[middle]->path, &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    if (low < group->count && compare_texts(&group->sorted[low]->path, &wanted) == 0)
        return &group->items[group->sorted[low] - group->parts->parts];
    fail(HAMR_ERROR_NOT_FOUND, "the group has no array \"%.80s\"", path);
    return NULL;
}

hamr_status capi_store_group_texts(const hamr_store_group *group, const char **metadata, const char **values) {
    CHECK(group, GROUP, "group");
    if (metadata) *metadata = group->parts->metadata;
    if (values) *values = group->parts->values;
    return HAMR_OK;
}

hamr_status capi_store_release_group(hamr_store_group *group) {
    CHECK_RELEASED(group, group->head, GROUP, "group");
    end_group(group);
    return HAMR_OK;
}
