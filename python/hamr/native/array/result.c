#include "array/result.h"

#include <stddef.h>
#include <string.h>

#include "array/array.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"

void result_start(Result *result, const Array *source) {
    memset(result, 0, offsetof(Result, dimensions));
    result->array.shape = result->dimensions;
    result->array.strides = result->dimensions + HAMR_MAX_DIMENSIONS;
    result->before = source ? source->array.memory : 0;
    result->generation = core_generation;
}

void result_end(Result *result) {
    int ours = result->generation == core_generation && result->array.memory != result->before;
    if (result->array.memory && ours) block_give_back(&result->array);
    result->array.memory = 0;
}

/* The Block of what the result describes: a new one, or that of `from` if the
 * memory is the same. -1: an error. */
int result_block(Result *result, Array *from, Block **spare, Block **block) {
    *block = NULL;
    uint64_t token = result->array.memory;
    if (!token) return 0;
    if (from && from->block && token == result->before) {
        *block = (Block *)Py_NewRef((PyObject *)from->block);
        (*block)->size = result->array.size; /* it may have grown */
    } else if (token == result->before) {
        PyErr_SetString(PyExc_RuntimeError, "a result names memory that its source does not have");
        return -1;
    } else {
        result->array.memory = 0;
        result->before = 0;
        hamr_array array = result->array;
        array.memory = token;
        if (spare) {
            *block = *spare;
            *spare = NULL;
            block_fill(*block, &array, NULL, result->generation);
            return 0;
        }
        if (!(*block = block_new(&array, NULL))) return -1;
        (*block)->generation = result->generation; /* a fork may lie between */
    }
    return 0;
}

Array *result_array(Result *result, PyTypeObject *type, Array *source) {
    Block *block;
    Array *self = array_new(type);
    if (!self || result_block(result, source, NULL, &block) < 0) {
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    array_follow(self, source);
    if (array_store(self, &result->array, block) < 0) Py_CLEAR(self);
    return self;
}
