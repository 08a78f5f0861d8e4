/* Strides of tensors, as they are given out and taken. */
#include "check.h"
#include "plain/dlpack.h"

static int has(const hamr_buffer *buffer, const char *wanted) {
    char *text;
    OK(hamr_text(buffer, 0, &text));
    int same = strcmp(text, wanted) == 0;
    hamr_free_text(text);
    return same;
}

/* CuPy 14 divides negative ones, in bytes, as unsigned numbers. */
static void strides_that_lost_their_sign(void) {
    int32_t memory[4] = {0, 1, 2, 3};
    int64_t n = 4, back = -4;
    hamr_buffer *a;
    struct DLManagedTensorVersioned *tensor;
    OK(hamr_adopt(&a, memory + 3, HAMR_INT32, 1, &n, &back, NULL, 0, NULL, NULL));
    OK(hamr_to_dlpack(a, NULL, &tensor));
    OK(hamr_release(a));
    TRUE(tensor->dl_tensor.strides[0] == -1);
    tensor->dl_tensor.strides[0] = (int64_t)((UINT64_MAX - 3) / 4);
    OK(hamr_from_dlpack(tensor, NULL, &a));
    TRUE(hamr_info_of(a)->strides[0] == -4 && has(a, "{3, 2, 1, 0}"));
    OK(hamr_release(a));
}

/* One of a dimension of a single element is the array's, where DLPack can say it. */
static void strides_that_mean_nothing(void) {
    int16_t memory[6] = {0};
    const int64_t shape[4] = {1, 3, 1, 1}, strides[4] = {8, 4, -6, 3};
    hamr_buffer *a;
    struct DLManagedTensorVersioned *tensor;
    OK(hamr_adopt(&a, memory, HAMR_INT16, 4, shape, strides, NULL, 0, NULL, NULL));
    OK(hamr_to_dlpack(a, NULL, &tensor));
    OK(hamr_release(a));
    const int64_t *told = tensor->dl_tensor.strides;
    TRUE(told[0] == 4 && told[1] == 2 && told[2] == 1 && told[3] == 1);
    tensor->deleter(tensor);
}

int main(void) {
    strides_that_lost_their_sign();
    strides_that_mean_nothing();
    puts("all strides");
    return 0;
}
