/* hamr/store.h: one program is the server, a client of it and, as another process, a second client. Its argument is the
 * socket's path. */
#define _GNU_SOURCE
#include "store_check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is made is found, by whoever asks, in place, and nobody changes it. */
static void objects(void) {
    hamr_buffer *sealed, *found, *view;
    hamr_store_info info;
    hamr_mirror *mirror;
    hamr_store_id id = made(MUCH, HAMR_STORE_PINNED, 1.5, &sealed), other;
    int64_t n = 3;
    int32_t there, done;
    char *text, digits[33];
    size_t bytes;
    OK(hamr_store_get(store, &id, 0, 0, &found));
    TRUE(hamr_info_of(found)->flags & HAMR_INFO_READ_ONLY && hamr_size(found) == MUCH && first_of(found) == 1.5);
    TRUE(hamr_data(found) == hamr_data(sealed)); /* the same process has it mapped once */
    FAILS(hamr_fill(found, HAMR_FLOAT64, "\0\0\0\0\0\0\0\0"), HAMR_ERROR_VALUE, "read-only");
    OK(hamr_create_mirror(found, 0, &mirror));
    TRUE(((const double *)hamr_mirror_data(mirror))[MUCH - 1] == 1.5 &&
         hamr_mirror_info(mirror)->flags & HAMR_INFO_READ_ONLY);
    OK(hamr_release_mirror(mirror));
    FAILS(hamr_release_mirror(mirror), HAMR_ERROR_RELEASED, "released before");
    OK(hamr_create_mirror(found, 1, &mirror));
    OK(hamr_abandon_mirror(mirror));
    FAILS(hamr_create_mirror(NULL, 1, &mirror), HAMR_ERROR_VALUE, "buffer is NULL");
    OK(hamr_store_describe(store, &id, &info));
    TRUE(same(&info.id, &id) && info.bytes == MUCH * 8 && info.leases >= 1 && info.element == HAMR_FLOAT64 &&
         info.ndim == 1 && info.shape[0] == MUCH);
    TRUE(info.flags == (HAMR_STORE_PINNED | HAMR_STORE_SEALED) && !info.device[0]);
    OK(hamr_store_metadata(store, &id, &text, &bytes));
    TRUE(strcmp(text, "{\"step\": 7}") == 0 && bytes == strlen(text));
    hamr_free_text(text);
    hamr_store_id_text(&id, digits);
    TRUE(hamr_store_id_parse(digits, &other) && same(&id, &other));
    digits[3] = 'x';
    TRUE(!hamr_store_id_parse(digits, &other) && !hamr_store_id_parse("12", &other) &&
         !hamr_store_id_parse(NULL, &other));

    /* The lease is that of all who share the memory. */
    OK(hamr_release(sealed));
    OK(hamr_view(found, &view, 8, 0, 1, &n, NULL));
    OK(hamr_release(found));
    OK(hamr_store_delete(store, &id, 0));
    TRUE(first_of(view) == 1.5);
    hamr_store_figures figures;
    OK(hamr_store_statistics(store, &figures));
    TRUE(figures.limit == 64 << 20 && figures.used >= MUCH * 8 && figures.sessions >= 1);
    OK(hamr_release(view));
    OK(hamr_store_exists(store, &id, &there, &done));
    OK(hamr_store_statistics(store, &figures));
    TRUE(!there && !done && figures.used == 0 && figures.leases == 0);
}

