// The rules of conversion, as in gobuffer/internal/elements/doc.go, to the bit.
// Values travel as bits in 64-bit words: integers extended by their sign, float32
// and narrower in the lower half. What becomes of NaN is worked out in integers,
// for processors disagree about it. Where a device has one instruction for what takes
// the host many, it serves for all but NaN.
#pragma once

#include "arguments.h"

namespace hamr {

constexpr unsigned single_infinity = 0x7f800000u, half_infinity = 0x7c00u;
constexpr wide double_infinity = 0x7ffull << 52;

// Into the words

#ifdef HAMR_WITHOUT_PTX
HAMR_DEVICE unsigned exact_single_of_half(unsigned half)
{
    constexpr unsigned rebias = 112u << 23, hidden = 113u << 23;
    unsigned bits = half << 13;
    if (half >= half_infinity)
        return bits + 2 * rebias;
    if (bits >= 1u << 23)
        return bits + rebias;
    // A subnormal has no hidden bit: lend it one, then take it away.
    return bits_of(single_of(bits | hidden) - single_of(hidden));
}
#else
HAMR_DEVICE unsigned exact_single_of_half(unsigned half)
{
    float single;
    asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(static_cast<unsigned short>(half)));
    return bits_of(single);
}
#endif

HAMR_DEVICE wide extend_8(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<signed char>(v))); }
HAMR_DEVICE wide extend_16(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<short>(v))); }
HAMR_DEVICE wide extend_32(wide v) { return static_cast<wide>(static_cast<signed_wide>(static_cast<int>(v))); }

// NaN keeps its payload.
HAMR_DEVICE wide half_to_single(wide v)
{
    unsigned half = static_cast<unsigned>(v) & 0x7fffu, sign = (static_cast<unsigned>(v) & 0x8000u) << 16;
    if (half > half_infinity)
        return sign | single_infinity | half << 13;
    return sign | exact_single_of_half(half);
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

#ifdef HAMR_WITHOUT_PTX
HAMR_DEVICE unsigned half_nearest_to_single(unsigned bits)
{
    constexpr unsigned smallest_normal = 113u << 23, a_half = 126u << 23;
    unsigned above = bits - smallest_normal;
    if (above < 30u << 23) // What rounds over carries into the exponent, up to infinity.
        return (above + (1u << 23) + 0xfffu + (above >> 13 & 1u)) >> 13;
    if (bits >= 143u << 23)
        return half_infinity;
    // At 0.5 a float32 counts in steps of the smallest float16: the addition rounds.
    return bits_of(single_of(bits) + 0.5f) - a_half;
}
#else
HAMR_DEVICE unsigned half_nearest_to_single(unsigned bits)
{
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(single_of(bits)));
    return half;
}
#endif

HAMR_DEVICE wide single_to_half(wide v)
{
    unsigned bits = static_cast<unsigned>(v) & 0x7fffffffu, sign = static_cast<unsigned>(v) >> 16 & 0x8000u;
    if (bits > single_infinity)
        return sign | half_nan(bits >> 13 & 0x3ffu);
    return sign | half_nearest_to_single(bits);
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

} // namespace hamr
