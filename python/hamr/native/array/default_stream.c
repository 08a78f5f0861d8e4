#include "array/default_stream.h"

#include <time.h>

#include "array/array.h"
#include "base/streams.h"
#include "core/core.h"
#include "memory/block.h"
#include "plain/allocators.h"
#include "plain/dlpack.h"
#include "plain/layout.h"
#include "plain/memory.h"

enum { INVALID_VALUE = 1, CAPTURE_IMPLICIT = 906 };

const hamr_devices *default_stream_driver(const Array *self) {
    const hamr_functions *functions = core_functions();
    int32_t device = self->array.device;
    int32_t type = dlpack_type_of(self->array.allocator);
    if (type != kDLCUDA && type != kDLCUDAManaged) return NULL;
    const hamr_devices *devices = functions ? functions->devices : NULL;
    void *context = NULL;
    if (!devices || device < 0 || device >= devices->cuda_count || !devices->cuda_query || !devices->cuda_contexts)
        return NULL;
    if (devices->cuda_context(&context) != 0 || !context || context != devices->cuda_contexts[device]) return NULL;
    return devices;
}

/* Nothing can be ordered with a stream that is being captured, and to ask it anything would end that. */
int default_stream_captured(const hamr_devices *devices) {
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

int default_stream_idle(const Array *self) {
    const hamr_devices *devices = default_stream_driver(self);
    int32_t device = self->array.device;
    int capturing = devices ? default_stream_captured(devices) : -1;
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

int array_may_be_paused(const Array *self) {
    const hamr_functions *functions = is_of_cuda(self->array.allocator) ? core_functions() : NULL;
    return functions && number_at(functions->devices->pausable);
}

int array_has_own_order(const Array *self) {
    return array_may_be_paused(self) || self->array.stream || block_foreign_work(self->block) ||
        marks_at(self->block->memory.marks);
}

#define MOST_DOWNLOAD (256 << 10) /* bytes: more may be staged */
#define ASK_DOWNLOAD (64 << 10)   /* above it the core sees to signals where there is work before the copy */

int default_stream_download(const Array *self, void *target, int64_t size, hamr_error **error) {
    const Block *block = self->block;
    if (size <= 0 || size > MOST_DOWNLOAD || !array_contiguous(&self->array, 0)) return 0;
    if (memory_kind(self->array.allocator) != HAMR_DEVICE_ONLY || !block || !block->memory.token ||
        !block->memory.marks || array_has_own_order(self))
        return 0;
    const hamr_devices *devices = default_stream_driver(self);
    if (!devices || !devices->cuda_download || number_at(devices->kept) || number_at(devices->tracing)) return 0;
    if (size > ASK_DOWNLOAD && !default_stream_idle(self)) return 0;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = devices->cuda_download(target, self->array.pointer, (size_t)size);
    Py_END_ALLOW_THREADS
    if (code == INVALID_VALUE) return 0; /* as of memory that is page-locked in part */
    /* Without a core, in a child that was forked meanwhile, the caller finds none either. */
    const hamr_functions *functions = core_functions();
    /* What somebody has begun to keep meanwhile, perhaps of the bytes that were written, the core drops
     * after a copy: after another one. */
    if (!code && functions && number_at(devices->kept)) return 0;
    *error = code && functions ? functions->download_failed(code) : NULL;
    return !code || functions;
}
