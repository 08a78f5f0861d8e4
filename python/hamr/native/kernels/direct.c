#include "kernels/direct.h"

#include "array/array.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "kernels/launch.h"
#include "memory/block.h"
#include "memory/stream_life.h"
#include "plain/allocators.h"
#include "plain/layout.h"
#include "plain/memory.h"

static uint64_t one_name(uint64_t stream) { return stream ? stream : LEGACY_STREAM; }

/* The driver, where the launch's context is current and nobody has to be told of changes of memory. */
static const hamr_devices *driver_for(const Launch *launch, const hamr_functions *functions) {
    const hamr_devices *devices = functions->devices;
    void *context = NULL;
    if (launch->device >= devices->cuda_count || !devices->cuda_launch || !devices->cuda_contexts) return NULL;
    if (number_at(devices->kept) || number_at(devices->tracing) || number_at(devices->accesses) ||
        number_at(devices->pausable))
        return NULL;
    if (devices->cuda_context(&context) != 0 || !context || context != devices->cuda_contexts[launch->device])
        return NULL;
    return devices;
}

/* Another library's stream may be of another context, and what goes into a graph the core has to know. */
static int is_plain_stream(const Launch *launch, const hamr_devices *devices) {
    int status = 0;
    if (launch->handle <= LEGACY_STREAM) return 1;
    if (launch->handle == PER_THREAD_STREAM || !launch->own || !devices->cuda_capturing) return 0;
    return devices->cuda_capturing(launch->handle, &status) == 0 && status == 0;
}

static int shape_fits(const hamr_shape *shape, const hamr_kernel *kernel) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (shape->grid[i] - 1 >= kernel->most_grid[i] || shape->block[i] - 1 >= kernel->most_block[i]) return 0;
        threads *= shape->block[i];
    }
    return threads <= (uint64_t)kernel->threads && shape->shared <= (uint32_t)kernel->shared;
}

/* Whether the memory is used on this stream alone, so that all that is done to it, its release too, is in
 * order. What is pending then was enqueued on the stream before, which the marks tell. */
static int array_fits(const Array *self, const Launch *launch, int reads) {
    const hamr_array *array = &self->array;
    const Block *block = self->block;
    uint64_t stream = one_name(launch->handle);
    if (self->closed || (array->flags & HAMR_READ_ONLY && !reads)) return 0;
    if (!block) return array->pointer == 0;
    if (memory_kind(array->allocator) != HAMR_DEVICE_ONLY || !is_of_cuda(array->allocator) ||
        array->device != launch->device)
        return 0;
    if (block->owner || !block->memory.token || block->memory.generation != core_generation || !block->memory.marks ||
        block->several_streams || block->kept)
        return 0;
    if (one_name(array->stream) != stream || one_name(block->memory.stream) != stream ||
        stream_life_over(self->life, array->stream))
        return 0;
    return !marks_at(block->memory.marks) ||
        (block->covered_by == stream && number_at(block->memory.marks) == block->covered);
}

static int arguments_fit(const Launch *launch, const hamr_kernel *kernel) {
    if (launch->count != kernel->parameters) return 0;
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        const Argument *argument = &launch->arguments[i];
        if (argument->size != kernel->sizes[i] ||
            (argument->array && !array_fits(argument->array, launch, argument->reads)))
            return 0;
    }
    return 1;
}

/* The module is not unloaded before what is launched on the stream is over. */
static int tell(const Launch *launch, const hamr_kernel *kernel, const hamr_functions *functions, Told *told) {
    uint64_t stream = one_name(launch->handle), ended = stream_lives_ended();
    for (unsigned i = 0; i < sizeof told->streams / sizeof *told->streams; i++)
        if (told->streams[i].stream == stream && told->streams[i].device == launch->device &&
            told->streams[i].ended == ended)
            return 0;
    hamr_error *error = functions->launched(kernel->kernel, launch->handle);
    if (error) return core_raise(error);
    unsigned at = told->next++ % (sizeof told->streams / sizeof *told->streams);
    told->streams[at].stream = stream;
    told->streams[at].device = launch->device;
    told->streams[at].ended = ended;
    return 0;
}

/* Another thread may close an array while the driver makes this one wait. */
static void hold_blocks(const Launch *launch, Block **blocks) {
    for (Py_ssize_t i = 0; i < launch->count; i++)
        blocks[i] = launch->arguments[i].array ? (Block *)Py_XNewRef((PyObject *)launch->arguments[i].array->block)
            : NULL;
}

static void drop_blocks(const Launch *launch, Block **blocks) {
    for (Py_ssize_t i = 0; i < launch->count; i++) Py_XDECREF((PyObject *)blocks[i]);
}

int launch_directly(Launch *launch, const hamr_kernel *kernel, Told *told) {
    enum { MOST = 16 };
    const hamr_functions *functions = core_functions();
    const hamr_devices *devices = launch->count <= MOST ? driver_for(launch, functions) : NULL;
    if (!devices || !shape_fits(&launch->shape, kernel) || !is_plain_stream(launch, devices)) return 0;
    if (tell(launch, kernel, functions, told) < 0) return -1;
    if (!arguments_fit(launch, kernel)) return 0;
    const hamr_shape *s = &launch->shape;
    void *values[MOST + 1];
    uint64_t pointers[MOST + 1];
    Block *blocks[MOST + 1];
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        const Argument *argument = &launch->arguments[i];
        pointers[i] = argument->array && array_count(&argument->array->array) ? argument->array->array.pointer : 0;
        values[i] = argument->array ? &pointers[i] : argument->value;
    }
    hold_blocks(launch, blocks);
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = devices->cuda_launch((void *)(uintptr_t)kernel->function, s->grid[0], s->grid[1], s->grid[2], s->block[0],
                                s->block[1], s->block[2],
                                s->shared, one_name(launch->handle), values, NULL);
    Py_END_ALLOW_THREADS
    drop_blocks(launch, blocks);
    return code == 0; /* else the core finds out what is wrong, by trying once more */
}

void launch_covered(Launch *launch, const hamr_argument *arguments) {
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        Array *array = launch->arguments[i].array;
        if (!array || !array->block || !arguments[i].marks) continue;
        array->block->covered = arguments[i].marks;
        array->block->covered_by = one_name(launch->handle);
    }
}
