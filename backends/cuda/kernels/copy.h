// hamr_copy: many runs of bytes, each to a place of its own.
#pragma once

#include "arguments.h"

namespace hamr {

HAMR_DEVICE unsigned word_size(wide addresses)
{
    unsigned bits = static_cast<unsigned>(addresses) & 15;
    return bits ? bits & (0 - bits) : 16;
}

template <unsigned Bytes> HAMR_DEVICE void copy_word(wide target, wide source)
{
    typedef typename word_of<Bytes>::type word;
    *at<word>(target) = *at<word>(source);
}

HAMR_DEVICE unsigned run_of(const copy_argument &a, unsigned word)
{
    unsigned low = 0, high = a.count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (a.runs[middle].first <= word)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// One word of less than 16 bytes, or what a run has left of one.
HAMR_DEVICE void copy_rest(wide target, wide source, unsigned size, unsigned bytes)
{
    if (bytes < size) {
        for (unsigned i = 0; i < bytes; i++)
            copy_word<1>(target + i, source + i);
        return;
    }
    switch (size) {
    case 8: copy_word<8>(target, source); break;
    case 4: copy_word<4>(target, source); break;
    case 2: copy_word<2>(target, source); break;
    default: copy_word<1>(target, source);
    }
}

// A thread asks for several words before it writes one, as a word takes long to come over the bus. Threads side by side
// have words side by side.
HAMR_DEVICE void copy_runs(const copy_argument &a, unsigned thread, unsigned threads)
{
    typedef word_of<16>::type whole;
    unsigned first = thread / threads_side_by_side * (threads_side_by_side * words_in_flight) +
                     thread % threads_side_by_side;
    for (unsigned begin = first; begin < a.words; begin += threads * words_in_flight) {
        wide targets[words_in_flight], sources[words_in_flight];
        unsigned sizes[words_in_flight], bytes[words_in_flight];
        whole words[words_in_flight];
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++) {
            unsigned word = begin + i * threads_side_by_side;
            const copy_run &run = a.runs[run_of(a, word < a.words ? word : begin)];
            sizes[i] = word_size(run.target | run.source);
            unsigned offset = ((word < a.words ? word : begin) - run.first) * sizes[i];
            targets[i] = run.target + offset;
            sources[i] = run.source + offset;
            bytes[i] = word >= a.words ? 0 : run.bytes - offset < sizes[i] ? run.bytes - offset : sizes[i];
        }
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++)
            if (bytes[i] == 16)
                words[i] = *at<whole>(sources[i]);
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++) {
            if (bytes[i] == 16)
                *at<whole>(targets[i]) = words[i];
            else if (bytes[i] > 0)
                copy_rest(targets[i], sources[i], sizes[i], bytes[i]);
        }
    }
}

} // namespace hamr
