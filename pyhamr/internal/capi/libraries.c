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
#include "granted.h"
#include "torch_error.h"

enum { CUPY = 1, TORCH }; /* gobuffer.Library */

static int forked; /* Go does not run in a child, and the driver does not survive a fork, either */
static _Thread_local void *offered; /* for the thread's next allocation */
static _Thread_local size_t offered_size;
static _Thread_local int64_t thread_tag; /* what the thread's memory is paused by, or 0 */
static _Thread_local int64_t thread_use; /* tells whose parts torch gets, or 0 */
static _Thread_local int misses; /* calls that had no memory, and that nobody has answered yet */

static void in_child(void) {
    forked = 1;
    offered = NULL;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static uint64_t number(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void give_back(void *memory) {
    uint64_t left = memory && !forked ? granted_put(number(memory)) : 0;
    if (left) hamrFreeFor(left);
}

static void *torch_memory(ssize_t size, int device, void *stream, char *why, size_t room) {
    uint64_t part;
    if (size <= 0 || forked) return NULL;
    if (thread_use && hamrPartFor((uint64_t)thread_use, device, (uint64_t)size, &part, why, room))
        return (void *)(uintptr_t)part;
    uint64_t memory = hamrAllocateForAtOnce(TORCH, device, (uint64_t)size, number(stream));
    if (!memory) memory = hamrAllocateFor(TORCH, device, (uint64_t)size, number(stream), why, room);
    return (void *)(uintptr_t)memory;
}

/* For torch.cuda.memory.CUDAPluggableAllocator below a torch.cuda.MemPool, which makes torch's error of NULL:
 * there is no memory, or none was asked for. */
HAMR_EXPORT void *hamr_torch_alloc(ssize_t size, int device, void *stream) {
    return torch_memory(size, device, stream, NULL, 0);
}

/* The same as torch's only allocator, of which torch takes NULL for memory: it throws torch's error. */
HAMR_EXPORT void *hamr_torch_alloc_or_throw(ssize_t size, int device, void *stream) {
    char why[512] = "the process was forked, which CUDA does not survive: start processes by spawn";
    Granted granted = {.size = size > 0 ? (uint64_t)size : 0, .stream = number(stream), .device = device,
                       .library = TORCH};
    /* What is kept here has no tag, or another one, and is no part of anything. */
    int is_plain = !thread_tag && !thread_use;
    if (size > 0 && !forked && is_plain && granted_take(&granted)) return (void *)(uintptr_t)granted.address;
    void *memory = torch_memory(size, device, stream, why, sizeof why);
    if (!memory && size > 0) throw_out_of_memory(size, device, why);
    granted.address = number(memory);
    if (memory && is_plain) granted_note(&granted);
    return memory;
}

HAMR_EXPORT void hamr_torch_free(void *memory, size_t size, int device, void *stream) {
    (void)size, (void)device, (void)stream;
    give_back(memory);
}

HAMR_EXPORT void hamr_torch_record_stream(void *memory, void *stream) {
    if (!memory || forked) return;
    granted_forget(number(memory));
    hamrUseFor(number(memory), number(stream));
}

/* For cupy.cuda.CFunctionAllocator. The parameter is a function of CuPy's that returns the calling thread's
 * current stream, and is called with Python's lock, as this is. */
HAMR_EXPORT void *hamr_cupy_alloc(void *current_stream, size_t size, int device) {
    intptr_t (*ask)(void) = NULL;
    void *memory = offered;
    int is_offered = memory && offered_size == size;
    if (is_offered) offered = NULL;
    if (size == 0) return NULL;
    if (forked || !current_stream) {
        misses += !is_offered;
        return is_offered ? memory : NULL;
    }
    memcpy(&ask, &current_stream, sizeof ask);
    Granted granted = {.size = size, .stream = (uint64_t)ask(), .device = device, .library = CUPY};
    if (is_offered)
        granted.address = number(memory);
    else if (!thread_tag && granted_take(&granted))
        return (void *)(uintptr_t)granted.address;
    else
        granted.address = hamrAllocateForAtOnce(CUPY, device, size, granted.stream);
    if (granted.address && !thread_tag)
        granted_note(&granted);
    else if (!granted.address)
        misses++;
    return (void *)(uintptr_t)granted.address;
}

int64_t capi_thread_tag(int64_t tag) {
    int64_t before = thread_tag;
    if (tag >= 0) thread_tag = tag;
    return before;
}

int64_t capi_thread_use(int64_t use) {
    int64_t before = thread_use;
    if (use >= 0) thread_use = use;
    return before;
}

int capi_cupy_misses(int by) { return misses += by; }

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
