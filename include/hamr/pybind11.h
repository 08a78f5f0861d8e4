/// Functions that pybind11 binds take and return hamr::buffer<T>: objects of Python's that are hamr.Buffer, or
/// whatever hamr.buffer() accepts, without a copy.
///
///     #include <hamr/pybind11.h>
///
///     void scale(hamr::buffer<float> &field, float factor);
///     hamr::buffer<float> made(std::size_t n);
///
/// A parameter by value, by const reference or as a pointer to const may be read-only memory, or elements with
/// strides, which it is given a copy of; another reference or pointer may not: that is a ValueError. A pointer, as a
/// std::shared_ptr, is empty for None. Elements of another type are a TypeError: nothing is converted. What a
/// function returns by const reference is read-only, as is a member by def_readonly. hamr::error and
/// hamr::memory_error are the exceptions that Python users know.
#ifndef HAMR_PYBIND11_H
#define HAMR_PYBIND11_H

#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <pybind11/pybind11.h>

#include "hamr.hpp"
#include "hamr/cpp/python.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
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

/// Each extension has its own, before a function of it can be called, or else when it first is given a buffer.
__attribute__((visibility("hidden"))) inline bool pybind11_translates() {
    static const bool is_done = (pybind11::register_local_exception_translator(
                                     [](std::exception_ptr thrown) { translate(thrown); }),
                                 true);
    return is_done;
}
__attribute__((visibility("hidden"))) inline const bool pybind11_was_loaded = Py_IsInitialized() &&
                                                                              PyGILState_Check() &&
                                                                              pybind11_translates();

/// What a function's parameter is given.
template <typename P, typename V>
using pybind11_parameter = std::conditional_t<
    std::is_pointer_v<std::remove_reference_t<P>>,
    std::conditional_t<std::is_const_v<std::remove_pointer_t<std::remove_reference_t<P>>>, const V *, V *>,
    parameter<P, V>>;

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

namespace pybind11 {
namespace detail {

template <typename T>
class type_caster<hamr::buffer<T>> {
    using Value = hamr::buffer<T>;

public:
    static constexpr auto name = hamr::detail::pybind11_name<hamr::detail::element<T>()>::name;
    template <typename P>
    using cast_op_type = hamr::detail::pybind11_parameter<P, Value>;

    /// None is for pointers: what else is not given to a function is for another overload.
    bool load(handle object, bool convert) {
        hamr::detail::pybind11_translates();
        return m_argument.load(object.ptr(), convert) || (convert && m_argument.is_none());
    }

    operator Value &() { return get(true); }
    operator const Value &() { return get(false); }
    operator Value &&() { return std::move(get(false)); }
    operator Value *() { return m_argument.is_none() ? nullptr : &get(true); }
    operator const Value *() { return m_argument.is_none() ? nullptr : &get(false); }

    static handle cast(Value &value, return_value_policy, handle) { return made(hamr::to_python(value)); }
    static handle cast(Value &&value, return_value_policy, handle) { return made(hamr::to_python(value)); }
    static handle cast(const Value &value, return_value_policy policy, handle) {
        return made(is_member(policy) ? hamr::to_python(const_cast<Value &>(value)) : hamr::to_python(value));
    }
    template <typename V>
    static handle cast(V *value, return_value_policy policy, handle parent) {
        if (!value) return none().release();
        const std::unique_ptr<V> owner(policy == return_value_policy::take_ownership ? value : nullptr);
        return cast(*value, policy, parent);
    }

private:
    Value &get(bool writing) {
        if (m_argument.is_none()) throw reference_cast_error();
        return m_argument.template get<error_already_set>(writing);
    }

    static handle made(PyObject *object) {
        hamr::detail::pybind11_translates();
        if (!object) throw error_already_set();
        return object;
    }

    /// Before version 3 of pybind11 def_readwrite and def_readonly look the same here.
    static bool is_member([[maybe_unused]] return_value_policy policy) {
#if PYBIND11_VERSION_MAJOR < 3
        return policy == return_value_policy::reference_internal;
#else
        return false;
#endif
    }

    hamr::detail::argument<T> m_argument;
};

/// A shared pointer to a buffer of its own, whose elements are the argument's.
template <typename B>
class hamr_pointer_caster {
    using Value = std::remove_const_t<B>;

public:
    static constexpr auto name = type_caster<Value>::name;
    template <typename P>
    using cast_op_type = std::shared_ptr<B>;

    bool load(handle object, bool convert) { return m_caster.load(object, convert); }

    operator std::shared_ptr<B>() {
        B *found = m_caster;
        return found ? std::make_shared<Value>(std::move(const_cast<Value &>(*found))) : nullptr;
    }

    static handle cast(const std::shared_ptr<B> &value, return_value_policy policy, handle parent) {
        return type_caster<Value>::cast(
            value.get(), policy == return_value_policy::take_ownership ? return_value_policy::copy : policy, parent);
    }

private:
    type_caster<Value> m_caster;
};

template <typename T>
class type_caster<std::shared_ptr<hamr::buffer<T>>> : public hamr_pointer_caster<hamr::buffer<T>> {};
template <typename T>
class type_caster<std::shared_ptr<const hamr::buffer<T>>> : public hamr_pointer_caster<const hamr::buffer<T>> {};

} // namespace detail

#if PYBIND11_VERSION_MAJOR >= 3
/// A member: writable by def_readwrite, read-only by def_readonly.
template <typename T, typename E>
struct property_cpp_function<T, hamr::buffer<E>> : detail::property_cpp_function_classic<T, hamr::buffer<E>> {
    template <typename PM>
    static cpp_function read(PM member, const handle &of) {
        return cpp_function([member](T &object) -> hamr::buffer<E> & { return object.*member; }, is_method(of));
    }
};
#endif

} // namespace pybind11

#endif
