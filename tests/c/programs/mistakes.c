/* What is wrong is refused, in words, and nothing has happened. */
#include "check.h"

static void never(void *data, void *context) {
    (void)data;
    (void)context;
    FAIL("the deleter of memory that was refused is called");
}

int main(void) {
    hamr_buffer *a, *b = NULL;
    hamr_handle *others[40], *handle;
    hamr_stream *stream;
    hamr_failure failure;
    int64_t n = 4, less = -4, still[3] = {0, 0, 0}, huge[3] = {(int64_t)1 << 31, (int64_t)1 << 31, 4};
    int64_t much = (int64_t)1 << 46, before;
    int64_t windows[2] = {3, 2}, ones[2] = {1, 1}, nothing[2] = {0, 3}, far[2] = {1, INT64_MAX / 2 + 1};
    int32_t count, value = 300;
    hamr_place place = {HAMR_ALLOCATOR_MALLOC, -1, NULL, HAMR_SYNC, 0};
    OK(hamr_create(&a, HAMR_UINT8, 1, &n, NULL, "\3"));
    int64_t live = usage_of(HAMR_ALLOCATOR_MALLOC).live;

    FAILS(hamr_create(NULL, HAMR_UINT8, 1, &n, NULL, NULL), HAMR_ERROR_VALUE, "made is NULL");
    FAILS(hamr_create(&b, 99, 1, &n, NULL, NULL), HAMR_ERROR_TYPE, "element is 99");
    FAILS(hamr_create(&b, HAMR_UINT8, -1, &n, NULL, NULL), HAMR_ERROR_VALUE, "ndim is -1");
    FAILS(hamr_create(&b, HAMR_UINT8, 65, &n, NULL, NULL), HAMR_ERROR_VALUE, "ndim is 65");
    FAILS(hamr_create(&b, HAMR_UINT8, 1, NULL, NULL, NULL), HAMR_ERROR_VALUE, "shape is NULL");
    FAILS(hamr_create(&b, HAMR_UINT8, 1, &less, NULL, NULL), HAMR_ERROR_VALUE, "-4");
    FAILS(hamr_create(&b, HAMR_FLOAT64, 3, huge, NULL, NULL), HAMR_ERROR_VALUE, "shape");
    FAILS(hamr_create(&b, HAMR_FLOAT64, 1, &much, NULL, NULL), HAMR_ERROR_MEMORY, "562949953421312");
    hamr_last_failure(&failure);
    TRUE(failure.status == HAMR_ERROR_MEMORY && failure.size == much * 8 && failure.code == -1 &&
         strcmp(failure.source, "malloc") == 0);
    place.allocator = 77;
    FAILS(hamr_create(&b, HAMR_UINT8, 1, &n, &place, NULL), HAMR_ERROR_VALUE, "allocator is 77");
    place.allocator = HAMR_ALLOCATOR_MALLOC;
    place.transfer = 5;
    FAILS(hamr_create(&b, HAMR_UINT8, 1, &n, &place, NULL), HAMR_ERROR_VALUE, "transfer is 5");

    FAILS(hamr_adopt(&b, NULL, HAMR_UINT8, 1, &n, NULL, NULL, 0, never, NULL), HAMR_ERROR_VALUE, "NULL");
    FAILS(hamr_adopt(&b, &n, HAMR_UINT8, 1, &less, NULL, NULL, 0, never, NULL), HAMR_ERROR_VALUE, "-4");
    FAILS(hamr_adopt(&b, &n, HAMR_FLOAT64, 3, huge, NULL, NULL, 0, never, NULL), HAMR_ERROR_VALUE, "shape");
    FAILS(hamr_adopt(&b, &n, HAMR_UINT8, 1, &n, NULL, NULL, HAMR_ADOPT_TAKE, never, NULL), HAMR_ERROR_VALUE,
          "a deleter");
    FAILS(hamr_adopt(&b, &n, HAMR_UINT8, 1, &n, NULL, NULL, 64, never, NULL), HAMR_ERROR_VALUE, "0x40");

    FAILS(hamr_resize(a, 1, &less, NULL), HAMR_ERROR_VALUE, "-4");
    FAILS(hamr_reserve(a, -1, NULL), HAMR_ERROR_VALUE, "-1");
    FAILS(hamr_set_values(a, 3, HAMR_UINT8, "ab", 2), HAMR_ERROR_INDEX, "3");
    FAILS(hamr_get_values(a, 0, HAMR_UINT8, &value, 5), HAMR_ERROR_INDEX, "5");
    FAILS(hamr_get_values(a, 0, HAMR_UINT8, NULL, 4), HAMR_ERROR_VALUE, "values is NULL");
    FAILS(hamr_append_values(a, HAMR_UINT8, "ab", -2), HAMR_ERROR_VALUE, "size is -2");
    FAILS(hamr_append_values(a, 0, "ab", 2), HAMR_ERROR_TYPE, "element is 0");
    FAILS(hamr_fill(a, HAMR_UINT8, NULL), HAMR_ERROR_VALUE, "values is NULL");
    FAILS(hamr_assign(a, NULL), HAMR_ERROR_VALUE, "other is NULL");
    FAILS(hamr_view(a, &b, 1, 0, 1, &n, NULL), HAMR_ERROR_INDEX, "outside");
    FAILS(hamr_view(a, &b, -1, 0, 1, &n, NULL), HAMR_ERROR_INDEX, "outside");
    FAILS(hamr_view(a, &b, 0, HAMR_FLOAT64, 1, &n, NULL), HAMR_ERROR_INDEX, "outside");
    FAILS(hamr_view(a, &b, INT64_MAX, 0, 1, &n, NULL), HAMR_ERROR_INDEX, "outside");
    FAILS(hamr_view(a, &b, 0, 0, 3, huge, NULL), HAMR_ERROR_VALUE, "shape");
    FAILS(hamr_view(a, &b, 0, 0, 3, huge, still), HAMR_ERROR_VALUE, "63 bits");
    huge[2] = 0;
    OK(hamr_view(a, &b, INT64_MAX, 0, 3, huge, NULL));
    TRUE(hamr_size(b) == 0 && hamr_info_of(b)->capacity == 0 && hamr_data(b) == hamr_data(a));
    OK(hamr_release(b));
    b = NULL;
    huge[0] = huge[1] = (int64_t)1 << 40; /* no elements excuse neither the other sizes nor what strides reach */
    FAILS(hamr_view(a, &b, 0, 0, 3, huge, NULL), HAMR_ERROR_VALUE, "63 bits");
    FAILS(hamr_view(a, &b, 0, 0, 3, huge, still), HAMR_ERROR_VALUE, "63 bits");
    FAILS(hamr_view(a, &b, 0, 0, 2, nothing, far), HAMR_ERROR_INDEX, "outside");
    huge[0] = huge[1] = (int64_t)1 << 31;
    huge[2] = 4;
    FAILS(hamr_reshape(a, &b, 1, &less, 0), HAMR_ERROR_VALUE, "-4");
    FAILS(hamr_copy(a, &b, 99, NULL), HAMR_ERROR_TYPE, "element is 99");
    FAILS(hamr_copy_many(-1, NULL, NULL, 0), HAMR_ERROR_VALUE, "count is -1");
    FAILS(hamr_copy_many(1, NULL, NULL, 0), HAMR_ERROR_VALUE, "NULL");
    FAILS(hamr_copy_many(0, NULL, NULL, 3), HAMR_ERROR_VALUE, "transfer is 3");
    FAILS(hamr_copy_many(0, NULL, NULL, -2), HAMR_ERROR_VALUE, "transfer is -2");
    FAILS(hamr_copy_blocks(-1, NULL, a, NULL, a, 0), HAMR_ERROR_VALUE, "count is -1");
    FAILS(hamr_copy_blocks(1, NULL, a, NULL, a, 0), HAMR_ERROR_VALUE, "NULL");
    FAILS(hamr_copy_blocks(0, NULL, a, NULL, a, 3), HAMR_ERROR_VALUE, "transfer is 3");
    FAILS(hamr_copy_blocks(0, NULL, NULL, NULL, a, 0), HAMR_ERROR_VALUE, "destination_index");
    FAILS(hamr_copy_blocks(0, NULL, a, NULL, NULL, 0), HAMR_ERROR_VALUE, "source_index");
    FAILS(hamr_text(a, -1, (char **)&b), HAMR_ERROR_VALUE, "limit is -1");
    FAILS(hamr_access(a, 17, 0, HAMR_READ, &handle), HAMR_ERROR_VALUE, "space is 17");
    FAILS(hamr_access(a, HAMR_HOST, 0, 9, &handle), HAMR_ERROR_VALUE, "mode is 9");
    OK(hamr_view(a, &b, 0, 0, 2, windows, ones));
    FAILS(hamr_access(b, HAMR_HOST, -1, HAMR_READ_WRITE, &handle), HAMR_ERROR_VALUE, "lie on each other");
    OK(hamr_access(b, HAMR_HOST, -1, HAMR_READ, &handle));
    OK(hamr_release_handle(handle));
    OK(hamr_release(b));
    b = NULL;
    FAILS(hamr_set_transfer(a, 3), HAMR_ERROR_VALUE, "transfer is 3");
    FAILS(hamr_set_limit(-1, 0, 5), HAMR_ERROR_VALUE, "allocator is -1");
    FAILS(hamr_set_limit(HAMR_ALLOCATOR_CUDA, 0, -9), HAMR_ERROR_VALUE, "bytes is -9");
    FAILS(hamr_limit_kept(-9), HAMR_ERROR_VALUE, "bytes is -9");
    FAILS(hamr_enter_pausable(NULL, &before), HAMR_ERROR_VALUE, "name is NULL");
    FAILS(hamr_enter_pausable("", &before), HAMR_ERROR_VALUE, "a name");
    FAILS(hamr_enter_pausable("kv", NULL), HAMR_ERROR_VALUE, "before");
    FAILS(hamr_pause("none", "host", NULL), HAMR_ERROR_VALUE, "none");
    FAILS(hamr_pause("none", "all", NULL), HAMR_ERROR_VALUE, "nothing, host, disk");
    FAILS(hamr_resume("none"), HAMR_ERROR_VALUE, "none");
    FAILS(hamr_limit_in_use(NULL, "host", 0, -2), HAMR_ERROR_VALUE, "bytes is -2");
    FAILS(hamr_limit_in_use("numpy", "host", 0, 1), HAMR_ERROR_VALUE, "accepted is hamr, cupy, torch or numba");
    FAILS(hamr_limit_in_use(NULL, "abacus", 0, 1), HAMR_ERROR_VALUE, "abacus");
    FAILS(hamr_configure("PATH", "x"), HAMR_ERROR_VALUE, "PATH");
    FAILS(hamr_configure(NULL, "x"), HAMR_ERROR_VALUE, "name is NULL");
    FAILS(hamr_configure("HAMR_VERBOSE", NULL), HAMR_ERROR_VALUE, "value is NULL: accepted is a text");
    FAILS(hamr_set_verbose(4), HAMR_ERROR_VALUE, "level is 4");
    FAILS(hamr_device_count("abacus", &count), HAMR_ERROR_VALUE, "abacus");
    FAILS(hamr_create_stream("abacus", 0, &stream), HAMR_ERROR_VALUE, "abacus");
    FAILS(hamr_create_stream(NULL, 0, &stream), HAMR_ERROR_VALUE, "NULL");
    FAILS(hamr_from_dlpack(NULL, NULL, &b), HAMR_ERROR_VALUE, "tensor is NULL");

    OK(hamr_access(a, HAMR_HOST, -1, HAMR_WRITE, &handle));
    FAILS(hamr_release((hamr_buffer *)(void *)handle), HAMR_ERROR_VALUE, "a handle of an access");
    FAILS(hamr_resize(a, 1, huge, NULL), HAMR_ERROR_IN_USE, "in use");
    OK(hamr_release_handle(handle));
    FAILS(hamr_release_handle(handle), HAMR_ERROR_RELEASED, "released before");
    TRUE(hamr_size(a) == 4 && ((uint8_t *)hamr_data(a))[3] == 3 && usage_of(HAMR_ALLOCATOR_MALLOC).live == live && !b);
    for (int i = 0; i < 40; i++) { /* others come and go, and what was released is still told */
        OK(hamr_access(a, HAMR_HOST, -1, HAMR_READ, &others[i]));
        if (i % 2) OK(hamr_release_handle(others[i]));
    }
    FAILS(hamr_release_handle(handle), HAMR_ERROR_RELEASED, "released before");
    for (int i = 0; i < 40; i += 2) OK(hamr_release_handle(others[i]));
    OK(hamr_release(a));
    FAILS(hamr_release(a), HAMR_ERROR_RELEASED, "released before");
    FAILS(hamr_synchronize(a), HAMR_ERROR_RELEASED, "released before");
    TRUE(!hamr_data(a) && !hamr_info_of(NULL) && !hamr_handle_data(NULL));
    puts("all refused");
    return 0;
}
