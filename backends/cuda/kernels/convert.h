// hamr_convert: an array of any layout converted, rearranged, or both.
#pragma once

#include "types.h"

namespace hamr {

// How many elements a thread has under way.
constexpr unsigned strided_batch = 4;

// Where a thread's elements are. Absent ones lie beyond the end.
struct places {
    wide source[strided_batch], target[strided_batch];
    bool present[strided_batch];
};

HAMR_DEVICE void find(places &found, const convert_argument &a, unsigned first, unsigned threads)
{
    unsigned rest[strided_batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++) {
        rest[i] = first + i * threads;
        found.present[i] = rest[i] < a.count;
        found.source[i] = a.source;
        found.target[i] = a.target;
    }
    for (unsigned axis = 0; axis + 1 < a.dimensions; axis++) {
        const dimension &d = a.inside_out[axis];
        HAMR_UNROLL
        for (unsigned i = 0; i < strided_batch; i++) {
            unsigned outside = quotient(rest[i], d);
            signed_wide inside = rest[i] - outside * d.count;
            found.source[i] += static_cast<wide>(inside * d.source_stride);
            found.target[i] += static_cast<wide>(inside * d.target_stride);
            rest[i] = outside;
        }
    }
    const dimension &outermost = a.inside_out[a.dimensions - 1];
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++) {
        found.source[i] += static_cast<wide>(rest[i] * outermost.source_stride);
        found.target[i] += static_cast<wide>(rest[i] * outermost.target_stride);
    }
}

template <unsigned Size> HAMR_DEVICE void load(const places &found, wide (&v)[strided_batch])
{
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++)
        if (found.present[i])
            v[i] = *at<typename word_of<Size>::type>(found.source[i]);
}

template <unsigned Size> HAMR_DEVICE void store(const places &found, const wide (&v)[strided_batch])
{
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++)
        if (found.present[i])
            *at<typename word_of<Size>::type>(found.target[i]) = static_cast<typename word_of<Size>::type>(v[i]);
}

// v is zero before.
HAMR_DEVICE void load_any(bool bytewise, unsigned size, const places &found, wide (&v)[strided_batch])
{
    if (!bytewise) {
        switch (size) {
        case 1: return load<1>(found, v);
        case 2: return load<2>(found, v);
        case 4: return load<4>(found, v);
        case 8: return load<8>(found, v);
        }
    }
    for (unsigned byte = 0; byte < size; byte++) {
        HAMR_UNROLL
        for (unsigned i = 0; i < strided_batch; i++)
            if (found.present[i])
                v[i] |= static_cast<wide>(*at<unsigned char>(found.source[i] + byte)) << 8 * byte;
    }
}

HAMR_DEVICE void store_any(bool bytewise, unsigned size, const places &found, const wide (&v)[strided_batch])
{
    if (!bytewise) {
        switch (size) {
        case 1: return store<1>(found, v);
        case 2: return store<2>(found, v);
        case 4: return store<4>(found, v);
        case 8: return store<8>(found, v);
        }
    }
    for (unsigned byte = 0; byte < size; byte++) {
        HAMR_UNROLL
        for (unsigned i = 0; i < strided_batch; i++)
            if (found.present[i])
                *at<unsigned char>(found.target[i] + byte) = static_cast<unsigned char>(v[i] >> 8 * byte);
    }
}

HAMR_DEVICE void load_imaginary_too(const convert_argument &a, places &found, wide (&v)[strided_batch])
{
    wide part[strided_batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++) {
        part[i] = 0;
        found.source[i] += part_of(a.source_type);
    }
    load_any(a.source_bytewise, part_of(a.source_type), found, part);
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++)
        v[i] |= part[i];
}

HAMR_DEVICE void store_no_imaginary(const convert_argument &a, places &found)
{
    wide zeros[strided_batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++) {
        zeros[i] = 0;
        found.target[i] += part_of(a.target_type);
    }
    store_any(a.target_bytewise, part_of(a.target_type), found, zeros);
}

HAMR_DEVICE void copy_pairs(const places &found)
{
    double_wide v[strided_batch];
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++)
        if (found.present[i])
            v[i] = *at<double_wide>(found.source[i]);
    HAMR_UNROLL
    for (unsigned i = 0; i < strided_batch; i++)
        if (found.present[i])
            *at<double_wide>(found.target[i]) = v[i];
}

HAMR_DEVICE void convert_array(const convert_argument &a, unsigned thread, unsigned threads)
{
    for (unsigned first = thread; first < a.count; first += threads * strided_batch) {
        places found;
        find(found, a, first, threads);
        if (a.source_type == opaque_128) {
            copy_pairs(found);
            continue;
        }
        wide v[strided_batch];
        HAMR_UNROLL
        for (unsigned i = 0; i < strided_batch; i++)
            v[i] = 0;
        load_any(a.source_bytewise, part_of(a.source_type), found, v);
        if (is_complex(a.source_type))
            load_imaginary_too(a, found, v);
        convert(a.target_type, a.source_type, v);
        store_any(a.target_bytewise, part_of(a.target_type), found, v);
        if (is_complex(a.target_type))
            store_no_imaginary(a, found);
    }
}

} // namespace hamr
