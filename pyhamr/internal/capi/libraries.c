/* What array libraries call to allocate device memory: python/hamr/allocators gives them the addresses.
 *
 * Callers hold locks, Python's or torch's, which a thread that the device waits for may want. So to free
 * waits for nobody, and CuPy's hook, which cannot let go of Python's lock, hands out only what is there at
 * once: else its caller in Python allocates without the lock and offers the memory to the hook. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "_cgo_export.h"
#include "fork.h"
#include "torch_error.h"

enum { CUPY = 1, TORCH }; /* gobuffer.Library */

static int forked; /* Go does not run in a child, and the driver does not survive a fork, either */
static _Thread_local void *offered; /* for the thread's next allocation */
static _Thread_local size_t offered_size;

static void in_child(void) {
    forked = 1;
    offered = NULL;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static uint64_t number(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void give_back(void *memory) {
    if (memory && !forked) hamrFreeFor(number(memory));
}

static void *torch_memory(ssize_t size, int device, void *stream, char *why, size_t room) {
    if (size <= 0 || forked) return NULL;
    uint64_t memory = hamrAllocateForAtOnce(TORCH, device, (uint64_t)size, number(stream));
    if (!memory) memory = hamrAllocateFor(TORCH, device, (uint64_t)size, number(stream), why, room);
    return (void *)(uintptr_t)memory;
}

/* For torch.cuda.memory.CUDAPluggableAllocator below a torch.cuda.MemPool, which makes torch's error of NULL:
 * there is no memory, or none was asked for. */
HAMR_EXPORT void *hamr_torch_alloc(ssize_t size, int device, void *stream) { return torch_memory(size, device, stream, NULL, 0); }

/* The same as torch's only allocator, of which torch takes NULL for memory: it throws torch's error. */
HAMR_EXPORT void *hamr_torch_alloc_or_throw(ssize_t size, int device, void *stream) {
    char why[512] = "the process was forked, which CUDA does not survive: start processes by spawn";
    void *memory = torch_memory(size, device, stream, why, sizeof why);
    if (!memory && size > 0) throw_out_of_memory(size, device, why);
    return memory;
}

HAMR_EXPORT void hamr_torch_free(void *memory, size_t size, int device, void *stream) {
    (void)size, (void)device, (void)stream;
    give_back(memory);
}

HAMR_EXPORT void hamr_torch_record_stream(void *memory, void *stream) {
    if (memory && !forked) hamrUseFor(number(memory), number(stream));
}

/* For cupy.cuda.CFunctionAllocator. The parameter is a function of CuPy's that returns the calling thread's
 * current stream, and is called with Python's lock, as this is. */
HAMR_EXPORT void *hamr_cupy_alloc(void *current_stream, size_t size, int device) {
    intptr_t (*ask)(void) = NULL;
    void *memory = offered;
    if (memory && offered_size == size) {
        offered = NULL;
        return memory;
    }
    if (size == 0 || forked || !current_stream) return NULL;
    memcpy(&ask, &current_stream, sizeof ask);
    return (void *)(uintptr_t)hamrAllocateForAtOnce(CUPY, device, size, (uint64_t)ask());
}

HAMR_EXPORT void hamr_cupy_free(void *parameter, void *memory, int device) {
    (void)parameter, (void)device;
    give_back(memory);
}

/* The memory that the calling thread's next hamr_cupy_alloc of that size returns. It returns what was
 * offered before and is there still. */
HAMR_EXPORT void *hamr_cupy_offer(void *memory, size_t size) {
    void *left = offered;
    offered = memory;
    offered_size = size;
    return left;
}
