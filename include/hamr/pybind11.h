/// Functions that pybind11 binds take and return hamr::buffer<T>: objects of Python's that are hamr.Buffer, or
/// whatever hamr.buffer() accepts, without a copy.
///
///     #include <hamr/pybind11.h>
///
///     void scale(hamr::buffer<float> &field, float factor);
///     hamr::buffer<float> made(std::size_t n);
///
/// A parameter by value or by const reference may be read-only memory, by reference it may not: that is a
/// ValueError. Elements of another type are a TypeError: nothing is converted.
#ifndef HAMR_PYBIND11_H
#define HAMR_PYBIND11_H

#include <cstdint>
#include <utility>

#include <pybind11/pybind11.h>

#include "hamr.hpp"
#include "hamr/cpp/python.hpp"

namespace hamr {
namespace detail {

template <std::int32_t element>
struct pybind11_name;
#define HAMR_NAME(type, number, text, ...)                                                                      \
    template <>                                                                                                 \
    struct pybind11_name<number> {                                                                              \
        static constexpr auto name = pybind11::detail::const_name("typing.Annotated[hamr.Buffer, \"" text "\"]"); \
    };
HAMR_ELEMENT_TYPES(HAMR_NAME)
#undef HAMR_NAME

} // namespace detail
} // namespace hamr

namespace pybind11 {
namespace detail {

template <typename T>
class type_caster<hamr::buffer<T>> {
    using Value = hamr::buffer<T>;

public:
    static constexpr auto name = hamr::detail::pybind11_name<hamr::detail::element<T>()>::name;
    template <typename P>
    using cast_op_type = hamr::detail::parameter<P, Value>;

    bool load(handle object, bool convert) { return m_argument.load(object.ptr(), convert); }

    operator Value &() { return m_argument.template get<error_already_set>(true); }
    operator const Value &() { return m_argument.template get<error_already_set>(false); }
    operator Value &&() { return std::move(m_argument.template get<error_already_set>(false)); }

    static handle cast(const Value &value, return_value_policy, handle) {
        PyObject *made = hamr::to_python(value);
        if (!made) throw error_already_set();
        return made;
    }

private:
    hamr::detail::argument<T> m_argument;
};

} // namespace detail
} // namespace pybind11

#endif
