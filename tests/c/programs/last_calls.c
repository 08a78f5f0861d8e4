/* hamr_last_error and hamr_last_failure are of the thread's last call; what gives something back leaves them. */
#include "check.h"

static hamr_buffer *made(int64_t n) {
    hamr_buffer *buffer;
    const float one = 1;
    OK(hamr_create(&buffer, HAMR_FLOAT32, 1, &n, NULL, &one));
    return buffer;
}

static void nothing_is_said(void) {
    hamr_failure failure;
    TRUE(hamr_last_error()[0] == '\0');
    hamr_last_failure(&failure);
    TRUE(failure.status == HAMR_OK && failure.message[0] == '\0');
}

static void fail(void) {
    hamr_buffer *none;
    const int64_t n = -1;
    TRUE(hamr_create(&none, HAMR_FLOAT32, 1, &n, NULL, NULL) == HAMR_ERROR_VALUE);
    TRUE((strstr)(hamr_last_error(), "-1") != NULL);
}

static void read_only(void) {
    hamr_buffer *buffer = made(4), *fixed, *view;
    hamr_handle *handle;
    const float two = 2;
    OK(hamr_read_only(buffer, &fixed));
    TRUE(hamr_data(fixed) == hamr_data(buffer));
    TRUE(hamr_info_of(fixed)->flags & HAMR_INFO_READ_ONLY);
    TRUE(!(hamr_info_of(buffer)->flags & HAMR_INFO_READ_ONLY));
    FAILS(hamr_fill(fixed, HAMR_FLOAT32, &two), HAMR_ERROR_VALUE, "read-only");
    FAILS(hamr_access(fixed, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_WRITE, &handle), HAMR_ERROR_VALUE, "read-only");
    OK(hamr_view(fixed, &view, 4, 0, 0, NULL, NULL));
    TRUE(hamr_info_of(view)->flags & HAMR_INFO_READ_ONLY);
    OK(hamr_fill(buffer, HAMR_FLOAT32, &two));
    OK(hamr_release(buffer));
    TRUE(*(float *)hamr_data(view) == 2 && ((float *)hamr_data(fixed))[3] == 2);
    OK(hamr_release(view));
    OK(hamr_release(fixed));
    FAILS(hamr_read_only(NULL, &fixed), HAMR_ERROR_VALUE, "buffer is NULL");
}

/* The elements are another buffer's, and so is what is known of their memory. */
static void taken(void) {
    const int64_t shape[6] = {1, 2, 1, 1, 1, 2}, two = 2;
    const double one = 1;
    hamr_buffer *buffer, *made, *more;
    OK(hamr_create(&buffer, HAMR_FLOAT64, 6, shape, NULL, &one));
    const hamr_info *info = hamr_info_of(buffer);
    void *memory = info->address;
    TRUE(info->flags & HAMR_INFO_ADDRESS && memory && memory == hamr_data(buffer));
    OK(hamr_take(buffer, &made));
    TRUE(hamr_info_of(buffer) == info && info->size == 0 && info->ndim == 1 && !info->address && !hamr_data(buffer) &&
         !info->capacity);
    TRUE(hamr_info_of(made)->ndim == 6 && hamr_info_of(made)->shape[5] == 2 && hamr_info_of(made)->size == 4 &&
         hamr_info_of(made)->address == memory);
    OK(hamr_take(buffer, &more)); /* of nothing */
    TRUE(hamr_info_of(more)->size == 0);
    OK(hamr_resize(buffer, 1, &two, &one));
    TRUE(hamr_info_of(buffer) == info && info->size == 2 && info->address == hamr_data(buffer) &&
         ((double *)info->address)[1] == 1);
    FAILS(hamr_take(NULL, &more), HAMR_ERROR_VALUE, "buffer is NULL");
    FAILS(hamr_take(buffer, NULL), HAMR_ERROR_VALUE, "made is NULL");
    OK(hamr_release(made));
    OK(hamr_release(more));
    OK(hamr_release(buffer));
    FAILS(hamr_take(buffer, &more), HAMR_ERROR_RELEASED, "released");
    TRUE(usage_of(HAMR_ALLOCATOR_MALLOC).live == 0);
}

int main(void) {
    hamr_buffer *buffer = made(4), *other = made(2);
    hamr_handle *handle;
    float values[4];
    nothing_is_said();
    fail();
    OK(hamr_get_values(buffer, 0, HAMR_FLOAT32, values, 4));
    nothing_is_said();
    fail();
    OK(hamr_append(buffer, other));
    nothing_is_said();
    fail();
    OK(hamr_trim());
    nothing_is_said();
    fail();
    OK(hamr_set_verbose(0));
    nothing_is_said();
    OK(hamr_access(buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &handle));
    fail();
    OK(hamr_release_handle(handle));
    OK(hamr_release(other));
    OK(hamr_release(NULL));
    TRUE((strstr)(hamr_last_error(), "-1") != NULL);
    TRUE(hamr_info_of(buffer)->size == 6);
    TRUE((strstr)(hamr_last_error(), "-1") != NULL);
    TRUE(hamr_release(other) == HAMR_ERROR_RELEASED);
    TRUE((strstr)(hamr_last_error(), "released") != NULL);
    OK(hamr_release(buffer));
    read_only();
    taken();
    printf("all of the last call\n");
    return 0;
}
