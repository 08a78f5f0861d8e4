// The rules of conversion, as in gobuffer/internal/elements/doc.go, to the bit.
// Values travel as bits in 64-bit words: integers extended by their sign, float32
// and narrower in the lower half. What becomes of NaN is worked out in integers,
// for processors disagree about it.
#pragma once

#include "arguments.h"

namespace hamr {

constexpr unsigned single_infinity = 0x7f800000u, half_infinity = 0x7c00u;
constexpr wide double_infinity = 0x7ffull << 52;

// Into the words

HAMR_DEVICE wide extend_8(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<signed char>(v))); }
HAMR_DEVICE wide extend_16(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<short>(v))); }
HAMR_DEVICE wide extend_32(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<int>(v))); }

HAMR_DEVICE wide half_to_single(wide v)
{
    constexpr unsigned rebias = 112u << 23, hidden = 113u << 23;
    unsigned half = static_cast<unsigned>(v), sign = (half & 0x8000u) << 16, bits = (half & 0x7fffu) << 13;
    if (bits >= 0x1fu << 23)
        bits += 2 * rebias;
    else if (bits >= 1u << 23)
        bits += rebias;
    else // A subnormal has no hidden bit: lend it one, then take it away.
        bits = bits_of(single_of(bits | hidden) - single_of(hidden));
    return sign | bits;
}

HAMR_DEVICE wide brain_to_single(wide v) { return v << 16; }

// Between them

HAMR_DEVICE wide signed_to_single(wide v) { return bits_of(static_cast<float>(static_cast<signed_wide>(v))); }
HAMR_DEVICE wide unsigned_to_single(wide v) { return bits_of(static_cast<float>(v)); }
HAMR_DEVICE wide signed_to_double(wide v) { return bits_of(static_cast<double>(static_cast<signed_wide>(v))); }
HAMR_DEVICE wide unsigned_to_double(wide v) { return bits_of(static_cast<double>(v)); }

HAMR_DEVICE wide double_to_single(wide v)
{
    if ((v & ~(1ull << 63)) > double_infinity)
        return (v >> 32 & 0x80000000u) | 0x7fc00000u | (v >> 29 & 0x3fffffu);
    return bits_of(static_cast<float>(double_of(v)));
}

HAMR_DEVICE wide single_to_double(wide v)
{
    if ((v & 0x7fffffffu) > single_infinity)
        return (v & 0x80000000u) << 32 | 0x7ff8ull << 48 | (v & 0x3fffffu) << 29;
    return bits_of(static_cast<double>(single_of(static_cast<unsigned>(v))));
}

// Out of them

HAMR_DEVICE wide truth(wide v) { return v != 0; }
HAMR_DEVICE wide truth_of_single(wide v) { return (v & 0x7fffffffu) != 0; }
HAMR_DEVICE wide truth_of_double(wide v) { return v << 1 != 0; }

// A C++ cast of what the integer cannot hold is undefined, so ask before.
template <typename Float> HAMR_DEVICE wide truncate_32(Float v)
{
    constexpr Float limit = static_cast<Float>(2147483648.0);
    return v > -limit && v < limit ? static_cast<wide>(static_cast<signed_wide>(static_cast<int>(v))) : 0x80000000u;
}
template <typename Float> HAMR_DEVICE wide truncate_64(Float v)
{
    constexpr Float limit = static_cast<Float>(9223372036854775808.0);
    return v > -limit && v < limit ? static_cast<wide>(static_cast<signed_wide>(v)) : 1ull << 63;
}
template <typename Float> HAMR_DEVICE wide truncate_unsigned_64(Float v)
{
    constexpr Float limit = static_cast<Float>(9223372036854775808.0);
    return v >= limit ? truncate_64(v - limit) ^ 1ull << 63 : truncate_64(v);
}

HAMR_DEVICE wide single_to_32(wide v) { return truncate_32(single_of(static_cast<unsigned>(v))); }
HAMR_DEVICE wide double_to_32(wide v) { return truncate_32(double_of(v)); }
HAMR_DEVICE wide single_to_64(wide v) { return truncate_64(single_of(static_cast<unsigned>(v))); }
HAMR_DEVICE wide double_to_64(wide v) { return truncate_64(double_of(v)); }
HAMR_DEVICE wide single_to_unsigned_64(wide v) { return truncate_unsigned_64(single_of(static_cast<unsigned>(v))); }
HAMR_DEVICE wide double_to_unsigned_64(wide v) { return truncate_unsigned_64(double_of(v)); }

// A payload lost to narrowing becomes 1, for without any it would be infinity.
HAMR_DEVICE unsigned half_nan(unsigned payload) { return half_infinity | (payload ? payload : 1u); }