static void names(void) {
    hamr_store_id first = made(3, 0, 1, NULL), second = made(MUCH, HAMR_STORE_SEPARATE, 2, NULL), id, ids[4], ready[2];
    uint64_t after = 0;
    int64_t found;
    OK(hamr_store_put_name(store, "a/first", &first, 0));
    OK(hamr_store_put_name(store, "b/second", &second, 0));
    FAILS(hamr_store_put_name(store, "a/first", &second, 0), HAMR_ERROR_NAME_TAKEN, "a/first");
    OK(hamr_store_put_name(store, "a/first", &second, 1));
    OK(hamr_store_get_name(store, "a/first", 0, &id));
    TRUE(same(&id, &second));
    FAILS(hamr_store_wait_name(store, "a/first", &second, 0, &id), HAMR_ERROR_TIMEOUT, "deadline");
    FAILS(hamr_store_wait_name(store, "a/first", &second, 30, &id), HAMR_ERROR_TIMEOUT, "deadline");
    FAILS(hamr_store_wait_name(store, "c", NULL, 0, &id), HAMR_ERROR_NOT_FOUND, "c");
    OK(hamr_store_wait_name(store, "a/first", &first, -1, &id));
    TRUE(same(&id, &second));
    hamr_store_id third = made(3, HAMR_STORE_SESSION, 1, NULL);
    OK(hamr_store_put_name(store, "version", &third, 0));
    id = made(3, HAMR_STORE_SESSION, 1, NULL);
    OK(hamr_store_replace(store, "version", &id, 1));
    FAILS(hamr_store_delete(store, &third, 0), HAMR_ERROR_NOT_FOUND, "");
    OK(hamr_store_wait_name(store, "version", &third, -1, &third));
    TRUE(same(&id, &third));
    OK(hamr_store_delete(store, &id, 0));
    FAILS(hamr_store_get_name(store, "c", 0, &id), HAMR_ERROR_NOT_FOUND, "c");
    FAILS(hamr_store_get_name(store, "c", 30, &id), HAMR_ERROR_TIMEOUT, "deadline");
    OK(hamr_store_list(store, 0, NULL, &after, ids, 4, &found));
    TRUE(found == 2 && same(&ids[0], &first) && after == 0);
    OK(hamr_store_list(store, HAMR_STORE_LIST_NAMED, "b/", &after, ids, 4, &found));
    TRUE(found == 1 && same(&ids[0], &second));
    ids[1] = first;
    OK(hamr_store_wait(store, ids, 2, 2, -1, ready, &found));
    ids[2] = ids[0];
    OK(hamr_store_wait(store, ids, 3, 3, -1, ready, &found));
    TRUE(found == 2);
    TRUE(found == 2 && same(&ready[1], &first));
    memset(&ids[1], 7, sizeof ids[1]);
    OK(hamr_store_wait(store, ids, 2, 2, 30, ready, &found));
    TRUE(found == 1 && same(&ready[0], &second));
    OK(hamr_store_drop_name(store, "a/first"));
    FAILS(hamr_store_get_name(store, "a/first", 0, &id), HAMR_ERROR_NOT_FOUND, "a/first");
    OK(hamr_store_delete(store, &first, 0));
    OK(hamr_store_delete(store, &second, 1));
}

static void marks(void) {
    hamr_store_builder *builder;
    hamr_store_id id, none;
    int64_t n = MUCH;
    char *text;
    size_t bytes;
    memset(&none, 9, sizeof none);
    OK(hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, 0, "[1]", 3, &builder));
    id = hamr_store_builder_id(builder);
    OK(hamr_store_set_metadata(store, &id, "[1, 2]", 6));
    FAILS(hamr_store_set_metadata(store, &id, NULL, 6), HAMR_ERROR_VALUE, "metadata is NULL");
    FAILS(hamr_store_set_metadata(store, NULL, "[]", 2), HAMR_ERROR_VALUE, "id is NULL");
    OK(hamr_store_set_evictable(store, &id, 1));
    OK(hamr_store_seal(builder, NULL));
    OK(hamr_store_metadata(store, &id, &text, &bytes));
    TRUE(strcmp(text, "[1, 2]") == 0 && bytes == 6);
    hamr_free_text(text);
    FAILS(hamr_store_set_metadata(store, &id, "[]", 2), HAMR_ERROR_SEALED, "sealed");
    TRUE(flags_of(&id) == HAMR_STORE_EVICTABLE);
    OK(hamr_store_pin(store, &id, 1));
    TRUE(flags_of(&id) == (HAMR_STORE_PINNED | HAMR_STORE_EVICTABLE));
    OK(hamr_store_pin(store, &id, 0));
    OK(hamr_store_set_evictable(store, &id, 0));
    TRUE(flags_of(&id) == 0);
    FAILS(hamr_store_pin(store, &none, 1), HAMR_ERROR_NOT_FOUND, "0909");
    FAILS(hamr_store_set_evictable(store, &none, 1), HAMR_ERROR_NOT_FOUND, "0909");
    FAILS(hamr_store_pin(NULL, &id, 1), HAMR_ERROR_VALUE, "store is NULL");
    OK(hamr_store_delete(store, &id, 0));
    FAILS(hamr_store_pin(store, &id, 1), HAMR_ERROR_NOT_FOUND, "");
}

