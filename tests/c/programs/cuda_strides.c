/* hamr_access to device memory with steps: elements that lie one after the other, for the host and for the device,
 * which are the buffer's again at the release; or the elements in place, for code that reads the strides. */
#include "driver.h"

#define ROWS 3
#define COLUMNS 4

static double grid[ROWS][COLUMNS]; /* what the device's memory should have */

static hamr_buffer *on_device(int32_t allocator, hamr_stream *stream) {
    hamr_place place = {allocator, 0, stream ? hamr_native_stream(stream) : NULL, HAMR_ASYNC, 0};
    const int64_t shape[2] = {ROWS, COLUMNS};
    hamr_buffer *made;
    for (int i = 0; i < ROWS * COLUMNS; i++) (&grid[0][0])[i] = i;
    OK(hamr_create(&made, HAMR_FLOAT64, 2, shape, &place, NULL));
    OK(hamr_set_values(made, 0, HAMR_FLOAT64, grid, ROWS * COLUMNS));
    return made;
}

/* Every second column, backwards: 3 1, 7 5, 11 9. */
static hamr_buffer *columns(const hamr_buffer *whole) {
    const int64_t shape[2] = {ROWS, 2}, strides[2] = {COLUMNS * sizeof(double), -2 * (int64_t)sizeof(double)};
    hamr_buffer *made;
    OK(hamr_view(whole, &made, 3 * sizeof(double), 0, 2, shape, strides));
    return made;
}

static void has_the_grid(const hamr_buffer *whole) {
    double found[ROWS][COLUMNS];
    OK(hamr_get_values(whole, 0, HAMR_FLOAT64, found, ROWS * COLUMNS));
    OK(hamr_synchronize(whole));
    TRUE(memcmp(found, grid, sizeof grid) == 0);
}

static void is_in_order(const hamr_handle *handle) {
    const hamr_info *info = hamr_handle_info(handle);
    TRUE(info->flags & HAMR_INFO_TEMPORARY && info->ndim == 2 && info->shape[0] == ROWS && info->shape[1] == 2);
    TRUE(info->strides[0] == 2 * sizeof(double) && info->strides[1] == sizeof(double));
}

/* The elements that a handle reaches, as a buffer of the program's. */
static hamr_buffer *lent(const hamr_handle *handle) {
    const hamr_info *info = hamr_handle_info(handle);
    hamr_place place = {info->allocator, info->device, info->stream, HAMR_ASYNC, 0};
    hamr_buffer *made;
    OK(hamr_adopt(&made, hamr_handle_data(handle), info->element, info->ndim, info->shape, info->strides, &place, 0,
                  NULL, NULL));
    return made;
}

static void reads(hamr_buffer *view) {
    const int32_t modes[] = {HAMR_READ, HAMR_READ_WRITE, HAMR_PLAIN}, spaces[] = {HAMR_HOST, HAMR_CUDA};
    for (int i = 0; i < 6; i++) {
        const int32_t space = spaces[i % 2], device = space == HAMR_HOST ? HAMR_CURRENT_DEVICE : 0;
        double found[6];
        hamr_handle *handle;
        OK(hamr_access(view, space, device, modes[i / 2], &handle));
        is_in_order(handle);
        hamr_buffer *elements = lent(handle);
        OK(hamr_get_values(elements, 0, HAMR_FLOAT64, found, 6));
        OK(hamr_synchronize(elements));
        for (int j = 0; j < 6; j++) TRUE(found[j] == grid[j / 2][3 - j % 2 * 2]);
        OK(hamr_release(elements));
        OK(hamr_abandon_handle(handle));
    }
}

static void writes(hamr_buffer *whole, hamr_buffer *view) {
    const int32_t modes[] = {HAMR_WRITE, HAMR_READ_WRITE}, spaces[] = {HAMR_HOST, HAMR_CUDA};
    for (int i = 0; i < 4; i++) {
        const int32_t space = spaces[i % 2], device = space == HAMR_HOST ? HAMR_CURRENT_DEVICE : 0;
        double values[6];
        hamr_handle *handle;
        for (int kept = 0; kept < 2; kept++) { /* what is abandoned is not written */
            OK(hamr_access(view, space, device, modes[i / 2], &handle));
            is_in_order(handle);
            for (int j = 0; j < 6; j++) values[j] = 100 * (i + 1) + 10 * kept + j;
            hamr_buffer *elements = lent(handle);
            OK(hamr_set_values(elements, 0, HAMR_FLOAT64, values, 6));
            OK(hamr_synchronize(elements));
            OK(hamr_release(elements));
            if (kept) OK(hamr_release_handle(handle));
            else OK(hamr_abandon_handle(handle));
            for (int j = 0; kept && j < 6; j++) grid[j / 2][3 - j % 2 * 2] = values[j];
            has_the_grid(whole);
        }
    }
}

static void strided(hamr_buffer *whole, hamr_buffer *view) {
    const int32_t modes[] = {HAMR_READ, HAMR_WRITE, HAMR_READ_WRITE, HAMR_PLAIN};
    hamr_handle *handle;
    for (int i = 0; i < 4; i++) {
        OK(hamr_access(view, HAMR_CUDA, 0, modes[i] | HAMR_STRIDED, &handle));
        const hamr_info *info = hamr_handle_info(handle);
        TRUE(!(info->flags & HAMR_INFO_TEMPORARY) && info->strides[0] == COLUMNS * sizeof(double) &&
             info->strides[1] == -2 * (int64_t)sizeof(double));
        TRUE(hamr_handle_data(handle) == hamr_data(view) &&
             hamr_data(view) == (char *)hamr_data(whole) + 3 * sizeof(double));
        if (i % 2) {
            hamr_buffer *elements = lent(handle);
            const double value = 1000 + i;
            OK(hamr_fill(elements, HAMR_FLOAT64, &value));
            OK(hamr_synchronize(elements));
            OK(hamr_release(elements));
            for (int j = 0; j < 6; j++) grid[j / 2][3 - j % 2 * 2] = value;
        }
        OK(hamr_release_handle(handle));
        has_the_grid(whole);
    }
}

/* Others are kept out meanwhile, also where the handle has a temporary. */
static void keeps_out(hamr_buffer *whole, hamr_buffer *view) {
    hamr_handle *handle, *other;
    OK(hamr_access(view, HAMR_CUDA, 0, HAMR_READ_WRITE, &handle));
    FAILS(hamr_access(whole, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &other), HAMR_ERROR_IN_USE, "");
    OK(hamr_abandon_handle(handle));
    OK(hamr_access(whole, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_READ, &other));
    OK(hamr_release_handle(other));
}

int main(int count, char **arguments) {
    const int32_t allocators[] = {HAMR_ALLOCATOR_CUDA, HAMR_ALLOCATOR_CUDA_ASYNC, HAMR_ALLOCATOR_CUDA_VMM};
    hamr_stream *stream;
    OK(hamr_create_stream("cuda", 0, &stream));
    for (int i = 0; i < 6; i++) {
        hamr_buffer *whole = on_device(allocators[i / 2], i % 2 ? stream : NULL), *view = columns(whole);
        reads(view);
        writes(whole, view);
        strided(whole, view);
        keeps_out(whole, view);
        OK(hamr_release(view));
        OK(hamr_release(whole));
        TRUE(usage_of(allocators[i / 2]).live == 0);
    }
    OK(hamr_release_stream(stream));
    if (count > 1) look_at_the_driver(arguments[1]);
    puts("all in order on devices");
    return 0;
}
