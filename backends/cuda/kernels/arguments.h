// What the kernels are told. convert_arguments.go mirrors it, and a test compares
// the two.
#pragma once

#include "element_types.h"
#include "memory.h"

namespace hamr {

// Eight of the array, and one inside its elements.
constexpr unsigned most_dimensions = 9;

// Dividing by count is multiplying: see quotient. Strides are in bytes.
struct dimension {
    unsigned count, multiplier, shift, unused;
    signed_wide source_stride, target_stride;
};

// The innermost dimension comes first.
struct convert_argument {
    wide source, target;
    element_type source_type, target_type;
    unsigned count;      // elements, at most 2^30
    unsigned dimensions; // at least 1
    // Not zero: addresses are no multiples of the element's size, or of that of a
    // complex number's part.
    unsigned source_bytewise, target_bytewise;
    dimension inside_out[most_dimensions];
};

// A group is width elements, 2, 4 or 8, and has up to 16 bytes; its address is a
// multiple of its size.
struct line_argument {
    wide source, target;
    element_type source_type, target_type; // neither complex nor opaque
    unsigned width;
    unsigned groups; // at most 2^30
};

// Rows follow one another closely in the source, columns in the target. What lies
// outside of both is walked tile by tile.
struct transpose_argument {
    wide source, target;
    unsigned size;       // bytes of an element: 1, 2, 4, 8 or 16; all addresses are multiples
    unsigned tiles;      // in all, at most 2^30
    unsigned dimensions; // outside a tile, besides those two that count tiles
    unsigned rows, columns, unused;
    signed_wide row_source_stride, row_target_stride;
    signed_wide column_source_stride, column_target_stride;
    // Tiles along the columns, tiles along the rows, then the rest inside out.
    // The first two give no strides.
    dimension inside_out[most_dimensions];
};

struct fill_argument {
    wide target, bytes;
    wide pattern[4]; // the pattern over and over
    unsigned period; // bytes of it that come before it repeats, 1 to 16
    unsigned unused;
};

// As many as the 4096 bytes of a launch's arguments hold.
constexpr unsigned most_runs = 168;

// Bytes that lie side by side, in words of 1 to 16 bytes: the largest that both addresses
// are multiples of. The last word may be cut short.
struct copy_run {
    wide target, source;
    unsigned bytes;
    unsigned first; // how many words the runs before have
};

struct copy_argument {
    unsigned words; // of all runs, at most 2^30
    unsigned count; // of runs, at least 1
    copy_run runs[most_runs];
};

// The numbers of blocks: width is 4 or 8 for signed integers at address, zero for 0, 1, 2 and so on. The extent is
// less than 2^31.
struct block_index {
    wide address;
    unsigned width, extent;
};

constexpr wide all_ones = ~static_cast<wide>(0);
// On top of the position that failed: the index is that of sources.
constexpr wide of_from = static_cast<wide>(1) << 32;

// Of more indices than a block's shared memory has room for.
struct check_argument {
    block_index to, from;
    wide pairs;                 // block_pair[count], which the kernels write
    wide state;                 // a wide: all ones, or the first position that failed
    wide table;                 // wides that are all ones; zero where no block is named twice
    unsigned table_bits, count; // the table has 2^table_bits entries, more than count
};

// Which block becomes which. Nothing is copied from no_block: a later pair writes to the target.
struct alignas(8) block_pair {
    unsigned to, from;
};

constexpr unsigned no_block = ~0u;

struct block_report {
    wide failed; // all ones, or the first position that failed
    signed_wide value;
};

constexpr unsigned threads_side_by_side = 32, words_in_flight = 4;
constexpr unsigned plane_words = 4; // the addresses and then the strides, of the target and of the source
// What the 4096 bytes of a launch's arguments have left.
constexpr unsigned most_block_words = 492;
// As many indices as a block checks in its shared memory: see checked_pairs.
constexpr unsigned most_checked = 2048;

// Words are of 1 to 16 bytes, side by side in blocks. They count through the blocks of a plane, then through planes.
struct blocks_argument {
    wide pairs;           // block_pair[pairs_of_plane.count], or zero: they follow the planes in room
    block_index to, from; // the indices, where a device reads them
    wide state;           // of those that were checked before: see check_argument; else zero
    wide report;          // where the host learns what has failed; zero where it does not
    unsigned repeated;    // not zero: a target may be named twice
    unsigned words;       // of all planes, at most 2^30
    unsigned word_size, planes;
    dimension words_of_block, pairs_of_plane; // no strides
    wide room[most_block_words];
};

// Exact for dividends below 2^31: shift is the bits of count - 1, and multiplier
// makes up for count being less than 2^shift.
HAMR_DEVICE unsigned quotient(unsigned dividend, const dimension &by)
{
    return (high_product(dividend, by.multiplier) + dividend) >> by.shift;
}

} // namespace hamr
