/* Work of hamr's and of other libraries on the same memory, in an order. */
#include "native.h"

/* Whether any work may be pending on the elements that a stream of others must wait for. */
static int may_be_busy(const Array *self) {
    const Block *block = self->block;
    return block && (self->array.stream || block_foreign_work(block) || marks_at(block->marks));
}

int order_covering(Array *self, uint64_t *stream) {
    *stream = 0;
    if (!may_be_busy(self)) return 0;
    Array *source = array_pin(self);
    if (!source) return -1;
    /* Making the snapshot may run finalisers, after which there may be no memory, nor a core. */
    const hamr_functions *functions = source->block ? core_functions() : NULL;
    char *message = functions ? functions->covering(&source->array, stream) : NULL;
    Py_DECREF(source);
    return message ? core_raise(message) : 0;
}

int order_before(Array *self, uint64_t stream) {
    if (!may_be_busy(self)) return 0;
    Array *source = array_pin(self);
    if (!source) return -1;
    const hamr_functions *functions = source->block ? core_functions() : NULL;
    char *message = functions ? functions->order_before(&source->array, stream) : NULL;
    Py_DECREF(source);
    return message ? core_raise(message) : 0;
}
