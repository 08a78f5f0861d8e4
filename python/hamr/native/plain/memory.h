/* One allocation: what Python's Block and C's Share have in common, and the rules for who uses it. */
#pragma once

#include "hamr/functions.h"
#include "plain/allocators.h"

typedef struct {
    uint64_t token;      /* 0: the core does not know the memory (yet) */
    uint64_t generation; /* the copy of the library that the token belongs to */
    uint64_t base;
    uint64_t size;
    uint64_t stream;     /* what the memory is released in the order of */
    uint64_t marks;      /* as in hamr_array */
    int32_t allocator;
    int32_t device;
    char address_known; /* to others, who need not say on which streams they use it; set by any thread */
} Memory;

/* The marks at an address, read before the elements are: no work is pending on them if it is zero. */
static inline uint32_t marks_at(uint64_t address) {
    return address ? __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE) : 0;
}

static inline uint64_t number_at(uint64_t address) {
    return __atomic_load_n((const uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
}

/* Whether the host may use the elements where they are, without asking the core, which would say the same: see
 * gobuffer/access.go. marks are the memory's. Kernels that hamr knows nothing of may use managed memory, on the
 * default stream, too. */
static inline int host_in_place(const hamr_array *array, uint64_t marks) {
    if (!(array->flags & HAMR_HOST_REACHABLE)) return 0;
    if (!is_of_device(array->allocator)) return !marks_at(marks); /* such as somebody has page-locked */
    return memory_kind(array->allocator) != HAMR_MANAGED && !array->stream && marks && !marks_at(marks);
}

static inline void memory_tell_address(Memory *memory) {
    __atomic_store_n(&memory->address_known, 1, __ATOMIC_RELAXED);
}

/* Of one that is all zero. */
static inline void memory_fill(Memory *memory, const hamr_array *array, uint64_t generation) {
    memory->token = array->memory;
    memory->generation = generation;
    memory->base = array->base;
    memory->size = array->size;
    memory->stream = array->stream;
    memory->marks = array->marks;
    memory->allocator = array->allocator;
    memory->device = array->device;
}

/* An array of all its bytes, of which the core is told. */
hamr_array memory_whole(const Memory *memory, int64_t dimensions[2]);
/* Whether memory of the core's must not be handed out again, by the core or by the driver's pool, before the device
 * is at rest: whoever has its address may use it on any stream. The core puts such memory aside. */
static inline int memory_waits_for_all(const Memory *memory) {
    return __atomic_load_n(&memory->address_known, __ATOMIC_RELAXED) && is_pooled(memory->allocator);
}
