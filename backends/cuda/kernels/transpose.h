// hamr_transpose: an array copied into another order of its dimensions, in tiles
// that let both sides go along their fast dimension.
#pragma once

#include "arguments.h"

namespace hamr {

// How many threads share a tile.
constexpr unsigned tile_threads = 256;
constexpr unsigned most_tile_bytes = 32 * 33 * 16;

// Small elements get more of them, to have more bytes under way. A line of a
// tile has an odd number of shared memory's banks, so that going across lines
// meets each of them once.
template <unsigned Size> struct tile_shape {
    static constexpr unsigned side = Size <= 4 ? 64 : 32;
    static constexpr unsigned pitch = side + (Size < 4 ? 4 / Size : 1);
    static constexpr unsigned lines = tile_threads / side; // that a block does at a time
    static constexpr unsigned turns = side / lines;
    static_assert(side * pitch * Size <= most_tile_bytes, "a tile has to fit");
};

// The tile's first element on both sides, and how much of it is in the array.
struct tile_place {
    wide source, target;
    unsigned rows, columns;
};

HAMR_DEVICE tile_place find_tile(const transpose_argument &a, unsigned tile, unsigned side)
{
    const dimension &across = a.inside_out[0], &down = a.inside_out[1];
    unsigned rest = quotient(tile, across), outside = quotient(rest, down);
    unsigned column = (tile - rest * across.count) * side, row = (rest - outside * down.count) * side;
    tile_place place = {a.source, a.target, a.rows - row, a.columns - column};
    place.source += static_cast<wide>(row * a.row_source_stride + column * a.column_source_stride);
    place.target += static_cast<wide>(row * a.row_target_stride + column * a.column_target_stride);
    for (unsigned axis = 2; axis < 2 + a.dimensions; axis++) {
        const dimension &d = a.inside_out[axis];
        rest = outside;
        outside = quotient(rest, d);
        signed_wide inside = rest - outside * d.count;
        place.source += static_cast<wide>(inside * d.source_stride);
        place.target += static_cast<wide>(inside * d.target_stride);
    }
    return place;
}

template <unsigned Size>
HAMR_DEVICE void load_tile(const transpose_argument &a, const tile_place &place, unsigned thread, void *shared)
{
    typedef typename word_of<Size>::type word;
    typedef tile_shape<Size> shape;
    unsigned row = thread % shape::side, column = thread / shape::side;
    wide address = place.source + static_cast<wide>(row * a.row_source_stride + column * a.column_source_stride);
    unsigned columns = row < place.rows ? place.columns : 0;
    word held[shape::turns]; // apart from what follows, so that all are under way together
    HAMR_UNROLL
    for (unsigned turn = 0; turn < shape::turns; turn++) {
        if (column + turn * shape::lines < columns)
            held[turn] = *at<word>(address);
        address += static_cast<wide>(shape::lines * a.column_source_stride);
    }
    word *tile = static_cast<word *>(shared) + column * shape::pitch + row;
    HAMR_UNROLL
    for (unsigned turn = 0; turn < shape::turns; turn++)
        if (column + turn * shape::lines < columns)
            tile[turn * shape::lines * shape::pitch] = held[turn];
}

template <unsigned Size>
HAMR_DEVICE void store_tile(const transpose_argument &a, const tile_place &place, unsigned thread, const void *shared)
{
    typedef typename word_of<Size>::type word;
    typedef tile_shape<Size> shape;
    unsigned column = thread % shape::side, row = thread / shape::side;
    wide address = place.target + static_cast<wide>(row * a.row_target_stride + column * a.column_target_stride);
    unsigned rows = column < place.columns ? place.rows : 0;
    const word *tile = static_cast<const word *>(shared) + column * shape::pitch + row;
    HAMR_UNROLL
    for (unsigned turn = 0; turn < shape::turns; turn++) {
        if (row + turn * shape::lines < rows)
            *at<word>(address) = tile[turn * shape::lines];
        address += static_cast<wide>(shape::lines * a.row_target_stride);
    }
}

#ifdef HAMR_KERNELS_ON_HOST
// A block's first thread does what all of them do between two barriers.
template <unsigned Size>
inline void transpose_tiles(const transpose_argument &a, unsigned thread, unsigned threads, void *shared)
{
    if (thread % tile_threads != 0)
        return;
    for (unsigned tile = thread / tile_threads; tile < a.tiles; tile += threads / tile_threads) {
        tile_place place = find_tile(a, tile, tile_shape<Size>::side);
        for (unsigned of_block = 0; of_block < tile_threads; of_block++)
            load_tile<Size>(a, place, of_block, shared);
        for (unsigned of_block = 0; of_block < tile_threads; of_block++)
            store_tile<Size>(a, place, of_block, shared);
    }
}
#else
template <unsigned Size>
HAMR_DEVICE void transpose_tiles(const transpose_argument &a, unsigned thread, unsigned threads, void *shared)
{
    for (unsigned tile = thread / tile_threads; tile < a.tiles; tile += threads / tile_threads) {
        tile_place place = find_tile(a, tile, tile_shape<Size>::side);
        load_tile<Size>(a, place, thread % tile_threads, shared);
        __syncthreads();
        store_tile<Size>(a, place, thread % tile_threads, shared);
        __syncthreads();
    }
}
#endif

HAMR_DEVICE void transpose_array(const transpose_argument &a, unsigned thread, unsigned threads)
{
    alignas(16) HAMR_SHARED unsigned char shared[most_tile_bytes];
    switch (a.size) {
    case 1: return transpose_tiles<1>(a, thread, threads, shared);
    case 2: return transpose_tiles<2>(a, thread, threads, shared);
    case 4: return transpose_tiles<4>(a, thread, threads, shared);
    case 8: return transpose_tiles<8>(a, thread, threads, shared);
    case 16: return transpose_tiles<16>(a, thread, threads, shared);
    }
}

} // namespace hamr