static void timeouts(void) {
    int32_t there;
    hamr_store_id none;
    memset(&none, 9, sizeof none);
    OK(hamr_store_set_timeout(store, 60000));
    OK(hamr_store_exists(store, &none, &there, NULL));
    FAILS(hamr_store_set_timeout(store, 0), HAMR_ERROR_VALUE, "milliseconds is 0");
    FAILS(hamr_store_set_timeout(store, -2), HAMR_ERROR_VALUE, "milliseconds is -2");
    FAILS(hamr_store_set_timeout(NULL, 1), HAMR_ERROR_VALUE, "store is NULL");
    OK(hamr_store_set_timeout(store, -1));
}

/* What is not sealed, and what is put. */
static void builders(void) {
    hamr_store_builder *builder;
    hamr_buffer *written, *found, *source, *view;
    hamr_store_id id;
    int64_t n = MUCH, more = MUCH + 1;
    int32_t there, done;
    double half = 0.5, two = 2;
    OK(hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, HAMR_STORE_EVICTABLE, NULL, 0, &builder));
    id = hamr_store_builder_id(builder);
    written = hamr_store_builder_buffer(builder);
    FAILS(hamr_store_get(store, &id, 0, 0, &found), HAMR_ERROR_NOT_SEALED, "not sealed");
    FAILS(hamr_store_get(store, &id, 0, 30, &found), HAMR_ERROR_TIMEOUT, "deadline");
    OK(hamr_fill(written, HAMR_FLOAT64, &half));
    OK(hamr_store_get(store, &id, 1, 0, &found));
    TRUE(first_of(found) == 0.5);
    OK(hamr_fill(written, HAMR_FLOAT64, &two));
    TRUE(first_of(found) == 2); /* seen at once */
    OK(hamr_release(found));
    OK(hamr_store_exists(store, &id, &there, &done));
    TRUE(there && !done);

    /* Other elements than the object's are not sealed instead of them. */
    OK(hamr_view(written, &view, 0, 0, 1, &n, NULL));
    OK(hamr_resize(written, 1, &more, NULL));
    FAILS(hamr_store_seal(builder, NULL), HAMR_ERROR_VALUE, "other elements");
    OK(hamr_store_abort(builder));
    TRUE(first_of(view) == 2);
    OK(hamr_release(view));
    FAILS(hamr_store_seal(builder, NULL), HAMR_ERROR_RELEASED, "released before");
    OK(hamr_store_exists(store, &id, &there, NULL));
    TRUE(!there);

    /* What is written to a view after the seal nobody else sees. */
    OK(hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, 0, NULL, 0, &builder));
    id = hamr_store_builder_id(builder);
    OK(hamr_fill(hamr_store_builder_buffer(builder), HAMR_FLOAT64, &half));
    OK(hamr_view(hamr_store_builder_buffer(builder), &view, 0, 0, 1, &n, NULL));
    OK(hamr_store_seal(builder, &found));
    OK(hamr_fill(view, HAMR_FLOAT64, &two));
    TRUE(first_of(found) == 0.5 && first_of(view) == 2);
    OK(hamr_release(view));
    OK(hamr_release(found));
    OK(hamr_store_delete(store, &id, 0));

    OK(hamr_create(&source, HAMR_FLOAT64, 1, &n, NULL, &half));
    OK(hamr_store_put(store, source, 0, NULL, 0, &id));
    OK(hamr_release(source));
    OK(hamr_store_get(store, &id, 0, -1, &found));
    TRUE(first_of(found) == 0.5);
    OK(hamr_release(found));
    OK(hamr_store_delete(store, &id, 0));

    n = 0; /* without elements */
    OK(hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, 0, NULL, 0, &builder));
    id = hamr_store_builder_id(builder);
    OK(hamr_store_seal(builder, &found));
    TRUE(hamr_size(found) == 0);
    OK(hamr_release(found));
    OK(hamr_store_delete(store, &id, 0));
}

