/* What a buffer or a handle has of its memory. */
#pragma once

#include "object.h"
#include "plain/layout.h"

hamr_status draft_shape(Draft *draft, int32_t element, int32_t ndim, const int64_t *shape);
hamr_status draft_place(Draft *draft, const hamr_place *place);
/* The per-thread default stream is that of the calling thread, whoever uses the memory later. */
hamr_status resolve_stream(int32_t allocator, int32_t device, uint64_t *stream);
hamr_status draft_c_strides(Draft *draft);

/* Makes held what array describes, with share, which it takes over. The dimensions may have to be
 * copied to new memory; on an error held is as it was, and share the caller's. */
hamr_status held_become(Held *held, const hamr_array *array, Share *share);
void held_describe(Held *held); /* after a change: info says what array and share are */
void held_set_order(Held *held, uint64_t stream, int32_t transfer); /* of info, too, whose size others may read */
void held_end(Held *held);      /* its part in the memory, and its own */

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

/* Elements in C order in host memory, for the length of one call. */
hamr_status draft_values(Draft *draft, int32_t element, const void *values, int64_t size);
/* One, without dimensions; NULL for a value of NULL. */
hamr_array *draft_value(Draft *draft, int32_t element, const void *value);

/* What the core is told of a buffer, which is one, at array. */
#define USE(buffer, array)           \
    CHECK(buffer, BUFFER, "buffer"); \
    CAPI_LOAD();                     \
    hamr_array array;                \
    GIVE(&(buffer)->held, &array)
