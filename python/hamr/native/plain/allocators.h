/* What is known of each allocator: the rows of backends/allocator.go. Nothing else asks for one by name, save where a
 * vendor's own interface is read. */
#pragma once

#include "hamr/functions.h"

typedef struct {
    const char *name;
    const char *backend;
    unsigned char kind;       /* hamr_memory_kind */
    unsigned char reach;      /* a bit for each hamr_space that uses the memory in place */
    unsigned char shared;     /* likewise, of those that do so where their runtime has the device, too */
    unsigned char ordered;    /* taken and given back in the order of a stream */
    unsigned char dlpack;     /* device type of DLPack and Arrow; 0: there is none */
    unsigned char mapped;     /* the host reaches it, but only through the core, which maps it */
    unsigned char exportable; /* other processes can open it */
} AllocatorFacts;

extern const AllocatorFacts allocator_table[HAMR_ALLOCATOR_COUNT];

/* NULL of a number that is none, as of memory that is nowhere yet. */
static inline const AllocatorFacts *allocator_facts(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT ? &allocator_table[allocator] : NULL;
}

/* What sort of memory it is; ordinary host memory where that is not known yet. */
static inline hamr_memory_kind memory_kind(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts ? (hamr_memory_kind)facts->kind : HAMR_PAGEABLE;
}

/* Whether the runtime of a device has to do with the memory. */
static inline int is_of_device(int32_t allocator) { return memory_kind(allocator) != HAMR_PAGEABLE; }

static inline int is_mapped(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts && facts->mapped;
}

static inline int is_ordered(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts && facts->ordered;
}

/* The device type of DLPack and Arrow; 0: there is none. */
static inline int32_t dlpack_type_of(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts ? facts->dlpack : 0;
}

/* Plain device memory and page-locked memory, which the core may hand out again. */
static inline int is_reused(int32_t allocator) {
    hamr_memory_kind kind = memory_kind(allocator);
    return (kind == HAMR_DEVICE_ONLY && !is_ordered(allocator)) || kind == HAMR_PINNED;
}

/* Memory that is freed without a look at what streams hold that nobody has told of. */
static inline int is_pooled(int32_t allocator) { return is_ordered(allocator) || is_reused(allocator); }

int is_of_cuda(int32_t allocator);
