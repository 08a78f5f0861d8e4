// hamr_convert: an array converted, rearranged, or both.
#pragma once

#include "rules.h"

namespace hamr {

// How many elements a thread converts at once.
constexpr unsigned batch = 8;

// How many groups of a width a thread has under way. Their addresses take more
// registers than they do, hence never more than four.
constexpr unsigned most_groups = 4;
HAMR_DEVICE constexpr unsigned groups_of(unsigned width)
{
    return batch / width < most_groups ? batch / width : most_groups;
}

HAMR_DEVICE unsigned size_of(element_type type)
{
    switch (type) {
    case boolean:
    case signed_8:
    case unsigned_8: return 1;
    case signed_16:
    case unsigned_16:
    case float_16:
    case brain_float_16: return 2;
    case signed_32:
    case unsigned_32:
    case float_32: return 4;
    case complex_128: return 16;
    default: return 8;
    }
}

HAMR_DEVICE bool is_complex(element_type type) { return type == complex_64 || type == complex_128; }

// Of complex numbers a part is loaded or stored at a time.
HAMR_DEVICE unsigned part_of(element_type type) { return is_complex(type) ? size_of(type) / 2 : size_of(type); }

// The part of an array that is walked in groups of one width: nearly all of it,
// or what is left over after whole groups.
struct portion {
    wide source, target;
    signed_wide source_stride, target_stride; // of the outermost dimension
    unsigned width, groups;
};

// Where a thread's groups are. Absent ones lie beyond the end.
struct places {
    wide source[most_groups], target[most_groups];
    bool present[most_groups];
};

template <unsigned Width>
HAMR_DEVICE void find(places &found, const convert_argument &a, const portion &p, unsigned first, unsigned threads)
{
    constexpr unsigned groups = groups_of(Width);
    unsigned rest[groups];
    HAMR_UNROLL
    for (unsigned g = 0; g < groups; g++) {
        rest[g] = first + g * threads;
        found.present[g] = rest[g] < p.groups;
        found.source[g] = p.source;
        found.target[g] = p.target;
    }
    for (unsigned axis = 0; axis + 1 < a.dimensions; axis++) {
        const dimension &d = a.inside_out[axis];
        HAMR_UNROLL
        for (unsigned g = 0; g < groups; g++) {
            unsigned outside = quotient(rest[g], d);
            signed_wide inside = rest[g] - outside * d.count;
            found.source[g] += static_cast<wide>(inside * d.source_stride);
            found.target[g] += static_cast<wide>(inside * d.target_stride);
            rest[g] = outside;
        }
    }
    HAMR_UNROLL
    for (unsigned g = 0; g < groups; g++) {
        found.source[g] += static_cast<wide>(static_cast<signed_wide>(rest[g]) * p.source_stride);
        found.target[g] += static_cast<wide>(static_cast<signed_wide>(rest[g]) * p.target_stride);
    }
}

// A group is one word of memory; one of 16 bytes is two words here.
template <unsigned Size, unsigned Width> struct group {
    static constexpr unsigned bytes = Size * Width;
    static constexpr unsigned in_word = bytes == 16 ? Width / 2 : Width;
    static constexpr wide all = Size == 8 ? ~0ull : (1ull << 8 * Size % 64) - 1;
    typedef typename word_of<bytes>::type word;
};

template <unsigned Size, unsigned Width> HAMR_DEVICE void load(const places &found, wide (&v)[batch])
{
    typedef group<Size, Width> group;
    HAMR_UNROLL
    for (unsigned g = 0; g < groups_of(Width); g++) {
        if (!found.present[g])
            continue;
        double_wide words;
        if constexpr (group::bytes == 16)
            words = *at<double_wide>(found.source[g]);
        else
            words.low = *at<typename group::word>(found.source[g]);
        HAMR_UNROLL
        for (unsigned i = 0; i < Width; i++)
            v[g * Width + i] = (i < group::in_word ? words.low : words.high) >> 8 * Size * (i % group::in_word) & group::all;
    }
}

template <unsigned Size, unsigned Width> HAMR_DEVICE void store(const places &found, const wide (&v)[batch])
{
    typedef group<Size, Width> group;
    HAMR_UNROLL
    for (unsigned g = 0; g < groups_of(Width); g++) {
        if (!found.present[g])
            continue;
        double_wide words = {0, 0};
        HAMR_UNROLL
        for (unsigned i = 0; i < Width; i++)
            (i < group::in_word ? words.low : words.high) |= (v[g * Width + i] & group::all) << 8 * Size * (i % group::in_word);
        if constexpr (group::bytes == 16)
            *at<double_wide>(found.target[g]) = words;
        else
            *at<typename group::word>(found.target[g]) = static_cast<typename group::word>(words.low);
    }
}

template <unsigned Width> HAMR_DEVICE void load_groups(unsigned size, const places &found, wide (&v)[batch])
{
    switch (size) {
    case 1: return load<1, Width>(found, v);
    case 2: return load<2, Width>(found, v);
    case 4:
        if constexpr (Width <= 4)
            load<4, Width>(found, v);
        return;
    case 8:
        if constexpr (Width <= 2)
            load<8, Width>(found, v);
        return;
    }
}

template <unsigned Width> HAMR_DEVICE void store_groups(unsigned size, const places &found, const wide (&v)[batch])
{
    switch (size) {
    case 1: return store<1, Width>(found, v);
    case 2: return store<2, Width>(found, v);
    case 4:
        if constexpr (Width <= 4)
            store<4, Width>(found, v);
        return;
    case 8:
        if constexpr (Width <= 2)
            store<8, Width>(found, v);
        return;
    }
}

HAMR_DEVICE void load_singly(bool bytewise, unsigned size, const places &found, wide (&v)[batch])
{
    if (!bytewise)
        return load_groups<1>(size, found, v);
    for (unsigned byte = 0; byte < size; byte++) {
        HAMR_UNROLL
        for (unsigned i = 0; i < groups_of(1); i++)
            if (found.present[i])
                v[i] |= static_cast<wide>(*at<unsigned char>(found.source[i] + byte)) << 8 * byte;
    }
}

HAMR_DEVICE void store_singly(bool bytewise, unsigned size, const places &found, const wide (&v)[batch])
{
    if (!bytewise)
        return store_groups<1>(size, found, v);
    for (unsigned byte = 0; byte < size; byte++) {
        HAMR_UNROLL
        for (unsigned i = 0; i < groups_of(1); i++)
            if (found.present[i])
                *at<unsigned char>(found.target[i] + byte) = static_cast<unsigned char>(v[i] >> 8 * byte);
    }
}

// Rare enough to walk the array twice: once for each part.
HAMR_DEVICE void load_imaginary(const convert_argument &a, places &found, wide (&v)[batch])
{
    unsigned size = part_of(a.source_type);
    wide part[batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < groups_of(1); i++) {
        part[i] = 0;
        found.source[i] += size;
    }
    load_singly(a.source_bytewise, size, found, part);
    HAMR_UNROLL
    for (unsigned i = 0; i < groups_of(1); i++)
        v[i] |= part[i];
}

HAMR_DEVICE void store_imaginary(const convert_argument &a, places &found)
{
    unsigned size = part_of(a.target_type);
    wide zeros[batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < groups_of(1); i++) {
        zeros[i] = 0;
        found.target[i] += size;
    }
    store_singly(a.target_bytewise, size, found, zeros);
}

HAMR_DEVICE void convert_batch(const convert_argument &a, const portion &p, unsigned first, unsigned threads)
{
    places found;
    wide v[batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < batch; i++)
        v[i] = 0;
    unsigned source_size = part_of(a.source_type), target_size = part_of(a.target_type);
    switch (p.width) {
    case 1:
        find<1>(found, a, p, first, threads);
        load_singly(a.source_bytewise, source_size, found, v);
        if (is_complex(a.source_type))
            load_imaginary(a, found, v);
        break;
    case 2:
        find<2>(found, a, p, first, threads);
        load_groups<2>(source_size, found, v);
        break;
    case 4:
        find<4>(found, a, p, first, threads);
        load_groups<4>(source_size, found, v);
        break;
    case 8:
        find<8>(found, a, p, first, threads);
        load_groups<8>(source_size, found, v);
        break;
    }
    convert(a.target_type, a.source_type, v);
    switch (p.width) {
    case 1:
        store_singly(a.target_bytewise, target_size, found, v);
        if (is_complex(a.target_type))
            store_imaginary(a, found);
        break;
    case 2: store_groups<2>(target_size, found, v); break;
    case 4: store_groups<4>(target_size, found, v); break;
    case 8: store_groups<8>(target_size, found, v); break;
    }
}

HAMR_DEVICE void convert_array(const convert_argument &a, unsigned thread, unsigned threads)
{
    const dimension &outermost = a.inside_out[a.dimensions - 1];
    portion p = {a.source, a.target, outermost.source_stride, outermost.target_stride, a.width, a.groups};
    for (unsigned tail = a.tail;; tail = 0) {
        for (unsigned first = thread; first < p.groups; first += threads * groups_of(p.width))
            convert_batch(a, p, first, threads);
        if (!tail)
            return;
        p.source += static_cast<wide>(static_cast<signed_wide>(p.groups) * p.source_stride);
        p.target += static_cast<wide>(static_cast<signed_wide>(p.groups) * p.target_stride);
        p.source_stride = part_of(a.source_type);
        p.target_stride = part_of(a.target_type);
        p.width = 1;
        p.groups = tail;
    }
}

} // namespace hamr
