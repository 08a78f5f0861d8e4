/* Memory of two CUDA devices, streams and events, by native handles in and out. */
#include "driver.h"

static int has(const hamr_buffer *buffer, const char *text) {
    char *found = NULL;
    OK(hamr_text(buffer, 0, &found));
    int same = strcmp(found, text) == 0;
    if (!same) fprintf(stderr, "the text is %s, expected %s\n", found, text);
    hamr_free_text(found);
    return same;
}

static hamr_place on(int32_t allocator, int32_t device, hamr_stream *stream, int32_t transfer) {
    hamr_place place = {allocator, device, stream ? hamr_native_stream(stream) : NULL, transfer, 0};
    return place;
}

static void end(void *data, void *context) {
    OK(hamr_release((hamr_buffer *)context));
    TRUE(data != NULL);
}

static void order(void) {
    hamr_stream *one, *two, *wrapped;
    hamr_event *first, *second, *third;
    hamr_buffer *a, *b, *c;
    int64_t n = 4, nanoseconds = -1;
    int32_t over = 0;
    float half = 0.5f, read[4];
    OK(hamr_create_stream("cuda", 0, &one));
    OK(hamr_create_stream("cuda", 0, &two));
    OK(hamr_wrap_stream("cuda", 0, hamr_native_stream(two), &wrapped));
    TRUE(hamr_native_stream(wrapped) == hamr_native_stream(two));
    hamr_place place = on(HAMR_ALLOCATOR_CUDA_ASYNC, 0, one, HAMR_ASYNC);
    OK(hamr_record_event(one, 1, &first));
    OK(hamr_create(&a, HAMR_FLOAT32, 1, &n, &place, &half));
    OK(hamr_append_values(a, HAMR_FLOAT32, &half, 1));
    OK(hamr_record_event(one, 1, &second));
    OK(hamr_stream_wait_event(two, second));
    OK(hamr_wrap_event("cuda", 0, hamr_native_event(second), &third));
    OK(hamr_wait_event(third, -1, &over));
    TRUE(over);
    OK(hamr_elapsed(first, second, &nanoseconds));
    TRUE(nanoseconds >= 0);
    place = on(HAMR_ALLOCATOR_CUDA, 0, two, HAMR_ASYNC);
    OK(hamr_copy(a, &b, HAMR_FLOAT32, &place));
    OK(hamr_order_before(b, hamr_native_stream(one)));
    OK(hamr_order_after(b, hamr_native_stream(one)));
    OK(hamr_set_stream(b, hamr_native_stream(one), HAMR_SYNC_HOST));
    OK(hamr_get_values(b, 1, HAMR_FLOAT32, read, 4));
    TRUE(read[0] == 0.5f && read[3] == 0.5f);
    OK(hamr_wait_stream(two, -1, &over));
    OK(hamr_release_event(first));
    OK(hamr_release_event(second));
    OK(hamr_release_event(third));
    FAILS(hamr_release_event(third), HAMR_ERROR_RELEASED, "released before");
    OK(hamr_release_stream(wrapped));
    OK(hamr_release_stream(one)); /* a and b turn to the default stream */
    TRUE(!hamr_info_of(a)->stream && !hamr_info_of(b)->stream);
    OK(hamr_fill(b, HAMR_FLOAT32, &half));
    TRUE(has(b, "{0.5, 0.5, 0.5, 0.5, 0.5}"));
    OK(hamr_adopt(&c, hamr_data(b), HAMR_FLOAT32, 1, &n, NULL, &place, 0, end, b));
    TRUE(hamr_info_of(c)->allocator == HAMR_ALLOCATOR_CUDA && hamr_info_of(c)->device == 0);
    OK(hamr_release(c)); /* and with it b */
    OK(hamr_release(a));
    OK(hamr_release_stream(two));
    place.stream = (void *)2; /* the thread's own default stream has a name for others, too */
    OK(hamr_create(&a, HAMR_FLOAT32, 1, &n, &place, &half));
    TRUE(hamr_info_of(a)->stream && hamr_info_of(a)->stream != (void *)2);
    place.stream = NULL;
    OK(hamr_copy(a, &b, 0, &place));
    TRUE(!hamr_info_of(b)->stream && has(b, "{0.5, 0.5, 0.5, 0.5}"));
    OK(hamr_release(a));
    OK(hamr_release(b));
    OK(hamr_release_stream(NULL));
    OK(hamr_release_event(NULL));
}

