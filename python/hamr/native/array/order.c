/* Work of hamr's and of other libraries on the same memory, in an order. */
#include "array/order.h"

#include <string.h>

#include "array/access.h"
#include "array/array.h"
#include "array/default_stream.h"
#include "array/snapshot.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "plain/allocators.h"
#include "plain/dlpack.h"

enum { NO_TIMING = 2 };

/* Whether other libraries' work on the default stream may touch the elements. */
static int uses_default_stream(const Array *self) {
    return is_of_device(self->array.allocator) && self->array.device >= 0;
}

/* Whether the array's runtime has a number for its default stream that an interface may name: not
 * HIP, which has zero, and that the interface forbids. */
static int default_stream_has_number(const Array *self) {
    return dlpack_type_of(self->array.allocator) != kDLROCM;
}

static int order_settled(Array *self) {
    Array *settled = array_settled(self);
    Py_XDECREF((PyObject *)settled);
    return settled ? 0 : -1;
}

/* Whether a stream that an interface names may be taken for one of another device than the memory's: managed memory is
 * used on any, and 1 is the default stream of the one that is current for the consumer. */
static int stream_is_anothers(const Array *self) {
    const hamr_functions *functions = core_functions();
    int current = 0;
    if (memory_kind(self->array.allocator) != HAMR_MANAGED || !functions || functions->devices->cuda_count < 2)
        return 0;
    return functions->devices->cuda_current(&current) != 0 || current != self->array.device;
}

int order_covering(Array *self, uint64_t *stream) {
    *stream = 0;
    if (!self->block) return 0;
    if (!array_has_own_order(self) && (!uses_default_stream(self) || default_stream_idle(self))) return 0;
    if (stream_is_anothers(self)) return order_settled(self);
    Array *source = array_pin(self);
    if (!source) return -1;
    /* Making the snapshot may run finalisers, after which there may be no memory, nor a core. */
    const hamr_functions *functions = source->block ? core_functions() : NULL;
    hamr_error *error = functions ? functions->covering(&source->array, stream) : NULL;
    Py_DECREF(source);
    if (error) return core_raise(error);
    if (*stream != LEGACY_STREAM || default_stream_has_number(self)) return 0;
    *stream = 0;
    return order_settled(self);
}

#define MOST_DEVICES 64

/* Makes a stream run after the default one of its device, by an event: that costs a quarter
 * of asking whether there is anything to run after. 0: the core must do it. */
static int follow_default(const Array *self, uint64_t stream) {
    static void *events[MOST_DEVICES]; /* by device; the GIL is held from a record to its wait */
    static uint64_t generation;
    int32_t device = self->array.device;
    const hamr_devices *devices = device < MOST_DEVICES ? default_stream_driver(self) : NULL;
    int status = 0;
    if (!devices || !devices->cuda_event || default_stream_captured(devices) != 0) return 0;
    if (devices->cuda_capturing && (devices->cuda_capturing(stream, &status) != 0 || status)) return 0;
    if (generation != core_generation) {
        memset(events, 0, sizeof events);
        generation = core_generation;
    }
    if (!events[device] && devices->cuda_event(&events[device], NO_TIMING) != 0) {
        events[device] = NULL;
        return 0;
    }
    return devices->cuda_record(events[device], LEGACY_STREAM) == 0 &&
        devices->cuda_wait(stream, events[device], 0) == 0;
}

int order_before(Array *self, uint64_t stream) {
    if (!self->block) return 0;
    if (!array_has_own_order(self)) {
        if (!uses_default_stream(self)) return 0;
        if (memory_kind(self->array.allocator) == HAMR_DEVICE_ONLY || stream > PER_THREAD_STREAM) {
            if (stream == LEGACY_STREAM) return 0; /* they are in its order already */
            if (stream && follow_default(self, stream)) return 0;
        }
        if (default_stream_idle(self)) return 0;
    }
    Array *source = array_pin(self);
    if (!source) return -1;
    const hamr_functions *functions = source->block ? core_functions() : NULL;
    hamr_error *error = functions ? functions->order_before(&source->array, stream) : NULL;
    Py_DECREF(source);
    return error ? core_raise(error) : 0;
}
