/* Where the Go core writes the description of a result. */
#ifndef HAMR_ARRAY_RESULT_H
#define HAMR_ARRAY_RESULT_H

#include "array/array.h"
#include "base/python.h"
#include "hamr/functions.h"
#include "memory/block.h"

typedef struct {
    hamr_array array;
    uint64_t before; /* a token that is not the result's to release */
    uint64_t generation;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Result;

void result_start(Result *result, const Array *source); /* source NULL: the memory will be new */
int result_block(Result *result, Array *from, Block **spare, Block **block); /* spare, if it is given, for new memory */
Array *result_array(Result *result, PyTypeObject *type, Array *source); /* a new array that result describes; NULL: an error */
void result_end(Result *result); /* gives back memory that nobody took */

#endif