static void reach(void) {
    hamr_buffer *a, *b;
    hamr_handle *handle, *other;
    hamr_place place = on(HAMR_ALLOCATOR_CUDA, 0, NULL, HAMR_SYNC_HOST);
    int64_t n = 3;
    int32_t two = 2;
    double fives[2] = {5, 5};
    struct DLManagedTensorVersioned *tensor;
    OK(hamr_create(&a, HAMR_INT32, 1, &n, &place, &two));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_READ_WRITE, &handle));
    TRUE(hamr_handle_info(handle)->flags & HAMR_INFO_TEMPORARY);
    ((int32_t *)hamr_handle_data(handle))[1] = 5;
    OK(hamr_release_handle(handle));
    TRUE(has(a, "{2, 5, 2}"));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_WRITE, &handle));
    ((int32_t *)hamr_handle_data(handle))[0] = 8;
    OK(hamr_abandon_handle(handle));
    TRUE(has(a, "{2, 5, 2}"));
    OK(hamr_keep_temporaries(a, 1));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_PLAIN, &handle));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_PLAIN, &other));
    TRUE(hamr_handle_data(handle) == hamr_handle_data(other));
    OK(hamr_release_handle(handle));
    OK(hamr_release_handle(other));
    OK(hamr_keep_temporaries(a, 0));
    OK(hamr_access(a, HAMR_CUDA, 0, HAMR_PLAIN, &handle));
    TRUE(hamr_handle_data(handle) == hamr_data(a));
    OK(hamr_release_handle(handle));
    OK(hamr_to_dlpack(a, (void *)1, &tensor));
    OK(hamr_from_dlpack(tensor, NULL, &b));
    TRUE(hamr_data(b) == hamr_data(a) && hamr_info_of(b)->allocator == HAMR_ALLOCATOR_CUDA);
    OK(hamr_release(a));
    TRUE(has(b, "{2, 5, 2}"));
    OK(hamr_free(b));
    OK(hamr_append_values(b, HAMR_INT32, &two, 1));
    TRUE(has(b, "{2}") && hamr_info_of(b)->allocator == HAMR_ALLOCATOR_CUDA);
    OK(hamr_append_values(b, HAMR_FLOAT64, fives, 2));
    OK(hamr_move(b, HAMR_ALLOCATOR_MALLOC, -1));
    TRUE(((int32_t *)hamr_data(b))[1] == 5);
    OK(hamr_release(b));
}

static void devices(void) {
    hamr_buffer *a, *b;
    hamr_place place = on(HAMR_ALLOCATOR_CUDA, 1, NULL, HAMR_SYNC);
    int64_t n = 5, free_bytes = 0, total = 0;
    int32_t count, device, can;
    uint64_t before;
    hamr_found found;
    OK(hamr_device_count("cuda", &count));
    TRUE(count >= 2);
    OK(hamr_enter_device("cuda", 1, &before));
    OK(hamr_current_device("cuda", &device));
    TRUE(device == 1);
    OK(hamr_leave_device("cuda", before));
    OK(hamr_can_access_peer("cuda", 0, 1, &can));
    for (int i = 0; can && i < 2; i++) OK(hamr_enable_peer("cuda", 0, 1));
    for (int i = 0; i < 3; i++) OK(hamr_disable_peer("cuda", 0, 1)); /* once more than it was enabled */
    FAILS(hamr_disable_peer("cuda", 0, 99), HAMR_ERROR_VALUE, "99");
    OK(hamr_memory_info("cuda", 1, &free_bytes, &total));
    TRUE(0 < free_bytes && free_bytes <= total);
    OK(hamr_create(&a, HAMR_INT8, 1, &n, &place, "\7"));
    OK(hamr_locate(hamr_data(a), &found));
    TRUE(found.allocator == HAMR_ALLOCATOR_CUDA && found.device == 1 && found.bytes >= 5);
    place.device = 0;
    OK(hamr_copy(a, &b, 0, &place));
    TRUE(hamr_info_of(b)->device == 0 && has(b, "{7, 7, 7, 7, 7}"));
    OK(hamr_set_limit(HAMR_ALLOCATOR_CUDA, 0, 4096));
    n = 64 << 20;
    FAILS(hamr_resize(b, 1, &n, NULL), HAMR_ERROR_MEMORY, "67108864");
    OK(hamr_set_limit(HAMR_ALLOCATOR_CUDA, 0, -2));
    OK(hamr_release(a));
    OK(hamr_release(b));
    place.device = 99;
    FAILS(hamr_create(&a, HAMR_INT8, 1, &n, &place, NULL), HAMR_ERROR_VALUE, "99");
}

