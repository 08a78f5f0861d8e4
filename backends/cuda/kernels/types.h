// From one element type to another, for as many elements as a thread has at once.
// A launch has one pair of types, so all threads take one way.
#pragma once

#include "rules.h"

// A type that a switch does not name does not compile for the host. Devices have one
// case for the rest: named one by one they make more branches of it.
#ifdef HAMR_KERNELS_ON_HOST
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch-enum"
#define HAMR_REST(...) __VA_ARGS__ default:
#else
#define HAMR_REST(...) default:
#endif

namespace hamr {

HAMR_DEVICE bool is_complex(element_type type) { return type == complex_64 || type == complex_128; }

// The bytes of an element, or of a part of a complex number: what is loaded or
// stored at once.
HAMR_DEVICE unsigned part_of(element_type type)
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
    case float_32:
    case complex_64: return 4;
    HAMR_REST(case signed_64: case unsigned_64: case float_64: case complex_128: case opaque_128:) return 8;
    }
}

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
    HAMR_REST(case signed_64: case unsigned_8: case unsigned_16: case unsigned_32: case opaque_128:) return is_signed;
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
    case opaque_128:
        return;
    }
    to_single(from, v);
    if (target == float_16)
        apply<Count, single_to_half>(v);
    if (target == brain_float_16)
        apply<Count, single_to_brain>(v);
}

} // namespace hamr

#undef HAMR_REST
#ifdef HAMR_KERNELS_ON_HOST
#pragma GCC diagnostic pop
#endif