static void mistakes(const char *path) {
    hamr_store *none;
    int32_t there;
    hamr_store_server *second;
    hamr_store_builder *builder;
    hamr_store_id id, unknown = {{1}};
    hamr_buffer *found;
    hamr_failure failure;
    int64_t n = 3, much = 64 << 20, number;
    hamr_place place = {HAMR_ALLOCATOR_MALLOC, -1, NULL, HAMR_SYNC, 0};
    FAILS(hamr_store_connect("/nowhere/socket", 50, &none), HAMR_ERROR_LOST, "/nowhere/socket");
    FAILS(hamr_store_connect("relative", -1, &none), HAMR_ERROR_VALUE, "relative");
    FAILS(hamr_store_connect(path, -1, NULL), HAMR_ERROR_VALUE, "made is NULL");
    FAILS(hamr_store_serve(path, 0, 0, NULL, &second), HAMR_ERROR_REFUSED, path);
    FAILS(hamr_store_serve(path, -3, 0, NULL, &second), HAMR_ERROR_VALUE, "-3");
    FAILS(hamr_store_get(store, &unknown, 0, 0, &found), HAMR_ERROR_NOT_FOUND, "01000000");
    FAILS(hamr_store_get(store, NULL, 0, 0, &found), HAMR_ERROR_VALUE, "id is NULL");
    FAILS(hamr_store_create(store, 99, 1, &n, NULL, 0, NULL, 0, &builder), HAMR_ERROR_TYPE, "element is 99");
    FAILS(hamr_store_create(store, HAMR_INT8, 1, &n, NULL, 64, NULL, 0, &builder), HAMR_ERROR_VALUE, "0x40");
    FAILS(hamr_store_create(store, HAMR_INT8, 1, &n, NULL, 0, NULL, 5, &builder), HAMR_ERROR_VALUE, "metadata is NULL");
    OK(hamr_store_connect(path, -1, &none));
    OK(hamr_store_create(none, HAMR_INT8, 1, &n, NULL, HAMR_STORE_SESSION, NULL, 0, &builder));
    id = hamr_store_builder_id(builder);
    OK(hamr_store_seal(builder, NULL));
    OK(hamr_store_exists(store, &id, &there, NULL));
    TRUE(there);
    OK(hamr_store_close(none));
    do OK(hamr_store_exists(store, &id, &there, NULL));
    while (there);
    FAILS(hamr_store_create(store, HAMR_INT8, 1, &n, NULL, 0, "{}", (size_t)1 << 40, &builder), HAMR_ERROR_VALUE,
          "1099511627776");
    FAILS(hamr_store_wait(store, &unknown, INT64_MAX, 2, 0, &id, &number), HAMR_ERROR_VALUE, "0 ... 4000");
    FAILS(hamr_store_create(store, HAMR_INT8, 1, &n, NULL, 0, "no JSON", 7, &builder), HAMR_ERROR_VALUE, "metadata");
    place.allocator = 77;
    FAILS(hamr_store_create(store, HAMR_INT8, 1, &n, &place, 0, NULL, 0, &builder), HAMR_ERROR_VALUE,
          "allocator is 77");
    FAILS(hamr_store_create(store, HAMR_FLOAT64, 1, &much, NULL, 0, NULL, 0, &builder), HAMR_ERROR_FULL, "host");
    hamr_last_failure(&failure);
    TRUE(failure.status == HAMR_ERROR_FULL && failure.size >= much * 8 && strcmp(failure.source, "host") == 0);
    FAILS(hamr_store_put(store, NULL, 0, NULL, 0, &id), HAMR_ERROR_VALUE, "buffer is NULL");
    FAILS(hamr_store_put_name(store, NULL, &unknown, 0), HAMR_ERROR_VALUE, "name is NULL");
    FAILS(hamr_store_replace(store, NULL, &unknown, 0), HAMR_ERROR_VALUE, "name is NULL");
    FAILS(hamr_store_replace(store, "x", &unknown, 0), HAMR_ERROR_NOT_FOUND, "01000000");
    FAILS(hamr_store_wait_name(store, "x", NULL, 0, NULL), HAMR_ERROR_VALUE, "id is NULL");
    FAILS(hamr_store_put_name(store, "x", &unknown, 0), HAMR_ERROR_NOT_FOUND, "01000000");
    FAILS(hamr_store_wait(store, &unknown, 1, 2, 0, &id, &number), HAMR_ERROR_VALUE, "count is 2");
    FAILS(hamr_store_list(store, 8, NULL, (uint64_t *)&number, &id, 1, &n), HAMR_ERROR_VALUE, "0x8");
    FAILS(hamr_store_delete((hamr_store *)(void *)&unknown, &unknown, 0), HAMR_ERROR_VALUE, "accepted is a session");
    TRUE(!hamr_store_path(NULL) && !hamr_store_server_path(NULL) && !hamr_store_builder_buffer(NULL));
    TRUE(!hamr_other_table("abacus", 1) && !hamr_other_table("store", 99));
}

