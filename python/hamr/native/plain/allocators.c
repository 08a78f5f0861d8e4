#include "plain/allocators.h"

#include <string.h>

#define FACTS(allocator, number, name, backend, kind, reach, shared, ordered, device, mapped, opaque, exportable) \
    [allocator] = {name, backend, kind, reach, shared, ordered, device, mapped, exportable},

const AllocatorFacts allocator_table[HAMR_ALLOCATOR_COUNT] = {HAMR_ALLOCATOR_FACTS(FACTS)};
#undef FACTS

_Static_assert((int)HAMR_ALLOCATOR_COUNT <= (int)HAMR_ALLOCATORS, "tables by allocator are too short");

int is_of_cuda(int32_t allocator) {
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts && strcmp(facts->backend, "cuda") == 0;
}
