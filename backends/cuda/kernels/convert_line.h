// hamr_convert_line: elements that follow one another on both sides, converted in
// groups.
#pragma once

#include "types.h"

namespace hamr {

// How many elements a thread has under way, in groups that lie apart so that
// neighbouring threads meet neighbouring words.
constexpr unsigned line_batch = 8;

// A group is one word of memory; one of 16 bytes is two words here.
template <unsigned Size, unsigned Width> struct group {
    static constexpr unsigned bytes = Size * Width;
    static constexpr unsigned in_word = bytes == 16 ? Width / 2 : Width;
    static constexpr wide all = Size == 8 ? ~0ull : (1ull << 8 * Size % 64) - 1;
    typedef typename word_of<bytes>::type word;
};

// Where a thread's groups are on one side, and how many of them are in the array.
struct line {
    wide first, step;
    unsigned live;
};

template <unsigned Size, unsigned Width> HAMR_DEVICE void load_line(line from, wide (&v)[line_batch])
{
    typedef group<Size, Width> group;
    HAMR_UNROLL
    for (unsigned g = 0; g < line_batch / Width; g++) {
        double_wide words = {0, 0};
        if (g < from.live) {
            if constexpr (group::bytes == 16)
                words = *at<double_wide>(from.first + g * from.step);
            else
                words.low = *at<typename group::word>(from.first + g * from.step);
        }
        HAMR_UNROLL
        for (unsigned i = 0; i < Width; i++)
            v[g * Width + i] =
                (i < group::in_word ? words.low : words.high) >> 8 * Size * (i % group::in_word) & group::all;
    }
}

template <unsigned Size, unsigned Width> HAMR_DEVICE void store_line(line to, const wide (&v)[line_batch])
{
    typedef group<Size, Width> group;
    HAMR_UNROLL
    for (unsigned g = 0; g < line_batch / Width; g++) {
        double_wide words = {0, 0};
        HAMR_UNROLL
        for (unsigned i = 0; i < Width; i++)
            (i < group::in_word ? words.low : words.high) |= (v[g * Width + i] & group::all)
                                                             << 8 * Size * (i % group::in_word);
        if (g >= to.live)
            continue;
        if constexpr (group::bytes == 16)
            *at<double_wide>(to.first + g * to.step) = words;
        else
            *at<typename group::word>(to.first + g * to.step) = static_cast<typename group::word>(words.low);
    }
}

// One switch is quicker than one in another.
HAMR_DEVICE constexpr unsigned both(unsigned size, unsigned width) { return size << 4 | width; }

HAMR_DEVICE void load_groups(unsigned size, unsigned width, line from, wide (&v)[line_batch])
{
    switch (both(size, width)) {
    case both(1, 8): return load_line<1, 8>(from, v);
    case both(2, 8): return load_line<2, 8>(from, v);
    case both(1, 4): return load_line<1, 4>(from, v);
    case both(2, 4): return load_line<2, 4>(from, v);
    case both(4, 4): return load_line<4, 4>(from, v);
    case both(1, 2): return load_line<1, 2>(from, v);
    case both(2, 2): return load_line<2, 2>(from, v);
    case both(4, 2): return load_line<4, 2>(from, v);
    default: return load_line<8, 2>(from, v);
    }
}

HAMR_DEVICE void store_groups(unsigned size, unsigned width, line to, const wide (&v)[line_batch])
{
    switch (both(size, width)) {
    case both(1, 8): return store_line<1, 8>(to, v);
    case both(2, 8): return store_line<2, 8>(to, v);
    case both(1, 4): return store_line<1, 4>(to, v);
    case both(2, 4): return store_line<2, 4>(to, v);
    case both(4, 4): return store_line<4, 4>(to, v);
    case both(1, 2): return store_line<1, 2>(to, v);
    case both(2, 2): return store_line<2, 2>(to, v);
    case both(4, 2): return store_line<4, 2>(to, v);
    default: return store_line<8, 2>(to, v);
    }
}

HAMR_DEVICE void convert_line(const line_argument &a, unsigned thread, unsigned threads)
{
    unsigned source_size = part_of(a.source_type), target_size = part_of(a.target_type);
    wide source_group = source_size * a.width, target_group = target_size * a.width;
    for (unsigned first = thread; first < a.groups; first += threads * (line_batch / a.width)) {
        unsigned live = 0;
        HAMR_UNROLL
        for (unsigned g = 0; g < line_batch / 2; g++)
            live += first + g * threads < a.groups;
        wide v[line_batch];
        load_groups(source_size, a.width, {a.source + first * source_group, threads * source_group, live}, v);
        convert(a.target_type, a.source_type, v);
        store_groups(target_size, a.width, {a.target + first * target_group, threads * target_group, live}, v);
    }
}

} // namespace hamr
