/* What is known of each allocator, as hamr/allocators.h numbers them. */
#ifndef HAMR_BASE_ALLOCATORS_H
#define HAMR_BASE_ALLOCATORS_H

#include "base/python.h"
#include "hamr/functions.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *backend;
    unsigned char kind;    /* hamr_memory_kind */
    unsigned char reach;   /* a bit for each hamr_space that uses the memory in place */
    unsigned char shared;  /* likewise, of those that do so where their runtime has the device, too */
    unsigned char ordered; /* taken and given back in the order of a stream */
    unsigned char dlpack;  /* device type of DLPack and Arrow; 0: there is none */
    unsigned char mapped;  /* the host reaches it, but only through the core, which maps it */
    unsigned char exportable; /* other processes can open it */
} AllocatorFacts;
extern const AllocatorFacts allocator_table[HAMR_ALLOCATOR_COUNT];
extern PyMethodDef allocator_functions[];

/* What sort of memory it is; ordinary host memory where that is not known yet. */
static inline hamr_memory_kind memory_kind(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT ? (hamr_memory_kind)allocator_table[allocator].kind : HAMR_PAGEABLE;
}

/* Whether the runtime of a device has to do with the memory. */
static inline int is_of_device(int32_t allocator) { return memory_kind(allocator) != HAMR_PAGEABLE; }

static inline int is_mapped(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT && allocator_table[allocator].mapped;
}

static inline int is_of_cuda(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT && allocator_table[allocator].backend && strcmp(allocator_table[allocator].backend, "cuda") == 0;
}

static inline int is_ordered(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT && allocator_table[allocator].ordered;
}

#endif
