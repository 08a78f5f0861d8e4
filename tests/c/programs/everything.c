/* Each function of the table that needs no device, once at least. */
#include "check.h"

static int ended;

static void end(void *data, void *context) {
    TRUE(context == &ended);
    free(data);
    ended++;
}

static int has(const hamr_buffer *buffer, const char *text) {
    char *found = NULL;
    OK(hamr_text(buffer, 0, &found));
    int same = strcmp(found, text) == 0;
    if (!same) fprintf(stderr, "the text is %s, expected %s\n", found, text);
    hamr_free_text(found);
    return same;
}

static void contents(void) {
    hamr_buffer *a, *b, *c, *list[1];
    const hamr_buffer *from[1];
    int64_t n = 3, grid[2] = {2, -1}, strides[1] = {16};
    double one = 1.5, values[4] = {1, 2, 3, 4}, read[2];
    int32_t seven = 7, whole[4];
    OK(hamr_create(&a, HAMR_FLOAT64, 1, &n, NULL, &one));
    TRUE(has(a, "{1.5, 1.5, 1.5}"));
    OK(hamr_assign_values(a, HAMR_FLOAT64, values, 4));
    OK(hamr_append_values(a, HAMR_INT32, &seven, 1));
    TRUE(has(a, "{1, 2, 3, 4, 7}") && hamr_size(a) == 5);
    OK(hamr_set_values(a, 4, HAMR_FLOAT64, values, 1));
    OK(hamr_get_values(a, 0, HAMR_INT32, whole, 4));
    TRUE(whole[0] == 1 && whole[3] == 4);
    OK(hamr_copy(a, &b, HAMR_INT32, NULL));
    TRUE(hamr_info_of(b)->element == HAMR_INT32 && has(b, "{1, 2, 3, 4, 1}"));
    OK(hamr_append(b, a));
    TRUE(hamr_size(b) == 10);
    OK(hamr_set(b, 0, a, 3, 2));
    OK(hamr_get_values(b, 0, HAMR_FLOAT64, read, 2));
    TRUE(read[0] == 4 && read[1] == 1);
    OK(hamr_assign(b, a));
    OK(hamr_fill(b, HAMR_INT32, &seven));
    TRUE(has(b, "{7, 7, 7, 7, 7}"));
    OK(hamr_write(b, a));
    list[0] = b;
    from[0] = a;
    OK(hamr_copy_many(1, list, from, -1));
    TRUE(has(b, "{1, 2, 3, 4, 1}"));
    {
        const int64_t at[] = {4, 0, -2}, of[] = {0, 1, 2};
        hamr_buffer *to_index = NULL, *from_index = NULL;
        n = 3;
        OK(hamr_create(&to_index, HAMR_INT64, 1, &n, NULL, NULL));
        OK(hamr_create(&from_index, HAMR_INT64, 1, &n, NULL, NULL));
        OK(hamr_assign_values(to_index, HAMR_INT64, at, 3));
        OK(hamr_assign_values(from_index, HAMR_INT64, of, 3));
        OK(hamr_copy_blocks(1, list, to_index, from, from_index, -1));
        TRUE(has(b, "{2, 2, 3, 3, 1}"));
        FAILS(hamr_copy_blocks(1, list, a, from, from_index, -1), HAMR_ERROR_TYPE, "destination_index is of type");
        hamr_release(to_index);
        hamr_release(from_index);
        OK(hamr_write(b, a));
    }
    n = 4;
    OK(hamr_resize(a, 1, &n, NULL));
    OK(hamr_reserve(a, 100, &one));
    TRUE(hamr_info_of(a)->capacity >= 100 && hamr_size(a) == 4);
    OK(hamr_reshape(a, &c, 2, grid, 1));
    TRUE(hamr_info_of(c)->ndim == 2 && hamr_info_of(c)->shape[1] == 2 && hamr_data(c) == hamr_data(a));
    OK(hamr_release(c));
    n = 2;
    OK(hamr_view(a, &c, 8, 0, 1, &n, strides));
    TRUE(has(c, "{2, 4}"));
    OK(hamr_move(b, HAMR_ALLOCATOR_CPP, -1));
    TRUE(hamr_info_of(b)->allocator == HAMR_ALLOCATOR_CPP && usage_of(HAMR_ALLOCATOR_CPP).live == 1);
    OK(hamr_swap(a, b));
    TRUE(hamr_size(a) == 5 && hamr_size(b) == 4 && hamr_info_of(a)->shape[0] == 5);
    OK(hamr_free(a));
    TRUE(hamr_size(a) == 0 && !hamr_data(a) && usage_of(HAMR_ALLOCATOR_CPP).live == 0);
    OK(hamr_append_values(a, HAMR_INT32, &seven, 1));
    OK(hamr_print(a));
    OK(hamr_release(a));
    OK(hamr_release(b));
    TRUE(has(c, "{2, 4}")); /* the view has the memory still */
    OK(hamr_release(c));
    OK(hamr_release(NULL));
}

