/// The element type in hamr of a C++ type, and how elements of other types are kept.
#ifndef HAMR_CPP_ELEMENT_HPP
#define HAMR_CPP_ELEMENT_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#if defined(__has_include)
#if __has_include(<stdfloat>) && __cplusplus >= 202302L
#include <stdfloat>
#endif
#endif

#include "hamr/types.h"
#include "namespace.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

constexpr std::int32_t integer_type(std::size_t size, bool is_signed) {
    switch (size) {
    case 1: return is_signed ? HAMR_INT8 : HAMR_UINT8;
    case 2: return is_signed ? HAMR_INT16 : HAMR_UINT16;
    case 4: return is_signed ? HAMR_INT32 : HAMR_UINT32;
    case 8: return is_signed ? HAMR_INT64 : HAMR_UINT64;
    default: return HAMR_INVALID;
    }
}

constexpr std::int32_t float_type(std::size_t size, int digits) {
    if (size == 4 && digits == 24) return HAMR_FLOAT32;
    return size == 8 && digits == 53 ? HAMR_FLOAT64 : HAMR_INVALID;
}

} // namespace detail

/// value is the hamr_element_type of T, or HAMR_INVALID. Specialise it for a type whose bytes are those of one
/// of hamr's types, such as a library's half:
///
///     template <> struct hamr::element_type<half> : std::integral_constant<std::int32_t, HAMR_FLOAT16> {};
template <typename T, typename = void>
struct element_type : std::integral_constant<std::int32_t, HAMR_INVALID> {};

template <typename T>
struct element_type<T, std::enable_if_t<std::is_integral_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>>>
    : std::integral_constant<std::int32_t, detail::integer_type(sizeof(T), std::is_signed_v<T>)> {};

template <>
struct element_type<bool> : std::integral_constant<std::int32_t, HAMR_BOOL> {
    static_assert(sizeof(bool) == 1, "hamr's bool has one byte");
};

template <>
struct element_type<float> : std::integral_constant<std::int32_t, detail::float_type(sizeof(float), __FLT_MANT_DIG__)> {
};

template <>
struct element_type<double>
    : std::integral_constant<std::int32_t, detail::float_type(sizeof(double), __DBL_MANT_DIG__)> {};

template <>
struct element_type<std::complex<float>> : std::integral_constant<std::int32_t, HAMR_COMPLEX64> {};

template <>
struct element_type<std::complex<double>> : std::integral_constant<std::int32_t, HAMR_COMPLEX128> {};

template <>
struct element_type<std::byte> : std::integral_constant<std::int32_t, HAMR_UINT8> {};

#ifdef __STDCPP_FLOAT16_T__
template <>
struct element_type<std::float16_t> : std::integral_constant<std::int32_t, HAMR_FLOAT16> {};
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <>
struct element_type<std::bfloat16_t> : std::integral_constant<std::int32_t, HAMR_BFLOAT16> {};
#endif

namespace detail {

constexpr std::size_t element_size(std::int32_t element) {
    switch (element) {
#define HAMR_SIZE(type, number, name, size, ...) \
    case type: return size;
        HAMR_ELEMENT_TYPES(HAMR_SIZE)
#undef HAMR_SIZE
    default: return 0;
    }
}

/// Elements that hamr knows: it converts and prints them, everywhere.
template <typename T>
inline constexpr bool is_number = element_type<T>::value != HAMR_INVALID;

template <typename T, typename = void>
struct is_plain : std::false_type {}; // of a class that is not complete, as within its own definition
template <typename T>
struct is_plain<T, std::void_t<decltype(sizeof(T))>> : std::is_trivially_copyable<T> {};

/// Elements that must be constructed and destroyed. They live in host memory.
template <typename T>
inline constexpr bool is_object = !is_number<T> && !is_plain<T>::value;

/// How many elements of the core one T is. A T that is neither a number nor an object is sizeof(T) bytes.
template <typename T>
inline constexpr std::size_t scale = is_number<T> ? 1 : sizeof(T);

/// Whether the core copies elements from one type to the other.
template <typename T, typename U>
inline constexpr bool is_core_copy = (is_number<T> && is_number<U>) || (std::is_same_v<T, U> && !is_object<T>);

/// The hamr_element_type of T, bytes for plain structs. Objects have none.
template <typename T>
constexpr std::int32_t element() {
    static_assert(!std::is_const_v<T> && !std::is_volatile_v<T>,
                  "hamr: elements are neither const nor volatile: hand on a const buffer<T> instead");
    static_assert(
        !is_number<T> || sizeof(T) == element_size(element_type<T>::value),
        "hamr: sizeof(T) is not the size of the type that hamr::element_type<T> names: leave the declaration out, "
        "and T is kept as it is");
    static_assert(
        !is_object<T>,
        "hamr: elements with constructors or destructors live in C++ alone: accepted are numbers and plain structs");
    return is_number<T> ? static_cast<std::int32_t>(element_type<T>::value) : static_cast<std::int32_t>(HAMR_UINT8);
}

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
