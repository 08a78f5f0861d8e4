/// Functions that nanobind binds take and return hamr::buffer<T>: objects of Python's that are hamr.Buffer, or
/// whatever hamr.buffer() accepts, without a copy.
///
///     #include <hamr/nanobind.h>
///
///     void scale(hamr::buffer<float> &field, float factor);
///     hamr::buffer<float> made(std::size_t n);
///
/// A parameter by value or by const reference may be read-only memory, by reference it may not: that is a
/// ValueError. Elements of another type are a TypeError: nothing is converted.
#ifndef HAMR_NANOBIND_H
#define HAMR_NANOBIND_H

#include <cstdint>
#include <utility>

#include <nanobind/nanobind.h>

#include "hamr.hpp"
#include "hamr/cpp/python.hpp"

namespace hamr {
namespace detail {

template <std::int32_t element>
struct nanobind_name;
#define HAMR_NAME(type, number, text, ...)                                                                      \
    template <>                                                                                                 \
    struct nanobind_name<number> {                                                                              \
        static constexpr auto name = nanobind::detail::const_name("typing.Annotated[hamr.Buffer, \"" text "\"]"); \
    };
HAMR_ELEMENT_TYPES(HAMR_NAME)
#undef HAMR_NAME

} // namespace detail
} // namespace hamr

namespace nanobind {
namespace detail {

template <typename T>
class type_caster<hamr::buffer<T>> {
public:
    using Value = hamr::buffer<T>;
    static constexpr auto Name = hamr::detail::nanobind_name<hamr::detail::element<T>()>::name;
    template <typename P>
    using Cast = hamr::detail::parameter<P, Value>;

    /// Flags have 8 bits or 32, as the version of nanobind is.
    template <typename Flags>
    bool from_python(handle object, Flags flags, cleanup_list *) noexcept {
        return m_argument.load(object.ptr(), (flags & static_cast<Flags>(cast_flags::convert)) != 0);
    }

    template <typename P>
    bool can_cast() const noexcept {
        return m_argument.is_there(hamr::detail::is_written<P>);
    }

    explicit operator Value &() { return m_argument.template get<python_error>(true); }
    explicit operator const Value &() { return m_argument.template get<python_error>(false); }
    explicit operator Value &&() { return std::move(m_argument.template get<python_error>(false)); }

    static handle from_cpp(const Value &value, rv_policy, cleanup_list *) noexcept { return hamr::to_python(value); }

private:
    hamr::detail::argument<T> m_argument;
};

} // namespace detail
} // namespace nanobind

#endif
