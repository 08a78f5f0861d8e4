/* hamr_access gives elements that lie one after the other, unless it is told that the program reads strides. */
#include "check.h"

static double grid[3][4];

static void refill(void) {
    for (int i = 0; i < 12; i++) (&grid[0][0])[i] = i;
}

static double sum_of(const hamr_handle *handle) {
    const double *values = hamr_handle_data(handle);
    double sum = 0;
    for (int64_t i = 0; i < hamr_handle_info(handle)->size; i++) sum += values[i];
    return sum;
}

/* A view of every second column, backwards: 3 1, 7 5, 11 9. */
static hamr_buffer *columns(const hamr_buffer *whole) {
    hamr_buffer *made;
    const int64_t shape[2] = {3, 2}, strides[2] = {32, -16};
    OK(hamr_view(whole, &made, 24, 0, 2, shape, strides));
    return made;
}

static void reads(hamr_buffer *view) {
    hamr_handle *handle;
    const int32_t modes[] = {HAMR_READ, HAMR_READ_WRITE, HAMR_PLAIN};
    for (int i = 0; i < 3; i++) {
        OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, modes[i], &handle));
        const hamr_info *info = hamr_handle_info(handle);
        TRUE(info->flags & HAMR_INFO_TEMPORARY);
        TRUE(info->ndim == 2 && info->shape[0] == 3 && info->shape[1] == 2);
        TRUE(info->strides[0] == 16 && info->strides[1] == 8);
        TRUE(sum_of(handle) == 36);
        OK(hamr_abandon_handle(handle));
    }
}

static void writes(hamr_buffer *view) {
    hamr_handle *handle;
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ_WRITE, &handle));
    double *values = hamr_handle_data(handle);
    for (int i = 0; i < 6; i++) values[i] += 100;
    OK(hamr_release_handle(handle));
    TRUE(grid[0][3] == 103 && grid[0][1] == 101 && grid[2][1] == 109 && grid[0][2] == 2);
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_WRITE, &handle));
    values = hamr_handle_data(handle);
    for (int i = 0; i < 6; i++) values[i] = i;
    OK(hamr_release_handle(handle));
    TRUE(grid[0][3] == 0 && grid[0][1] == 1 && grid[2][3] == 4 && grid[2][1] == 5 && grid[0][2] == 2);
    /* What is abandoned is not written. */
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ_WRITE, &handle));
    ((double *)hamr_handle_data(handle))[0] = 7;
    OK(hamr_abandon_handle(handle));
    TRUE(grid[0][3] == 0);
    /* Of plain accesses nobody sees what is written. */
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_PLAIN, &handle));
    ((double *)hamr_handle_data(handle))[0] = 7;
    OK(hamr_release_handle(handle));
    TRUE(grid[0][3] == 0);
}

static void strided(hamr_buffer *view) {
    hamr_handle *handle;
    const int32_t modes[] = {HAMR_READ, HAMR_READ_WRITE, HAMR_WRITE, HAMR_PLAIN};
    for (int i = 0; i < 4; i++) {
        OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, modes[i] | HAMR_STRIDED, &handle));
        const hamr_info *info = hamr_handle_info(handle);
        TRUE(!(info->flags & HAMR_INFO_TEMPORARY));
        TRUE(info->strides[0] == 32 && info->strides[1] == -16);
        TRUE(hamr_handle_data(handle) == &grid[0][3]);
        OK(hamr_release_handle(handle));
    }
}

/* Others are kept out meanwhile, as with elements in place. */
static void keeps_out(hamr_buffer *view, hamr_buffer *whole) {
    hamr_handle *handle, *other;
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ_WRITE, &handle));
    FAILS(hamr_access(whole, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &other), HAMR_ERROR_IN_USE, "");
    OK(hamr_release_handle(handle));
}

/* What lies in order stays in place. */
static void in_order(hamr_buffer *whole) {
    hamr_handle *handle;
    hamr_buffer *row, *none, *single;
    const int64_t two[2] = {2, 4}, strides[2] = {32, 8}, empty[2] = {0, 2}, odd[2] = {7, 3};
    const int64_t one[2] = {1, 4}, far[2] = {800, 8};
    OK(hamr_view(whole, &row, 32, 0, 2, two, strides));
    OK(hamr_view(whole, &none, 0, 0, 2, empty, odd));
    OK(hamr_view(whole, &single, 32, 0, 2, one, far));
    const hamr_buffer *buffers[] = {whole, row, none, single};
    for (int i = 0; i < 4; i++) {
        OK(hamr_access((hamr_buffer *)(uintptr_t)buffers[i], HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &handle));
        TRUE(!(hamr_handle_info(handle)->flags & HAMR_INFO_TEMPORARY));
        TRUE(hamr_handle_data(handle) == hamr_data(buffers[i]));
        OK(hamr_release_handle(handle));
    }
    OK(hamr_release(row));
    OK(hamr_release(none));
    OK(hamr_release(single));
}

static void read_only(void) {
    hamr_buffer *buffer;
    hamr_handle *handle;
    const int64_t n = 4, stride = 24;
    OK(hamr_adopt(&buffer, grid, HAMR_FLOAT64, 1, &n, &stride, NULL, HAMR_ADOPT_READ_ONLY, NULL, NULL));
    OK(hamr_access(buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &handle));
    TRUE(sum_of(handle) == 0 + 3 + 6 + 9);
    OK(hamr_release_handle(handle));
    FAILS(hamr_access(buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ_WRITE, &handle), HAMR_ERROR_VALUE, "read-only");
    OK(hamr_release(buffer));
}

static void repeated(hamr_buffer *whole) {
    hamr_buffer *twice;
    hamr_handle *handle;
    const int64_t shape[2] = {2, 4}, strides[2] = {0, 8};
    OK(hamr_view(whole, &twice, 0, 0, 2, shape, strides));
    OK(hamr_access(twice, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &handle));
    TRUE(sum_of(handle) == 2 * (0 + 1 + 2 + 3));
    OK(hamr_release_handle(handle));
    FAILS(hamr_access(twice, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ_WRITE, &handle), HAMR_ERROR_VALUE,
          "lie on each other");
    OK(hamr_release(twice));
}

static void kept(hamr_buffer *view) {
    hamr_handle *one, *two;
    OK(hamr_keep_temporaries(view, 1));
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_PLAIN, &one));
    OK(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_PLAIN, &two));
    TRUE(hamr_handle_data(one) == hamr_handle_data(two));
    TRUE(sum_of(one) == 36);
    OK(hamr_release_handle(one));
    OK(hamr_release_handle(two));
    OK(hamr_keep_temporaries(view, 0));
}

int main(void) {
    hamr_buffer *whole;
    hamr_handle *handle;
    const int64_t shape[2] = {3, 4};
    OK(hamr_adopt(&whole, grid, HAMR_FLOAT64, 2, shape, NULL, NULL, 0, NULL, NULL));
    hamr_buffer *view = columns(whole);
    refill();
    reads(view);
    kept(view);
    strided(view);
    keeps_out(view, whole);
    writes(view);
    refill();
    in_order(whole);
    read_only();
    repeated(whole);
    FAILS(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, 4, &handle), HAMR_ERROR_VALUE, "HAMR_STRIDED");
    FAILS(hamr_access(view, HAMR_HOST, HAMR_CURRENT_DEVICE, -1, &handle), HAMR_ERROR_VALUE, "mode is -1");
    OK(hamr_release(view));
    OK(hamr_release(whole));
    TRUE(usage_of(HAMR_ALLOCATOR_MALLOC).live == 0);
    printf("all in order\n");
    return 0;
}
