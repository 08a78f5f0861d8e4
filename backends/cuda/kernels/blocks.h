// hamr_copy_blocks and hamr_copy_indexed: equally large blocks of several arrays, by pairs of numbers or by indices
// that the device checks. hamr_check_blocks and hamr_settle_blocks make pairs of many indices.
#pragma once

#include "arguments.h"
#include "atomics.h"

namespace hamr {

HAMR_DEVICE signed_wide index_at(const block_index &index, unsigned k)
{
    if (index.width == 8)
        return *at<signed_wide>(index.address + 8 * static_cast<wide>(k));
    if (index.width == 4)
        return static_cast<int>(*at<unsigned>(index.address + 4 * static_cast<wide>(k)));
    return k;
}

HAMR_DEVICE bool in_range(signed_wide value, unsigned extent)
{
    return value < static_cast<signed_wide>(extent) && value >= -static_cast<signed_wide>(extent);
}

HAMR_DEVICE unsigned from_start(signed_wide value, unsigned extent)
{
    return static_cast<unsigned>(value < 0 ? value + extent : value);
}

// Reads what position k names at both ends. Where that is out of range, the result says at which end, as block_report's
// failed does; else it is all_ones.
HAMR_DEVICE wide read_pair(const block_index &to, const block_index &from, unsigned k, block_pair &pair)
{
    signed_wide target = index_at(to, k), source = index_at(from, k);
    bool right = in_range(target, to.extent);
    pair.to = from_start(target, to.extent);
    pair.from = from_start(source, from.extent);
    return right && in_range(source, from.extent) ? all_ones : (right ? of_from : 0) | k;
}

// A hash table of blocks has 2 to the power of bits places.
HAMR_DEVICE unsigned place_in_table(unsigned block, unsigned bits) { return (block * 2654435769u) >> (32 - bits); }
HAMR_DEVICE unsigned next_in_table(unsigned place, unsigned bits) { return (place + 1) & ((1u << bits) - 1); }

// Entries are a block and the last position that names it.
HAMR_DEVICE void note_last(const check_argument &a, unsigned block, unsigned k)
{
    wide mine = static_cast<wide>(block) << 32 | k;
    for (unsigned place = place_in_table(block, a.table_bits);; place = next_in_table(place, a.table_bits)) {
        wide *entry = at<wide>(a.table + 8 * static_cast<wide>(place));
        wide there = atomic_take(entry, all_ones, mine);
        if (there == all_ones)
            return;
        if (there >> 32 == block) {
            atomic_most(entry, mine);
            return;
        }
    }
}

// What failed first is in the state then, and the pairs are of no use.
HAMR_DEVICE void check_indices(const check_argument &a, unsigned thread, unsigned threads)
{
    for (unsigned k = thread; k < a.count; k += threads) {
        block_pair pair;
        wide failed = read_pair(a.to, a.from, k, pair);
        if (failed != all_ones) {
            atomic_least(at<wide>(a.state), failed);
            continue;
        }
        *at<block_pair>(a.pairs + 8 * static_cast<wide>(k)) = pair;
        if (a.table)
            note_last(a, pair.to, k);
    }
}

// Leaves of those that name one target the last. It is a launch of its own, as all must have been noted before.
HAMR_DEVICE void settle_blocks(const check_argument &a, unsigned thread, unsigned threads)
{
    if (*at<wide>(a.state) != all_ones)
        return;
    for (unsigned k = thread; k < a.count; k += threads) {
        block_pair *pair = at<block_pair>(a.pairs + 8 * static_cast<wide>(k));
        unsigned block = pair->to, place = place_in_table(block, a.table_bits);
        wide entry = *at<wide>(a.table + 8 * static_cast<wide>(place));
        while (entry >> 32 != block) {
            place = next_in_table(place, a.table_bits);
            entry = *at<wide>(a.table + 8 * static_cast<wide>(place));
        }
        if (static_cast<unsigned>(entry) != k)
            pair->from = no_block;
    }
}

// The pairs of a launch, in the memory that a block's threads share. Each block checks the indices itself, as it can
// wait for no other one.
struct checked_pairs {
    wide failed; // as block_report's
    unsigned to[most_checked], from[most_checked];
    unsigned last[2 * most_checked]; // a hash table of the last positions that name a target
};

constexpr unsigned shared_table_bits = 12;
static_assert(2 * most_checked == 1u << shared_table_bits, "a place has as many bits as the table needs");

HAMR_DEVICE void note_last(checked_pairs &s, unsigned k)
{
    unsigned block = s.to[k];
    unsigned place = place_in_table(block, shared_table_bits), there = atomic_take(&s.last[place], no_block, k);
    while (there != no_block && s.to[there] != block) {
        place = next_in_table(place, shared_table_bits);
        there = atomic_take(&s.last[place], no_block, k);
    }
    if (there != no_block)
        atomic_most(&s.last[place], k);
}

HAMR_DEVICE void drop_overwritten(checked_pairs &s, unsigned k)
{
    unsigned block = s.to[k], place = place_in_table(block, shared_table_bits), last = s.last[place];
    while (s.to[last] != block) {
        place = next_in_table(place, shared_table_bits);
        last = s.last[place];
    }
    if (last != k)
        s.from[k] = no_block;
}

// Leaves of those that name one target the last.
HAMR_DEVICE void keep_last(checked_pairs &s, unsigned count, unsigned share, unsigned step)
{
    for (unsigned k = share; k < count; k += step)
        note_last(s, k);
    wait_for_block();
    for (unsigned k = share; k < count; k += step)
        drop_overwritten(s, k);
    wait_for_block();
}

HAMR_DEVICE void report_failure(const blocks_argument &a, wide failed)
{
    block_report *report = at<block_report>(a.report);
    unsigned position = static_cast<unsigned>(failed);
    report->value = failed & of_from ? index_at(a.from, position) : index_at(a.to, position);
    report->failed = failed;
}

// Reports whether no index is out of range. If so, the pairs are in s.
HAMR_DEVICE bool check_blocks(const blocks_argument &a, checked_pairs &s, unsigned thread)
{
    unsigned share = first_share(thread), step = shares();
    if (share == 0)
        s.failed = all_ones;
    wait_for_block();
    unsigned count = a.pairs_of_plane.count;
    for (unsigned k = share; k < count; k += step) {
        block_pair pair;
        wide failed = read_pair(a.to, a.from, k, pair);
        if (failed != all_ones)
            atomic_least(&s.failed, failed);
        s.to[k] = pair.to;
        s.from[k] = pair.from;
    }
    for (unsigned k = share; a.repeated && k < 2 * most_checked; k += step)
        s.last[k] = no_block;
    wait_for_block();
    if (s.failed != all_ones) {
        if (thread == 0 && a.report)
            report_failure(a, s.failed);
        return false;
    }
    if (a.repeated)
        keep_last(s, count, share, step);
    return true;
}

enum class pairs_are { in_argument, in_memory, shared };

// Where the pairs are is known when this is compiled: NVRTC 12.0 does not come to an end where one of two address
// spaces is chosen for each pair.
template <pairs_are Where> HAMR_DEVICE block_pair pair_at(const blocks_argument &a, const checked_pairs *s, unsigned k)
{
    if (Where == pairs_are::in_memory)
        return *at<block_pair>(a.pairs + 8 * static_cast<wide>(k));
    block_pair pair;
    if (Where == pairs_are::shared) {
        pair.to = s->to[k];
        pair.from = s->from[k];
        return pair;
    }
    wide both = a.room[plane_words * a.planes + k];
    pair.to = static_cast<unsigned>(both);
    pair.from = static_cast<unsigned>(both >> 32);
    return pair;
}

// A thread asks for all of its pairs before it uses one, and for all of its words before it writes one, as a word
// takes long to come over the bus. Threads side by side have words side by side.
template <unsigned Bytes, pairs_are Where>
HAMR_DEVICE void copy_words(const blocks_argument &a, const checked_pairs *s, unsigned thread, unsigned threads)
{
    typedef typename word_of<Bytes>::type word_type;
    unsigned first = thread / threads_side_by_side * (threads_side_by_side * words_in_flight) +
                     thread % threads_side_by_side;
    for (unsigned begin = first; begin < a.words; begin += threads * words_in_flight) {
        unsigned rows[words_in_flight], planes[words_in_flight];
        block_pair pairs[words_in_flight];
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++) {
            unsigned word = begin + i * threads_side_by_side;
            rows[i] = quotient(word < a.words ? word : begin, a.words_of_block);
            planes[i] = quotient(rows[i], a.pairs_of_plane);
            pairs[i] = pair_at<Where>(a, s, rows[i] - planes[i] * a.pairs_of_plane.count);
        }
        wide targets[words_in_flight];
        word_type words[words_in_flight];
        bool copied[words_in_flight];
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++) {
            unsigned word = begin + i * threads_side_by_side;
            wide offset = static_cast<wide>(word - rows[i] * a.words_of_block.count) * Bytes;
            const wide *of = a.room + plane_words * planes[i];
            targets[i] = of[0] + of[2] * pairs[i].to + offset;
            copied[i] = word < a.words && pairs[i].from != no_block;
            if (copied[i])
                words[i] = *at<word_type>(of[1] + of[3] * pairs[i].from + offset);
        }
        HAMR_UNROLL
        for (unsigned i = 0; i < words_in_flight; i++)
            if (copied[i])
                *at<word_type>(targets[i]) = words[i];
    }
}

