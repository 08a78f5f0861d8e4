/// Converts elements of one C++ type to another, on the host, if the core does not.
#ifndef HAMR_CPP_VALUES_HPP
#define HAMR_CPP_VALUES_HPP

#include <cstddef>
#include <iostream>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "element.hpp"
#include "error.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// Whether static_cast converts a U to a T, for example an enumeration to a number.
template <typename T, typename U, typename = void>
struct converts : std::false_type {};
template <typename T, typename U>
struct converts<T, U, std::void_t<decltype(static_cast<T>(std::declval<U>()))>> : std::true_type {};

/// Constructs a T at an address, from a U.
template <typename T, typename U>
void construct(T *at, U &&from) {
    static_assert(converts<T, U &&>::value,
                  "hamr: elements of the one type are not converted to elements of the other");
    ::new (static_cast<void *>(at)) T(static_cast<T>(std::forward<U>(from)));
}

template <typename T, typename U>
void assign_to(T &to, const U &from) {
    if constexpr (std::is_same_v<T, U>) {
        to = from;
    } else {
        static_assert(converts<T, const U &>::value,
                      "hamr: elements of the one type are not converted to elements of the other");
        to = static_cast<T>(from);
    }
}

inline void check_values(const void *values, std::size_t n, const char *doing) {
    if (!values && n)
        fail(HAMR_ERROR_VALUE, doing,
             "the values are NULL: accepted is the address of " + std::to_string(n) + " elements");
}

inline void check_part(std::size_t size, std::size_t start, std::size_t n, const char *doing) {
    if (start > size || n > size - start)
        fail(HAMR_ERROR_INDEX, doing,
             std::to_string(n) + " elements from " + std::to_string(start) + " on: the source has " +
                 std::to_string(size));
}

/// Objects that were constructed one after the other. They are destroyed unless keep() is called.
template <typename T>
class unfinished {
public:
    explicit unfinished(T *first) noexcept : m_first(first) {}
    unfinished(const unfinished &) = delete;
    unfinished &operator=(const unfinished &) = delete;
    ~unfinished() { std::destroy_n(m_first, m_made); }

    T *next() const noexcept { return m_first + m_made; }
    void made() noexcept { ++m_made; }
    void keep() noexcept { m_made = 0; }

private:
    T *m_first;
    std::size_t m_made = 0;
};

/// Host memory for n elements of a type that is neither constructed nor destroyed.
template <typename T>
class scratch {
    static_assert(!is_object<T>);

public:
    explicit scratch(std::size_t n) : m_size(n), m_first(std::allocator<T>().allocate(n)) {}
    scratch(std::size_t n, const T &value) : scratch(n) { std::uninitialized_fill_n(m_first, n, value); }
    template <typename U>
    scratch(const U *values, std::size_t n, const char *doing) : scratch(n) {
        check_values(values, n, doing);
        for (std::size_t i = 0; i < n; i++) construct(m_first + i, values[i]);
    }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    ~scratch() { std::allocator<T>().deallocate(m_first, m_size); }

    T *data() noexcept { return m_first; }
    const T *data() const noexcept { return m_first; }

private:
    std::size_t m_size;
    T *m_first;
};

template <typename T, typename = void>
struct has_text : std::false_type {};
template <typename T>
struct has_text<T, std::void_t<decltype(std::declval<std::ostream &>() << std::declval<const T &>())>>
    : std::true_type {};

/// Prints elements that the core cannot print, in the same form; without an operator<<, their number.
template <typename T>
void print_values(const T *values, std::size_t n) {
    if constexpr (has_text<T>::value) {
        std::cerr << "{";
        for (std::size_t i = 0; i < n; i++) std::cerr << (i ? i % 8 ? ", " : ",\n " : "") << values[i];
        std::cerr << "}" << std::endl;
    } else {
        std::cerr << "{" << n << " elements of " << sizeof(T) << " bytes}" << std::endl;
    }
}

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
