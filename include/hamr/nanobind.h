/// Functions that nanobind binds take and return hamr::buffer<T>: objects of Python's that are hamr.Buffer, or
/// whatever hamr.buffer() accepts, without a copy.
///
///     #include <hamr/nanobind.h>
///
///     void scale(hamr::buffer<float> &field, float factor);
///     hamr::buffer<float> made(std::size_t n);
///
/// A parameter by value or by const reference may be read-only memory, or elements with strides, which it is given
/// a copy of; by reference it may not: that is a ValueError. Elements of another type are a TypeError: nothing
/// is converted. What a function returns by const reference is read-only; but not a member by def_ro, which nanobind
/// does not tell from def_rw: return buffer.read_only() by def_prop_ro. hamr::error and hamr::memory_error are the
/// exceptions that Python users know, once a buffer was given or returned, or translate_exceptions() was called.
#ifndef HAMR_NANOBIND_H
#define HAMR_NANOBIND_H

#include <cstdint>
#include <exception>
#include <utility>

#include <nanobind/nanobind.h>

#include "hamr.hpp"
#include "hamr/cpp/python.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
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

/// For the beginning of an NB_MODULE. More than once is harmless.
__attribute__((visibility("hidden"))) inline bool translate_exceptions() {
    static const bool is_done = (nanobind::register_exception_translator(
                                     [](const std::exception_ptr &thrown, void *) { detail::translate(thrown); }),
                                 true);
    return is_done;
}

} // namespace HAMR_CPP_NAMESPACE
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
        hamr::translate_exceptions();
        return m_argument.load(object.ptr(), (flags & static_cast<Flags>(cast_flags::convert)) != 0);
    }

    template <typename P>
    bool can_cast() const noexcept {
        return m_argument.is_there(hamr::detail::is_written<P>);
    }

    explicit operator Value &() { return m_argument.template get<python_error>(true); }
    explicit operator const Value &() { return m_argument.template get<python_error>(false); }
    explicit operator Value &&() { return std::move(m_argument.template get<python_error>(false)); }

    static handle from_cpp(Value &value, rv_policy, cleanup_list *) noexcept { return made(hamr::to_python(value)); }
    static handle from_cpp(Value &&value, rv_policy, cleanup_list *) noexcept { return made(hamr::to_python(value)); }
    static handle from_cpp(const Value &value, rv_policy policy, cleanup_list *) noexcept {
        const bool is_member = policy == rv_policy::reference_internal;
        return made(is_member ? hamr::to_python(const_cast<Value &>(value)) : hamr::to_python(value));
    }

private:
    static handle made(PyObject *object) noexcept {
        hamr::translate_exceptions();
        return object;
    }

    hamr::detail::argument<T> m_argument;
};

} // namespace detail
} // namespace nanobind

#endif