/* A forked child has its own sessions, and none of its parent's. */
static void child_connects(const char *path, const hamr_store_id *id) {
    hamr_store *own;
    hamr_buffer *found;
    FAILS(hamr_store_get(store, id, 0, 0, &found), HAMR_ERROR_FORKED, "before fork()");
    OK(hamr_store_close(store));
    OK(hamr_store_connect(path, -1, &own));
    OK(hamr_store_get(own, id, 0, 0, &found));
    TRUE(first_of(found) == 3);
    OK(hamr_release(found));
    OK(hamr_store_close(own));
}

static void ended_well(pid_t child) {
    int status;
    TRUE(waitpid(child, &status, 0) == child && status == 0);
}

static void forks(const char *path) {
    hamr_store_id id = made(MUCH, 0, 3, NULL);
    pid_t child = fork();
    if (!child) {
        child_connects(path, &id);
        _exit(0);
    }
    ended_well(child);
    OK(hamr_store_delete(store, &id, 0));
}

/* Without the server: memory that another process has in place, or a copy of. */
static void share(int type, uint32_t flags) {
    hamr_buffer *field, *found;
    hamr_shared *shared;
    hamr_place place = {HAMR_ALLOCATOR_SHARED, -1, NULL, HAMR_SYNC, 0};
    int64_t n = MUCH;
    uint32_t told;
    int32_t count;
    int ends[2];
    const int *descriptors;
    const void *frame;
    size_t bytes;
    double one = 1, two = 2;
    TRUE(!socketpair(AF_UNIX, type, 0, ends));
    OK(hamr_create(&field, HAMR_FLOAT64, 1, &n, &place, &one));
    pid_t child = fork();
    if (!child) {
        OK(hamr_open_shared(ends[1], &found));
        TRUE(hamr_size(found) == MUCH && first_of(found) == 1 &&
             !(hamr_info_of(found)->flags & HAMR_INFO_READ_ONLY) == !(flags & HAMR_SHARE_READ_ONLY));
        if (!(flags & HAMR_SHARE_READ_ONLY)) OK(hamr_fill(found, HAMR_FLOAT64, &two));
        OK(hamr_release(found));
        close(ends[0]);
        if (type != SOCK_DGRAM) FAILS(hamr_open_shared(ends[1], &found), HAMR_ERROR_NOT_FOUND, "closed");
        _exit(0);
    }
    OK(hamr_share(field, flags, &shared));
    OK(hamr_shared_frame(shared, &frame, &bytes, &descriptors, &count, &told));
    TRUE(count == 1 && told == (flags & (HAMR_SHARE_READ_ONLY | HAMR_SHARE_COPY)));
    OK(hamr_send_shared(shared, ends[0]));
    close(ends[0]);
    ended_well(child);
    TRUE(first_of(field) == (flags & (HAMR_SHARE_READ_ONLY | HAMR_SHARE_COPY) ? 1 : 2));
    OK(hamr_open_frame(frame, bytes, descriptors, count, &found));
    FAILS(hamr_open_frame(frame, bytes, descriptors, 0, &found), HAMR_ERROR_VALUE, "descriptors");
    FAILS(hamr_open_frame("nothing", 7, NULL, 0, &found), HAMR_ERROR_VALUE, "accepted");
    FAILS(hamr_open_frame(frame, 5000, NULL, 0, &found), HAMR_ERROR_VALUE, "5000");
    OK(hamr_release(found));
    OK(hamr_release_shared(shared));
    FAILS(hamr_send_shared(shared, ends[0]), HAMR_ERROR_RELEASED, "released before");
    close(ends[1]);
    OK(hamr_release(field));
}