/* Memory that is paused is where it was, and nobody uses it meanwhile. */
static void pauses(void) {
    hamr_buffer *a;
    int64_t n = 4, outer, inner;
    hamr_place place = on(HAMR_ALLOCATOR_CUDA_VMM, 0, NULL, HAMR_SYNC);
    OK(hamr_enter_pausable("kv", &outer));
    OK(hamr_enter_pausable("other", &inner));
    OK(hamr_leave_pausable(inner));
    OK(hamr_create(&a, HAMR_INT8, 1, &n, &place, "\7"));
    OK(hamr_leave_pausable(outer));
    void *address = hamr_data(a);
    const char *const keeps[] = {"host", "disk"};
    for (int i = 0; i < 2; i++) {
        OK(hamr_pause("kv", keeps[i], NULL));
        FAILS(hamr_fill(a, HAMR_INT8, "\3"), HAMR_ERROR_PAUSED, "\"kv\" is paused");
        OK(hamr_resume("kv"));
        TRUE(hamr_data(a) == address && has(a, "{7, 7, 7, 7}"));
    }
    OK(hamr_release(a));
}

/* Nobody waits for a device at the release of memory that the core hands out again, whoever has the address. */
static void releases(const char *path) {
    int (*calls)(const char *);
    hamr_buffer *a;
    hamr_handle *handle;
    int64_t n = 4;
    hamr_place place = on(HAMR_ALLOCATOR_CUDA, 0, NULL, HAMR_ASYNC);
    *(void **)(void *)&calls = of_driver(path, "emulator_calls");
    if (!calls) return;
    for (int known = 0; known < 2; known++) {
        OK(hamr_create(&a, HAMR_FLOAT32, 1, &n, &place, NULL));
        OK(hamr_access(a, HAMR_CUDA, 0, HAMR_PLAIN, &handle));
        TRUE(hamr_size(a) == 4 && hamr_info_of(a)->bytes == 16 && hamr_handle_info(handle)->device == 0);
        TRUE(!known || hamr_handle_data(handle) == hamr_data(a));
        OK(hamr_release_handle(handle));
        int before = calls("cuCtxSynchronize");
        OK(hamr_release(a));
        TRUE(calls("cuCtxSynchronize") == before);
    }
}

/* Buffers without memory, and those of the host, name streams, too. */
static void streams_end(void) {
    static const int32_t allocators[] = {HAMR_ALLOCATOR_CUDA, HAMR_ALLOCATOR_CUDA_ASYNC, HAMR_ALLOCATOR_MALLOC};
    int64_t n = 4, none = 0;
    for (int i = 0; i < 3; i++) {
        hamr_stream *stream;
        hamr_buffer *a;
        OK(hamr_create_stream("cuda", 0, &stream));
        hamr_place place = on(allocators[i], 0, stream, HAMR_ASYNC);
        OK(hamr_create(&a, HAMR_FLOAT32, 1, &none, &place, NULL));
        OK(hamr_release_stream(stream));
        TRUE(!hamr_info_of(a)->stream);
        OK(hamr_resize(a, 1, &n, NULL));
        OK(hamr_move(a, HAMR_ALLOCATOR_CUDA, 0));
        OK(hamr_synchronize(a));
        OK(hamr_release(a));
    }
}

/* Of the emulated driver: nothing is left. */
static void look_at_memory(const char *path) {
    int (*live)(const char *);
    *(void **)(void *)&live = of_driver(path, "emulator_live");
    if (!live) return;
    OK(hamr_trim());
    TRUE(live("memory") == 0 && live("streams") <= 1); /* one follows this thread */
}

int main(int count, char **arguments) {
    order();
    reach();
    devices();
    pauses();
    streams_end();
    if (count > 1) releases(arguments[1]);
    hamr_usage left = usage_of(HAMR_ALLOCATOR_CUDA), ordered = usage_of(HAMR_ALLOCATOR_CUDA_ASYNC);
    TRUE(left.live == 0 && left.adopted == 0 && ordered.live == 0);
    if (count > 1) look_at_the_driver(arguments[1]);
    if (count > 1) look_at_memory(arguments[1]);
    puts("all on devices");
    return 0;
}