HAMR_DEVICE wide single_to_half(wide v)
{
    constexpr unsigned smallest_normal = 113u << 23, a_half = 126u << 23;
    unsigned bits = static_cast<unsigned>(v) & 0x7fffffffu, sign = static_cast<unsigned>(v) >> 16 & 0x8000u;
    unsigned above = bits - smallest_normal, half;
    if (above < 30u << 23) // What rounds over carries into the exponent, up to infinity.
        half = (above + (1u << 23) + 0xfffu + (above >> 13 & 1u)) >> 13;
    else if (bits > single_infinity)
        half = half_nan(bits >> 13 & 0x3ffu);
    else if (bits >= 143u << 23)
        half = half_infinity;
    else // At 0.5 a float32 counts in steps of the smallest float16: the addition rounds.
        half = bits_of(single_of(bits) + 0.5f) - a_half;
    return sign | half;
}

HAMR_DEVICE wide double_to_half(wide v)
{
    constexpr wide smallest_normal = 1009ull << 52;
    constexpr double counts_in_smallest = 268435456.0;
    wide bits = v & ~(1ull << 63), above = bits - smallest_normal;
    unsigned sign = static_cast<unsigned>(v >> 48) & 0x8000u, half;
    if (above < 30ull << 52)
        half = static_cast<unsigned>((above + (1ull << 52) + (1ull << 41) - 1 + (above >> 42 & 1)) >> 42);
    else if (bits > double_infinity)
        half = half_nan(static_cast<unsigned>(bits >> 42) & 0x3ffu);
    else if (bits >= 1039ull << 52)
        half = half_infinity;
    else
        half = static_cast<unsigned>(bits_of(double_of(bits) + counts_in_smallest) - bits_of(counts_in_smallest));
    return sign | half;
}

HAMR_DEVICE wide single_to_brain(wide v)
{
    unsigned bits = static_cast<unsigned>(v);
    if ((bits & 0x7fffffffu) > single_infinity)
        return (bits >> 16 & 0x8000u) | 0x7fc0u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

// Many at once: a launch has one pair of types, so all threads take one way.

template <unsigned Count, wide (*Rule)(wide)> HAMR_DEVICE void apply(wide (&v)[Count])
{
    HAMR_UNROLL
    for (unsigned i = 0; i < Count; i++)
        v[i] = Rule(v[i]);
}

enum family : unsigned { is_signed, is_unsigned, is_single, is_double };

// Of the complex types come their parts' bits, one or-ed to the other.
template <unsigned Count> HAMR_DEVICE family interpret(element_type type, wide (&v)[Count])
{
    switch (type) {
    case boolean: apply<Count, truth>(v); return is_signed;
    case signed_8: apply<Count, extend_8>(v); return is_signed;
    case signed_16: apply<Count, extend_16>(v); return is_signed;
    case signed_32: apply<Count, extend_32>(v); return is_signed;
    case unsigned_64: return is_unsigned;
    case float_16: apply<Count, half_to_single>(v); return is_single;
    case brain_float_16: apply<Count, brain_to_single>(v); return is_single;
    case float_32: return is_single;
    case float_64: return is_double;
    case complex_64: return is_single;
    case complex_128: return is_double;
    default: return is_signed;
    }
}

template <unsigned Count> HAMR_DEVICE void to_single(family from, wide (&v)[Count])
{
    switch (from) {
    case is_signed: return apply<Count, signed_to_single>(v);
    case is_unsigned: return apply<Count, unsigned_to_single>(v);
    case is_single: return;
    case is_double: return apply<Count, double_to_single>(v);
    }
}

template <unsigned Count> HAMR_DEVICE void to_double(family from, wide (&v)[Count])
{
    switch (from) {
    case is_signed: return apply<Count, signed_to_double>(v);
    case is_unsigned: return apply<Count, unsigned_to_double>(v);
    case is_single: return apply<Count, single_to_double>(v);
    case is_double: return;
    }
}

template <unsigned Count, wide (*FromSingle)(wide), wide (*FromDouble)(wide)>
HAMR_DEVICE void to_integer(family from, wide (&v)[Count])
{
    if (from == is_single)
        apply<Count, FromSingle>(v);
    if (from == is_double)
        apply<Count, FromDouble>(v);
}

// Leaves in the lower bytes what the target, or the real part of it, holds.
template <unsigned Count> HAMR_DEVICE void convert(element_type target, element_type source, wide (&v)[Count])
{
    if (target == source)
        return;
    family from = interpret(source, v);
    switch (target) {
    case boolean:
        to_integer<Count, truth_of_single, truth_of_double>(from, v);
        apply<Count, truth>(v);
        return;
    case signed_8:
    case signed_16:
    case signed_32:
    case unsigned_8:
    case unsigned_16:
        return to_integer<Count, single_to_32, double_to_32>(from, v);
    case signed_64:
    case unsigned_32:
        return to_integer<Count, single_to_64, double_to_64>(from, v);
    case unsigned_64:
        return to_integer<Count, single_to_unsigned_64, double_to_unsigned_64>(from, v);
    case float_16:
        if (from == is_double) // Once, not through float32.
            return apply<Count, double_to_half>(v);
        break;
    case brain_float_16:
    case float_32:
    case complex_64:
        break;
    case float_64:
    case complex_128:
        return to_double(from, v);
    }
    to_single(from, v);
    if (target == float_16)
        apply<Count, single_to_half>(v);
    if (target == brain_float_16)
        apply<Count, single_to_brain>(v);
}

} // namespace hamr
