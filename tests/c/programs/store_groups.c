/* hamr/store.h: many objects by one call, and groups. Its argument is the path of the socket. With a second one it is a
 * client: of each group whose name comes in a line it makes another, without structure, and prints the other values. */
#define _GNU_SOURCE
#include "store_check.h"

#include <sys/wait.h>
#include <unistd.h>

static hamr_buffer *filled(int64_t n, int32_t element, const void *value) {
    hamr_buffer *buffer;
    OK(hamr_create(&buffer, element, 1, &n, NULL, value));
    return buffer;
}

/* Many objects by one call. */
static void many(void) {
    const double half = 0.5;
    hamr_buffer *given[2] = {filled(MUCH, HAMR_FLOAT64, &half), filled(3, HAMR_FLOAT64, &half)}, *found[3];
    const char *const both[2] = {"first", NULL}, *const taken[2] = {NULL, "first"};
    const hamr_buffer *const *buffers = (const hamr_buffer *const *)given;
    hamr_store_id ids[3], none[2], name;
    hamr_store_figures figures;
    OK(hamr_store_put_many(store, buffers, 2, HAMR_STORE_PINNED, "[1]", 3, both, ids));
    OK(hamr_store_get_name(store, "first", 0, &name));
    TRUE(same(&name, &ids[0]) && flags_of(&ids[1]) == HAMR_STORE_PINNED);
    FAILS(hamr_store_put_many(store, buffers, 2, 0, NULL, 0, taken, none), HAMR_ERROR_NAME_TAKEN, "item 1");
    ids[2] = ids[0];
    OK(hamr_store_get_many(store, ids, 3, found));
    for (int i = 0; i < 3; i++) {
        TRUE(hamr_size(found[i]) == (i == 1 ? 3 : MUCH) && first_of(found[i]) == 0.5);
        OK(hamr_release(found[i]));
    }
    memset(&ids[2], 7, sizeof ids[2]);
    FAILS(hamr_store_get_many(store, ids, 3, found), HAMR_ERROR_NOT_FOUND, "item 2");
    FAILS(hamr_store_delete_many(store, ids, 3, 0), HAMR_ERROR_NOT_FOUND, "item 2");
    OK(hamr_store_statistics(store, &figures));
    TRUE(figures.objects == 2);
    OK(hamr_store_delete_many(store, ids, 2, 0));
    OK(hamr_store_put_many(store, NULL, 0, 0, NULL, 0, NULL, NULL));
    OK(hamr_store_get_many(store, NULL, 0, NULL));
    OK(hamr_store_delete_many(store, NULL, 0, 0));
    FAILS(hamr_store_put_many(store, buffers, -1, 0, NULL, 0, NULL, ids), HAMR_ERROR_VALUE, "n is -1");
    FAILS(hamr_store_put_many(store, NULL, 2, 0, NULL, 0, NULL, ids), HAMR_ERROR_VALUE, "buffers is NULL");
    FAILS(hamr_store_put_many(store, buffers, 2, 0, NULL, 0, NULL, NULL), HAMR_ERROR_VALUE, "ids is NULL");
    FAILS(hamr_store_put_many(store, buffers, 2, 99, NULL, 0, NULL, ids), HAMR_ERROR_VALUE, "flags is 0x63");
    FAILS(hamr_store_get_many(store, ids, 2, NULL), HAMR_ERROR_VALUE, "made is NULL");
    FAILS(hamr_store_get_many(NULL, ids, 2, found), HAMR_ERROR_VALUE, "store is NULL");
    FAILS(hamr_store_delete_many(store, NULL, 2, 0), HAMR_ERROR_VALUE, "ids is NULL");
    OK(hamr_release(given[0]));
    FAILS(hamr_store_put_many(store, buffers, 2, 0, NULL, 0, NULL, ids), HAMR_ERROR_RELEASED, "released before");
    OK(hamr_release(given[1]));
}

