/* What a buffer or a handle has of its memory. */
#ifndef HAMR_CAPI_HELD_H
#define HAMR_CAPI_HELD_H

#include "object.h"

/* A description that the core may fill. */
typedef struct {
    hamr_array array;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Draft;

void draft_start(Draft *draft);
hamr_status draft_shape(Draft *draft, int32_t element, int32_t ndim, const int64_t *shape);
hamr_status draft_place(Draft *draft, const hamr_place *place);
/* The per-thread default stream is that of the calling thread, whoever uses the memory later. */
hamr_status resolve_stream(int32_t allocator, int32_t device, uint64_t *stream);
hamr_status draft_c_strides(Draft *draft);

int64_t element_size(int32_t element); /* 0: none such */
int64_t count_of(const hamr_array *array);
int is_in_order(const hamr_array *array); /* the elements lie one after the other, in C order */

/* Makes held what array describes, with share, which it takes over. The dimensions may have to be
 * copied to new memory; on an error held is as it was, and share the caller's. */
hamr_status held_become(Held *held, const hamr_array *array, Share *share);
void held_end(Held *held); /* its part in the memory, and its own */

/* For the core, which then knows the memory, to be read during one call: from then on the memory is no longer as it
 * was made. */
hamr_status held_give(const Held *held, hamr_array *array);

#define GIVE(held, array)                              \
    do {                                               \
        hamr_status given_ = held_give(held, array);   \
        if (given_) return given_;                     \
    } while (0)

/* The same for who does not ask the core. */
hamr_array held_seen(const Held *held);

uint64_t memory_of(const Held *held); /* the core's token, as the core was given it last; or 0 */

/* An array of elements in C order in host memory, for the length of one call; dimensions has two. */
hamr_array values_array(int32_t element, const void *values, int64_t size, int64_t *dimensions);
hamr_status check_values(int32_t element, const void *values, int64_t size);
hamr_array single_value(int32_t element, const void *value); /* without dimensions */

#endif
