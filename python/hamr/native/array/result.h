/* Where the Go core writes the description of a result. */
#pragma once

#include "array/array.h"
#include "base/python.h"
#include "hamr/functions.h"
#include "memory/block.h"
#include "plain/layout.h"

typedef struct {
    uint64_t before; /* a token that is not the result's to release */
    uint64_t generation;
    Draft draft;
} Result;

void result_start(Result *result, const Array *source); /* source NULL: the memory will be new */
int result_block(Result *result, Array *from, Block **spare, Block **block); /* spare, if it is given, for new memory */
/* Makes the array that result describes. NULL: an error. */
Array *result_array(Result *result, PyTypeObject *type, Array *source);
void result_end(Result *result); /* gives back memory that nobody took */
