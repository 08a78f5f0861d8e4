/// hamr::buffer as Python's hamr.Buffer, and the reverse, without a copy. Not of hamr.hpp, since it
/// includes <Python.h>, which is to be included first.
///
///     PyObject *result = hamr::to_python(field);
///     auto field = hamr::from_python<double>(argument);
#ifndef HAMR_CPP_PYTHON_HPP
#define HAMR_CPP_PYTHON_HPP

#include "hamr/python.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "buffer.hpp"
#include "gil_state.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// Python's exception is set, and is the reason: return to Python, or clear it.
class python_error : public std::exception {
public:
    const char *what() const noexcept override { return "hamr: an exception of Python's is set"; }
};

namespace detail {

/// TypeError.
inline void set_wrong_element(std::int32_t got, std::int32_t wanted) noexcept {
    PyErr_Format(PyExc_TypeError, "the buffer's elements are %s: accepted are %s", hamr_element_name(got),
                 hamr_element_name(wanted));
}

} // namespace detail

/// Sets Python's exception to an error, of the class that hamr has for it. Call it with the GIL.
inline void set_exception(const failure &problem) noexcept {
    const hamr_failure facts = problem.facts();
    if (const hamr_python_api *python = hamr_get_python()) python->raise(&facts);
}

namespace detail {

template <typename B>
PyObject *object_of(B &shared) noexcept {
    try {
        return hamr_to_python(shared.native());
    } catch (const failure &problem) {
        set_exception(problem);
        return nullptr;
    }
}

/// Binding libraries call it with an exception of a function. An exception of hamr becomes Python's; another
/// one is thrown on.
inline void translate(const std::exception_ptr &thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const failure &problem) {
        set_exception(problem);
    }
}

} // namespace detail

/// A new hamr.Buffer that shares the buffer's memory, read-only for a const buffer. NULL, with an exception.
/// Call it with the GIL.
template <typename T>
PyObject *to_python(buffer<T> &shared) noexcept {
    return detail::object_of(shared);
}
template <typename T>
PyObject *to_python(buffer<T> &&shared) noexcept {
    return detail::object_of(shared);
}
template <typename T>
PyObject *to_python(const buffer<T> &shared) noexcept {
    try {
        const buffer<T> made = shared.read_only();
        return detail::object_of(made);
    } catch (const failure &problem) {
        set_exception(problem);
        return nullptr;
    }
}

/// A buffer of the memory of a hamr.Buffer, or of anything that hamr.buffer() accepts. Throws python_error; it
/// is a TypeError if the elements are not T. Call it with the GIL.
template <typename T>
buffer<T> from_python(PyObject *object) {
    hamr_buffer *made = nullptr;
    if (hamr_from_python(object, &made)) throw python_error();
    detail::owned_buffer owner(made);
    const std::int32_t got = hamr_info_of(made)->element, wanted = detail::element<T>();
    if (got != wanted) {
        detail::set_wrong_element(got, wanted);
        throw python_error();
    }
    try {
        buffer<T> found(made);
        owner.release();
        return found;
    } catch (const error &problem) { // bytes that are no structs
        PyErr_SetString(PyExc_TypeError, problem.what());
        throw python_error();
    }
}

namespace detail {

/// Returns the exception that is set, and clears it.
inline PyObject *take_exception() noexcept {
#if PY_VERSION_HEX >= 0x030c0000 && (!defined(Py_LIMITED_API) || Py_LIMITED_API >= 0x030c0000)
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

using gil = gil_state;

/// The base of casters: an object as a hamr::buffer<T>, or the error for Python. The error is raised only when
/// the function is called, since casters of containers may neither throw nor leave exceptions set.
template <typename T>
class argument {
public:
    argument() = default;
    argument(const argument &) = delete;
    argument(argument &&other) noexcept
        : m_value(std::move(other.m_value)), m_problem(std::exchange(other.m_problem, nullptr)), m_none(other.m_none) {}
    argument &operator=(const argument &) = delete;
    argument &operator=(argument &&) = delete;
    ~argument() { Py_XDECREF(m_problem); }

    /// Whether the object has elements of T; if last, also of another type, since no other overload can accept it.
    bool load(PyObject *object, bool last) noexcept {
        hamr_buffer *made = nullptr;
        Py_CLEAR(m_problem);
        m_value.reset();
        if ((m_none = object == Py_None)) return false;
        if (hamr_from_python(object, &made)) {
            const bool is_other = PyErr_ExceptionMatches(PyExc_TypeError);
            if (is_other) PyErr_Clear();
            else m_problem = take_exception();
            return !is_other;
        }
        const std::int32_t got = hamr_info_of(made)->element, wanted = element<T>();
        try {
            if (got == wanted) {
                m_value.emplace(made);
                return true;
            }
            if (last) set_wrong_element(got, wanted);
        } catch (const error &problem) { // bytes that are no structs
            if (last) PyErr_SetString(PyExc_TypeError, problem.what());
        }
        hamr_release(made);
        if (!last) return false;
        m_problem = take_exception();
        return true;
    }

    bool is_none() const noexcept { return m_none; }

    bool is_there(bool writing) const noexcept {
        return m_value && !(writing && (m_value->is_read_only() || !m_value->is_contiguous()));
    }

    /// The buffer, with contiguous elements: if it is for reading, they may be a copy. Throws E, of Python's
    /// exception, if there is no buffer, or none to write to. It runs with or without the GIL, since a function
    /// without the GIL gets its arguments without it.
    template <typename E>
    buffer<T> &get(bool writing) {
        if (is_there(writing)) {
            if (!m_value->is_contiguous()) order<E>();
            return *m_value;
        }
        const gil held;
        if (m_problem) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(m_problem)), m_problem);
        else if (m_value && m_value->is_read_only())
            PyErr_SetString(PyExc_ValueError, "the buffer is read-only: accepted is one that may be written to");
        else if (m_value)
            PyErr_SetString(PyExc_ValueError,
                            "the elements do not lie one after the other: accepted, where they may be written to, are "
                            "those that do; copy() makes such");
        else PyErr_SetString(PyExc_TypeError, "there is no buffer");
        throw E();
    }

private:
    template <typename E>
    void order() {
        try {
            m_value.emplace(buffer<T>(*m_value));
        } catch (const failure &problem) {
            const gil held;
            set_exception(problem);
            throw E();
        }
    }

    std::optional<buffer<T>> m_value;
    PyObject *m_problem = nullptr;
    bool m_none = false;
};

/// The reference for a function's parameter: a const one may be read-only.
template <typename P, typename V>
using parameter = std::conditional_t<!std::is_lvalue_reference_v<P>, V &&,
                                     std::conditional_t<std::is_const_v<std::remove_reference_t<P>>, const V &, V &>>;

template <typename P>
inline constexpr bool is_written = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
