// What the threads of a block do together. On the host each block has one thread, and the first one prepares what all
// blocks share.
#pragma once

#include "memory.h"

namespace hamr {

#ifdef HAMR_KERNELS_ON_HOST
#define HAMR_SHARED_BY_ALL static thread_local
// Returns what was there, which becomes value if it was expected.
template <typename Word> inline Word atomic_take(Word *word, Word expected, Word value)
{
    Word there = *word;
    if (there == expected)
        *word = value;
    return there;
}
template <typename Word> inline void atomic_most(Word *word, Word value) { *word = *word < value ? value : *word; }
inline void atomic_least(wide *word, wide value) { *word = value < *word ? value : *word; }
inline void wait_for_block() {}
inline unsigned first_share(unsigned thread) { return thread == 0 ? 0 : ~0u; }
inline unsigned shares() { return 1; }
#else
#define HAMR_SHARED_BY_ALL __shared__
template <typename Word> HAMR_DEVICE Word atomic_take(Word *word, Word expected, Word value)
{
    return atomicCAS(word, expected, value);
}
template <typename Word> HAMR_DEVICE void atomic_most(Word *word, Word value) { atomicMax(word, value); }
HAMR_DEVICE void atomic_least(wide *word, wide value) { atomicMin(word, value); }
HAMR_DEVICE void wait_for_block() { __syncthreads(); }
HAMR_DEVICE unsigned first_share(unsigned) { return threadIdx.x; }
HAMR_DEVICE unsigned shares() { return blockDim.x; }
#endif

} // namespace hamr
