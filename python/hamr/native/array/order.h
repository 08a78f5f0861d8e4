/* Work of other libraries and of hamr's on the same memory. */
#ifndef HAMR_ARRAY_ORDER_H
#define HAMR_ARRAY_ORDER_H

#include "array/array.h"

int order_covering(Array *self, uint64_t *stream); /* sets a stream that covers all work pending on the elements, or 0 */
int order_before(Array *self, uint64_t stream); /* makes later work on a stream of CUDA's wait for what is pending */

#endif