static int descriptors_open(void) {
    int n = 0;
    for (int i = 0; i < 1000; i++)
        if (lseek(i, 0, SEEK_CUR) >= 0 || errno != EBADF) n++;
    return n;
}

static void sharing(void) {
    hamr_buffer *field, *sealed;
    hamr_shared *shared;
    int ends[2];
    int64_t n = MUCH;
    uint32_t told;
    int before = descriptors_open();
    share(SOCK_STREAM, 0);
    share(SOCK_SEQPACKET, HAMR_SHARE_READ_ONLY);
    share(SOCK_DGRAM, HAMR_SHARE_COPY);
    TRUE(descriptors_open() == before);
    OK(hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, NULL));
    FAILS(hamr_share(field, HAMR_SHARE_IN_PLACE, &shared), HAMR_ERROR_VALUE, "in place");
    FAILS(hamr_share(field, HAMR_SHARE_IN_PLACE | HAMR_SHARE_COPY, &shared), HAMR_ERROR_VALUE, "both");
    FAILS(hamr_share(field, 64, &shared), HAMR_ERROR_VALUE, "0x40");
    OK(hamr_release(field));

    /* A sealed object's memory is a descriptor's. */
    hamr_store_id id = made(MUCH, 0, 1, &sealed);
    OK(hamr_share(sealed, HAMR_SHARE_IN_PLACE, &shared));
    OK(hamr_release(sealed));
    OK(hamr_shared_frame(shared, NULL, NULL, NULL, NULL, &told));
    TRUE(told == HAMR_SHARE_READ_ONLY);
    OK(hamr_release_shared(shared));
    OK(hamr_store_delete(store, &id, 0));

    TRUE(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) && write(ends[0], "no shared handle at all", 23) == 23);
    FAILS(hamr_open_shared(ends[1], &field), HAMR_ERROR_VALUE, "no shared handle");
    FAILS(hamr_open_shared(-1, &field), HAMR_ERROR_VALUE, "socket is -1");
    char rest[64];
    TRUE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && recv(ends[1], rest, sizeof rest, 0) > 0);
    FAILS(hamr_open_shared(ends[1], &field), HAMR_ERROR_TIMEOUT, "recvmsg");
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv) {
    hamr_store_server *server;
    hamr_store_figures figures;
    hamr_buffer *kept;
    hamr_store_id id;
    TRUE(argc == 2);
    OK(hamr_store_serve(argv[1], 64 << 20, 0, NULL, &server));
    TRUE(strcmp(hamr_store_server_path(server), argv[1]) == 0);
    TRUE(setenv("HAMR_STORE", argv[1], 1) == 0);
    OK(hamr_store_connect(NULL, -1, &store));
    TRUE(strcmp(hamr_store_path(store), argv[1]) == 0);
    hamr_store *none = NULL;
    TRUE(unsetenv("HAMR_STORE") == 0 && setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1) == 0);
    FAILS(hamr_store_connect(NULL, -1, &none), HAMR_ERROR_LOST, "/nowhere/at/all/hamr/store.sock");
    objects();
    names();
    marks();
    timeouts();
    builders();
    mistakes(argv[1]);
    forks(argv[1]);
    sharing();
    OK(hamr_store_statistics(store, &figures));
    TRUE(figures.objects == 0 && figures.leases == 0 && figures.names == 0);

    /* What is mapped stays when the server goes. */
    id = made(MUCH, 0, 4, &kept);
    OK(hamr_store_end_server(server));
    FAILS(hamr_store_delete(store, &id, 0), HAMR_ERROR_LOST, argv[1]);
    TRUE(first_of(kept) == 4);
    OK(hamr_store_close(store));
    FAILS(hamr_store_delete(store, &id, 0), HAMR_ERROR_RELEASED, "released before");
    TRUE(first_of(kept) == 4);
    OK(hamr_release(kept));
    puts("all of the store");
    return 0;
}