template <pairs_are Where>
HAMR_DEVICE void copy_by_words(const blocks_argument &a, const checked_pairs *s, unsigned thread, unsigned threads)
{
    switch (a.word_size) {
    case 16: copy_words<16, Where>(a, s, thread, threads); break;
    case 8: copy_words<8, Where>(a, s, thread, threads); break;
    case 4: copy_words<4, Where>(a, s, thread, threads); break;
    case 2: copy_words<2, Where>(a, s, thread, threads); break;
    default: copy_words<1, Where>(a, s, thread, threads);
    }
}

HAMR_DEVICE void copy_blocks(const blocks_argument &a, unsigned thread, unsigned threads)
{
    if (a.state) {
        wide failed = *at<wide>(a.state);
        if (failed != all_ones) {
            if (thread == 0)
                report_failure(a, failed);
            return;
        }
    }
    if (a.pairs)
        copy_by_words<pairs_are::in_memory>(a, nullptr, thread, threads);
    else
        copy_by_words<pairs_are::in_argument>(a, nullptr, thread, threads);
}

HAMR_DEVICE void copy_indexed(const blocks_argument &a, unsigned thread, unsigned threads)
{
    HAMR_SHARED_BY_ALL checked_pairs pairs;
    if (check_blocks(a, pairs, thread))
        copy_by_words<pairs_are::shared>(a, &pairs, thread, threads);
}

} // namespace hamr
