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

HAMR_DEVICE void copy_runs(const copy_argument &a, unsigned thread, unsigned threads)
{
    for (unsigned word = thread; word < a.words; word += threads) {
        const copy_run &run = a.runs[run_of(a, word)];
        unsigned size = word_size(run.target | run.source), offset = (word - run.first) * size;
        wide target = run.target + offset, source = run.source + offset;
        if (run.bytes - offset < size) {
            for (unsigned i = 0; i < run.bytes - offset; i++)
                copy_word<1>(target + i, source + i);
            continue;
        }
        switch (size) {
        case 16: copy_word<16>(target, source); break;
        case 8: copy_word<8>(target, source); break;
        case 4: copy_word<4>(target, source); break;
        case 2: copy_word<2>(target, source); break;
        default: copy_word<1>(target, source);
        }
    }
}

} // namespace hamr
