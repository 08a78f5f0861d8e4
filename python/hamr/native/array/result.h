/* Where the Go core writes the description of a result. */
#ifndef HAMR_ARRAY_RESULT_H
#define HAMR_ARRAY_RESULT_H

#include "array/array.h"
#include "base/python.h"
#include "hamr_abi.h"
#include "memory/block.h"

typedef struct {
    PyObject_HEAD
    hamr_array array;
    uint64_t before; /* a token that is not the Result's to release */
    uint64_t generation;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Result;

int result_setup(PyObject *module);
Result *result_new(void);
int result_block(Result *result, Array *from, Block **spare, Block **block); /* spare, if it is given, for new memory */
extern PyMethodDef result_functions[];

#endif