static void dimensions(void) {
    hamr_buffer *a, *b;
    int64_t shape[6] = {1, 2, 3, 1, 2, 3}, one[6] = {6, 6, 1, 1, 1, 1};
    OK(hamr_create(&a, HAMR_UINT8, 6, shape, NULL, "\1"));
    OK(hamr_reshape(a, &b, 6, one, 1));
    OK(hamr_swap(a, b));
    TRUE(hamr_info_of(a)->shape[1] == 6 && hamr_info_of(b)->shape[5] == 3 && hamr_info_of(b)->strides[1] == 18);
    OK(hamr_release(a));
    OK(hamr_release(b));
    OK(hamr_create(&a, HAMR_COMPLEX128, 0, NULL, NULL, NULL));
    TRUE(hamr_size(a) == 1 && hamr_info_of(a)->bytes == 16);
    OK(hamr_release(a));
}

static void sharing(void) {
    hamr_buffer *a, *b;
    hamr_handle *handle, *other;
    hamr_place place = {HAMR_ALLOCATOR_MALLOC, HAMR_CURRENT_DEVICE, NULL, HAMR_ASYNC, 0};
    int64_t n = 4, back[1] = {-4};
    int32_t over = 0, *memory = (int32_t *)malloc(16);
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *old;
    hamr_found found;
    for (int32_t i = 0; i < 4; i++) memory[i] = i;
    OK(hamr_adopt(&a, memory + 3, HAMR_INT32, 1, &n, back, &place, HAMR_ADOPT_READ_ONLY, NULL, NULL));
    TRUE(has(a, "{3, 2, 1, 0}") && hamr_info_of(a)->flags & HAMR_INFO_READ_ONLY);
    OK(hamr_release(a));
    OK(hamr_adopt(&a, memory, HAMR_INT32, 1, &n, NULL, &place, 0, end, &ended));
    TRUE(hamr_data(a) == memory && usage_of(HAMR_ALLOCATOR_MALLOC).adopted == 1);
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_READ_WRITE, &handle));
    ((int32_t *)hamr_handle_data(handle))[0] = 9;
    FAILS(hamr_access(a, HAMR_HOST, -1, HAMR_READ, &other), HAMR_ERROR_IN_USE, "in use");
    OK(hamr_release_handle(handle));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_READ, &handle));
    OK(hamr_access(a, HAMR_HOST, -1, HAMR_PLAIN, &other));
    TRUE(hamr_handle_data(other) == memory && !(hamr_handle_info(other)->flags & HAMR_INFO_TEMPORARY));
    OK(hamr_abandon_handle(handle));
    OK(hamr_release_handle(other));
    OK(hamr_release_handle(NULL));
    OK(hamr_keep_temporaries(a, 1));
    OK(hamr_changed(a));
    OK(hamr_keep_temporaries(a, 0));
    OK(hamr_set_stream(a, NULL, HAMR_SYNC));
    OK(hamr_set_transfer(a, HAMR_SYNC_HOST));
    OK(hamr_synchronize(a));
    OK(hamr_wait(a, 10, &over));
    TRUE(over);
    OK(hamr_order_before(a, NULL));
    OK(hamr_order_after(a, NULL));
    OK(hamr_to_dlpack(a, NULL, &tensor));
    OK(hamr_to_old_dlpack(a, HAMR_NO_ORDER, &old));
    OK(hamr_release(a));
    OK(hamr_from_dlpack(tensor, NULL, &a));
    OK(hamr_from_old_dlpack(old, NULL, &b));
    TRUE(hamr_data(a) == memory && hamr_data(b) == memory && has(b, "{9, 1, 2, 3}") && !ended);
    OK(hamr_release(a));
    OK(hamr_release(b));
    TRUE(ended == 1);
    n = 0;
    OK(hamr_adopt(&a, malloc(1), HAMR_INT32, 1, &n, NULL, NULL, 0, end, &ended)); /* no elements, but an end */
    OK(hamr_release(a));
    TRUE(ended == 2);
    OK(hamr_create(&a, HAMR_INT32, 1, &n, NULL, NULL));
    TRUE(has(a, "{}") && hamr_size(a) == 0);
    OK(hamr_release(a));
    n = 4;
    /* malloc's allocator frees it. */
    OK(hamr_adopt(&a, malloc(16), HAMR_INT32, 1, &n, NULL, &place, HAMR_ADOPT_TAKE, NULL, NULL));
    OK(hamr_locate(hamr_data(a), &found));
    TRUE(found.allocator == HAMR_UNKNOWN_ALLOCATOR);
    OK(hamr_release(a));
}

