// hamr_fill: a pattern repeated, in aligned words but for the edges.
#pragma once

#include "arguments.h"

namespace hamr {

HAMR_DEVICE wide across_words(wide low, wide high, unsigned bits)
{
    return bits ? low >> bits | high << (64 - bits) : low;
}

// The 16 bytes that start phase bytes into the pattern; phase is below 16.
HAMR_DEVICE double_wide pattern_from(const fill_argument &a, unsigned phase)
{
    bool later = phase >= 8;
    unsigned bits = phase % 8 * 8;
    wide first = later ? a.pattern[1] : a.pattern[0], second = later ? a.pattern[2] : a.pattern[1];
    wide third = later ? a.pattern[3] : a.pattern[2];
    return {across_words(first, second, bits), across_words(second, third, bits)};
}

HAMR_DEVICE void fill_memory(const fill_argument &a, unsigned thread, unsigned threads)
{
    wide before = (0 - a.target) % 16;
    if (before > a.bytes)
        before = a.bytes;
    wide words = (a.bytes - before) / 16, inside = words * 16, edges = a.bytes - inside;
    for (wide edge = thread; edge < edges; edge += threads) {
        wide offset = edge < before ? edge : edge + inside;
        *at<unsigned char>(a.target + offset) =
            static_cast<unsigned char>(pattern_from(a, static_cast<unsigned>(offset % a.period)).low);
    }
    unsigned phase = static_cast<unsigned>((before + 16ull * thread) % a.period);
    unsigned step = static_cast<unsigned>(16ull * threads % a.period);
    for (wide word = thread; word < words; word += threads) {
        *at<double_wide>(a.target + before + 16 * word) = pattern_from(a, phase);
        phase += step;
        if (phase >= a.period)
            phase -= a.period;
    }
}

} // namespace hamr
