/* Work of hamr's and of other libraries on the same memory, in an order. */
#include "array/order.h"

#include <string.h>
#include <time.h>

#include "array/access.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "base/allocators.h"
#include "base/dlpack.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/block.h"

enum { CAPTURE_IMPLICIT = 906, NO_TIMING = 2 };

/* What may be asked of the driver about the default stream of an array's device from this
 * thread; NULL where the core must be: it is another runtime's, or another context is
 * current. */
static const hamr_devices *driver_for(const Array *self) {
    const hamr_functions *functions = core_functions();
    int32_t device = self->array.device;
    unsigned type = self->array.allocator < HAMR_ALLOCATOR_COUNT ? allocator_table[self->array.allocator].dlpack : 0;
    if (type != kDLCUDA && type != kDLCUDAManaged) return NULL;
    const hamr_devices *devices = functions ? functions->devices : NULL;
    void *context = NULL;
    if (!devices || device < 0 || device >= devices->cuda_count || !devices->cuda_query || !devices->cuda_contexts) return NULL;
    if (devices->cuda_context(&context) != 0 || !context || context != devices->cuda_contexts[device]) return NULL;
    return devices;
}

/* 1 while a stream is captured that the default one would wait for: nothing can be ordered
 * with that then, and to ask it anything would end the capture. -1: the driver does not say. */
static int captured(const hamr_devices *devices) {
    int status, code = devices->cuda_capturing ? devices->cuda_capturing(LEGACY_STREAM, &status) : 0;
    return code == 0 ? 0 : code == CAPTURE_IMPLICIT ? 1 : -1;
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Shorter than any driver takes to enqueue something. */
#define NO_TIME 700

/* The last stream that was seen idle, which costs more than all else here: CuPy and PyTorch
 * ask for an interface twice, once for whether there is one. */
static _Thread_local struct {
    int32_t device;
    uint64_t at;
} seen_idle;

/* Whether the default stream of an array's device is known to have nothing to do. */
static int default_stream_idle(const Array *self) {
    const hamr_devices *devices = driver_for(self);
    int32_t device = self->array.device;
    int capturing = devices ? captured(devices) : -1;
    if (capturing) return capturing == 1;
    if (seen_idle.at && seen_idle.device == device && nanoseconds() - seen_idle.at < NO_TIME) return 1;
    if (devices->cuda_query(LEGACY_STREAM) != 0) {
        seen_idle.at = 0;
        return 0;
    }
    seen_idle.device = device;
    seen_idle.at = nanoseconds();
    return 1;
}

/* Whether work is recorded, or on a stream of the array's own, that others must wait for. */
static int has_own_order(const Array *self) {
    return self->array.stream || block_foreign_work(self->block) || marks_at(self->block->marks);
}

/* Whether other libraries' work on the default stream may touch the elements. */
static int uses_default_stream(const Array *self) {
    return is_of_device(self->array.allocator) && self->array.device >= 0;
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
    if (!self->block) return 0;
    if (!has_own_order(self) && (!uses_default_stream(self) || default_stream_idle(self))) return 0;
    if (stream_is_anothers(self)) {
        Array *settled = array_settled(self);
        Py_XDECREF((PyObject *)settled);
        return settled ? 0 : -1;
    }
    Array *source = array_pin(self);
    if (!source) return -1;
    /* Making the snapshot may run finalisers, after which there may be no memory, nor a core. */
    const hamr_functions *functions = source->block ? core_functions() : NULL;
    hamr_error *error = functions ? functions->covering(&source->array, stream) : NULL;
    Py_DECREF(source);
    return error ? core_raise(error) : 0;
}

#define MOST_DEVICES 64

/* Makes a stream run after the default one of its device, by an event: that costs a quarter
 * of asking whether there is anything to run after. 0: the core must do it. */
static int follow_default(const Array *self, uint64_t stream) {
    static void *events[MOST_DEVICES]; /* by device; the GIL is held from a record to its wait */
    static uint64_t generation;
    int32_t device = self->array.device;
    const hamr_devices *devices = device < MOST_DEVICES ? driver_for(self) : NULL;
    int status = 0;
    if (!devices || !devices->cuda_event || captured(devices) != 0) return 0;
    if (devices->cuda_capturing && (devices->cuda_capturing(stream, &status) != 0 || status)) return 0;
    if (generation != core_generation) {
        memset(events, 0, sizeof events);
        generation = core_generation;
    }
    if (!events[device] && devices->cuda_event(&events[device], NO_TIMING) != 0) {
        events[device] = NULL;
        return 0;
    }
    return devices->cuda_record(events[device], LEGACY_STREAM) == 0 && devices->cuda_wait(stream, events[device], 0) == 0;
}

int order_before(Array *self, uint64_t stream) {
    if (!self->block) return 0;
    if (!has_own_order(self)) {
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