/* A child has none of its parent's groups, and gets its own. */
static void forked(const char *path, const hamr_store_id *id, hamr_store_group *parents) {
    const hamr_group_item *found;
    hamr_store *own;
    hamr_store_group *group;
    int status;
    pid_t child = fork();
    if (!child) {
        FAILS(hamr_store_group_texts(parents, NULL, NULL), HAMR_ERROR_FORKED, "fork()");
        TRUE(!hamr_store_group_find(parents, "bias") && strstr(hamr_last_error(), "fork()"));
        OK(hamr_store_release_group(parents));
        OK(hamr_store_connect(path, -1, &own));
        OK(hamr_store_get_group(own, id, NULL, 0, 0, &group));
        TRUE((found = hamr_store_group_find(group, "layers.0.weight")) && first_of(found->buffer) == 0.5);
        OK(hamr_store_release_group(group));
        OK(hamr_store_close(own));
        _exit(0);
    }
    TRUE(waitpid(child, &status, 0) == child && status == 0);
}

/* One object of many arrays. */
static void groups(const char *path) {
    const double half = 0.5;
    const float one = 1;
    hamr_buffer *wide = filled(MUCH, HAMR_FLOAT64, &half), *small = filled(3, HAMR_FLOAT32, &one), *view, *none;
    hamr_group_item items[4] = {
        {"layers.0.weight", wide, "{\"scale\": 2}"}, {"bias", small, NULL}, {"", wide, NULL}, {"x", NULL, NULL}};
    const char *const only[2] = {"layers.0", "bias"}, *const wrong[1] = {"layer"},
        *const missing[1] = {NULL}, *metadata, *values;
    const hamr_group_item *found;
    hamr_store_group *group, *part;
    hamr_store_id id, name, other = made(3, 0, 1, NULL);
    hamr_store_info info;
    int64_t n = 7, zero = 0;
    OK(hamr_create(&none, HAMR_INT16, 1, &zero, NULL, NULL));
    items[3].buffer = none;
    OK(hamr_store_put_group(store, items, 4, HAMR_STORE_EVICTABLE, "[7]", 3, "weights", &id));
    OK(hamr_store_get_name(store, "weights", 0, &name));
    OK(hamr_store_describe(store, &id, &info));
    TRUE(same(&name, &id) && info.element == HAMR_UINT8 && info.bytes < 1000 + MUCH * 8);
    OK(hamr_store_get_group(store, &id, NULL, 0, -1, &group));
    found = hamr_store_group_items(group, &n);
    TRUE(n == 4 && strcmp(found[0].path, "layers.0.weight") == 0 && strcmp(found[2].path, "") == 0);
    TRUE(strcmp(found[0].metadata, "{\"scale\": 2}") == 0 && !found[1].metadata);
    TRUE(first_of(found[0].buffer) == 0.5 && hamr_data(found[0].buffer) == hamr_data(found[2].buffer));
    TRUE(hamr_size(found[3].buffer) == 0 && hamr_info_of(found[3].buffer)->element == HAMR_INT16);
    TRUE(hamr_store_group_find(group, "bias") == &found[1] && hamr_size(found[1].buffer) == 3 &&
         hamr_info_of(found[1].buffer)->element == HAMR_FLOAT32 && (uintptr_t)hamr_data(found[1].buffer) % 256 == 0);
    FAILS(hamr_fill(found[1].buffer, HAMR_FLOAT32, &one), HAMR_ERROR_VALUE, "read-only");
    OK(hamr_store_group_texts(group, &metadata, &values));
    TRUE(strcmp(metadata, "[7]") == 0 && strcmp(values, "{}") == 0);
    OK(hamr_store_group_texts(group, NULL, NULL));
    TRUE(!hamr_store_group_find(group, "bia") && strstr(hamr_last_error(), "no array \"bia\""));
    TRUE(!hamr_store_group_find(group, NULL) && strstr(hamr_last_error(), "path is NULL"));

    OK(hamr_store_get_group(store, &id, only, 2, 0, &part));
    TRUE(hamr_store_group_items(part, &n) && n == 2 && !hamr_store_group_find(part, ""));
    OK(hamr_store_release_group(part));
    OK(hamr_store_get_group(store, &id, only, 0, 0, &part));
    TRUE(hamr_store_group_items(part, &n) && n == 0);
    OK(hamr_store_release_group(part));
    FAILS(hamr_store_get_group(store, &id, wrong, 1, 0, &part), HAMR_ERROR_VALUE, "only is \"layer\"");
    FAILS(hamr_store_get_group(store, &id, missing, 1, 0, &part), HAMR_ERROR_VALUE, "only[0] is NULL");
    FAILS(hamr_store_get_group(store, &id, only, -1, 0, &part), HAMR_ERROR_VALUE, "n is -1");
    FAILS(hamr_store_get_group(store, &other, NULL, 0, 0, &part), HAMR_ERROR_VALUE, "a group");
    FAILS(hamr_store_get_group(store, NULL, NULL, 0, 0, &part), HAMR_ERROR_VALUE, "id is NULL");
    FAILS(hamr_store_get_group(store, &id, NULL, 0, 0, NULL), HAMR_ERROR_VALUE, "made is NULL");

    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, "weights", &name), HAMR_ERROR_NAME_TAKEN, "weights");
    items[1].path = "";
    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, NULL, &name), HAMR_ERROR_VALUE, "arrays[2].Path");
    items[1].path = NULL;
    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, NULL, &name), HAMR_ERROR_VALUE, "items[1].path is NULL");
    items[1].path = "bias";
    items[1].metadata = "{";
    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, NULL, &name), HAMR_ERROR_VALUE, "metadata");
    FAILS(hamr_store_put_group(store, items, 4, 0, "[", 1, NULL, &name), HAMR_ERROR_VALUE, "metadata");
    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, NULL, NULL), HAMR_ERROR_VALUE, "id is NULL");
    items[1].buffer = NULL;
    FAILS(hamr_store_put_group(store, items, 4, 0, NULL, 0, NULL, &name), HAMR_ERROR_VALUE, "buffers is NULL");

    forked(path, &id, group);

    /* A view keeps the lease. */
    n = 1;
    OK(hamr_view(found[0].buffer, &view, 8, 0, 1, &n, NULL));
    OK(hamr_store_delete(store, &id, 0));
    OK(hamr_store_release_group(group));
    FAILS(hamr_store_release_group(group), HAMR_ERROR_RELEASED, "released before");
    TRUE(!hamr_store_group_items(group, &n) && n == 0 && !hamr_store_group_find(group, "bias"));
    FAILS(hamr_store_group_texts(group, &metadata, NULL), HAMR_ERROR_RELEASED, "released before");
    FAILS(hamr_store_release_group((hamr_store_group *)view), HAMR_ERROR_VALUE, "accepted is a group");
    OK(hamr_store_release_group(NULL));
    TRUE(first_of(view) == 0.5);
    OK(hamr_release(view));
    OK(hamr_release(wide));
    OK(hamr_release(small));
    OK(hamr_release(none));
    OK(hamr_store_delete(store, &other, 0));
}

