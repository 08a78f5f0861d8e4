/* Work of hamr's and of other libraries on the same memory, in an order. */
#include "native.h"

enum { LEGACY_STREAM = 1, CAPTURE_IMPLICIT = 906 };

/* Whether the default stream of a device is known to have nothing to do; the core is
 * asked where the driver cannot be from this thread. While a stream is captured that
 * the default one would wait for, nothing can be ordered with it, and to ask would end
 * the capture. */
static int default_stream_idle(int32_t device) {
    const hamr_functions *functions = core_functions();
    const hamr_devices *devices = functions ? functions->devices : NULL;
    void *context = NULL;
    int status, capturing;
    if (!devices || device < 0 || device >= devices->cuda_count || !devices->cuda_query || !devices->cuda_contexts) return 0;
    if (devices->cuda_context(&context) != 0 || !context || context != devices->cuda_contexts[device]) return 0;
    capturing = devices->cuda_capturing ? devices->cuda_capturing(LEGACY_STREAM, &status) : 0;
    if (capturing == CAPTURE_IMPLICIT) return 1;
    return capturing == 0 && devices->cuda_query(LEGACY_STREAM) == 0;
}

/* Whether any work may be pending on the elements that a stream of others must wait for. */
static int may_be_busy(const Array *self) {
    const hamr_array *array = &self->array;
    const Block *block = self->block;
    if (!block) return 0;
    if (array->stream || block_foreign_work(block) || marks_at(block->marks)) return 1;
    return is_of_device(array->allocator) && array->device >= 0 && !default_stream_idle(array->device);
}

/* Whether a stream that an interface names may be taken for one of another device than
 * the memory's: managed memory is used on any, and 1 is the default stream of the one
 * that is current for the consumer. */
static int stream_is_anothers(const Array *self) {
    const hamr_functions *functions = core_functions();
    int current = 0;
    if (memory_kind(self->array.allocator) != HAMR_MANAGED || !functions || functions->devices->cuda_count < 2) return 0;
    return functions->devices->cuda_current(&current) != 0 || current != self->array.device;
}

int order_covering(Array *self, uint64_t *stream) {
    *stream = 0;
    if (!may_be_busy(self)) return 0;
    if (stream_is_anothers(self)) {
        Array *settled = array_settled(self);
        Py_XDECREF((PyObject *)settled);
        return settled ? 0 : -1;
    }
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