/* Of memory in use, and of what is kept. Small memory that was freed is none in use. */
static void limits(void) {
    hamr_buffer *kept = NULL, *more = NULL;
    int64_t n = 3000, most = 64 << 20;
    OK(hamr_create(&more, HAMR_INT8, 1, &n, NULL, NULL));
    OK(hamr_release(more));
    OK(hamr_limit_in_use(NULL, "host", -1, 5000 + usage_of(HAMR_ALLOCATOR_MALLOC).current));
    OK(hamr_create(&kept, HAMR_INT8, 1, &n, NULL, NULL));
    FAILS(hamr_create(&more, HAMR_INT8, 1, &n, NULL, NULL), HAMR_ERROR_MEMORY, "for hamr on the host");
    OK(hamr_release(kept));
    OK(hamr_create(&more, HAMR_INT8, 1, &n, NULL, NULL));
    OK(hamr_release(more));
    OK(hamr_limit_in_use("hamr", "host", -1, -1));
    OK(hamr_limit_in_use("hamr", NULL, 0, 0));
    FAILS(hamr_create(&more, HAMR_INT8, 1, &most, NULL, NULL), HAMR_ERROR_MEMORY, "for hamr in all");
    OK(hamr_limit_in_use("hamr", NULL, 0, -1));
    OK(hamr_limit_kept(0));
    OK(hamr_create(&kept, HAMR_INT8, 1, &most, NULL, NULL));
    OK(hamr_release(kept));
    OK(hamr_limit_kept(-2));
}

static void machine(void) {
    int32_t n = -1, allocator = -1, available = -1;
    char *reason = NULL;
    OK(hamr_open());
    TRUE(strcmp(hamr_last_error(), "") == 0 && strlen(hamr_library_version()) > 0);
    OK(hamr_has_backend("host", &available, &reason));
    TRUE(available == 1 && !reason);
    OK(hamr_device_count("host", &n));
    TRUE(n == 0);
    OK(hamr_preferred_allocator(1, &allocator));
    TRUE(hamr_allocator_name(allocator) && !hamr_allocator_name(-5));
    TRUE(strcmp(hamr_element_name(HAMR_FLOAT32), "float32") == 0 && hamr_element_size(HAMR_FLOAT32) == 4 &&
         !hamr_element_size(99));
    OK(hamr_configure("HAMR_TEST_OF_C", "1"));
    OK(hamr_set_verbose(0));
    OK(hamr_trim());
    limits();
    hamr_reset_peaks();
    OK(hamr_has_backend("cuda", &available, &reason));
    if (!available) TRUE(reason && *reason);
    hamr_free_text(reason);
}

int main(void) {
    machine();
    contents();
    dimensions();
    sharing();
    hamr_usage left = usage_of(HAMR_ALLOCATOR_MALLOC);
    TRUE(left.live == 0 && left.current == 0 && left.adopted == 0 && left.made > 0);
    puts("all of it");
    return 0;
}
