/* Work of other libraries and of hamr's on the same memory. */
#pragma once

#include "array/array.h"

/* Sets the stream that covers all pending work on the elements, or 0. */
int order_covering(Array *self, uint64_t *stream);
int order_before(Array *self, uint64_t stream); /* makes later work on a stream of CUDA's wait for what is pending */
