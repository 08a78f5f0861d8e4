// What threads do to one word at a time. On the host there is one thread.
#pragma once

#include "memory.h"

namespace hamr {

#ifdef HAMR_KERNELS_ON_HOST
// Returns what was there, which becomes value if it was expected.
inline wide atomic_take(wide *word, wide expected, wide value)
{
    wide there = *word;
    if (there == expected)
        *word = value;
    return there;
}
inline void atomic_most(wide *word, wide value) { *word = *word < value ? value : *word; }
inline void atomic_least(wide *word, wide value) { *word = value < *word ? value : *word; }
#else
HAMR_DEVICE wide atomic_take(wide *word, wide expected, wide value) { return atomicCAS(word, expected, value); }
HAMR_DEVICE void atomic_most(wide *word, wide value) { atomicMax(word, value); }
HAMR_DEVICE void atomic_least(wide *word, wide value) { atomicMin(word, value); }
#endif

} // namespace hamr