static void again(char *line) {
    hamr_store_id id;
    hamr_store_group *group;
    const char *metadata, *values;
    char name[80];
    int64_t n;
    line[strcspn(line, "\n")] = '\0';
    snprintf(name, sizeof name, "%s again", line);
    OK(hamr_store_get_name(store, line, 0, &id));
    OK(hamr_store_get_group(store, &id, NULL, 0, 0, &group));
    OK(hamr_store_group_texts(group, &metadata, &values));
    const hamr_group_item *items = hamr_store_group_items(group, &n);
    for (int64_t i = 0; i < n; i++) TRUE(hamr_store_group_find(group, items[i].path) == &items[i]);
    OK(hamr_store_put_group(store, items, n, 0, metadata, metadata ? strlen(metadata) : 0, name, &id));
    puts(values);
    OK(hamr_store_release_group(group));
}

int main(int argc, char **argv) {
    hamr_store_server *server;
    hamr_store_figures figures;
    TRUE(argc == 2 || argc == 3);
    if (argc == 3) {
        char line[64];
        OK(hamr_store_connect(argv[1], -1, &store));
        while (fgets(line, sizeof line, stdin)) again(line);
        OK(hamr_store_close(store));
        return 0;
    }
    OK(hamr_store_serve(argv[1], 64 << 20, 0, NULL, &server));
    OK(hamr_store_connect(argv[1], -1, &store));
    many();
    groups(argv[1]);
    OK(hamr_store_statistics(store, &figures));
    TRUE(figures.objects == 0 && figures.leases == 0 && figures.names == 0);
    OK(hamr_store_close(store));
    OK(hamr_store_end_server(server));
    puts("all of the groups");
    return 0;
}
