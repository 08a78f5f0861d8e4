#include "array/result.h"

#include "array/array.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"
#include "plain/layout.h"

void result_start(Result *result, const Array *source) {
    draft_start(&result->draft);
    result->before = source ? source->array.memory : 0;
    result->generation = core_generation;
}

void result_end(Result *result) {
    int ours = result->generation == core_generation && result->draft.array.memory != result->before;
    if (result->draft.array.memory && ours) block_give_back(&result->draft.array);
    result->draft.array.memory = 0;
}

/* The Block of what the result describes: a new one, or that of `from` if the memory is the same. -1: an error. */
int result_block(Result *result, Array *from, Block **spare, Block **block) {
    *block = NULL;
    uint64_t token = result->draft.array.memory;
    if (!token) return 0;
    if (from && from->block && token == result->before) {
        *block = (Block *)Py_NewRef((PyObject *)from->block);
        (*block)->memory.size = result->draft.array.size; /* it may have grown */
    } else if (token == result->before) {
        return RAISE(PyExc_RuntimeError, "a result names memory that its source does not have");
    } else {
        result->draft.array.memory = 0;
        result->before = 0;
        hamr_array array = result->draft.array;
        array.memory = token;
        if (spare) {
            *block = *spare;
            *spare = NULL;
            block_fill(*block, &array, NULL, result->generation);
            return 0;
        }
        if (!(*block = block_new(&array, NULL))) return -1;
        (*block)->memory.generation = result->generation; /* a fork may lie between */
    }
    return 0;
}

Array *result_array(Result *result, PyTypeObject *type, Array *source) {
    Block *block;
    if (result_block(result, source, NULL, &block) < 0) return NULL;
    return array_make(type, &result->draft.array, block, source);
}
