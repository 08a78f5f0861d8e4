/// Functions of any number of buffers, and pointers to buffers.
#ifndef HAMR_CPP_UTILITIES_HPP
#define HAMR_CPP_UTILITIES_HPP

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "buffer.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

namespace detail {

template <typename T>
auto pair_of(std::shared_ptr<T> shared) {
    T *data = shared.get();
    return std::make_tuple(std::move(shared), data);
}

} // namespace detail

/// For each buffer a shared pointer, which keeps the elements, and its plain pointer:
template <typename... T>
auto get_host_accessible(const buffer<T> &...buffers) {
    return std::tuple_cat(detail::pair_of(buffers.get_host_accessible())...);
}
template <typename... T>
auto get_cuda_accessible(const buffer<T> &...buffers) {
    return std::tuple_cat(detail::pair_of(buffers.get_cuda_accessible())...);
}
template <typename... T>
auto get_hip_accessible(const buffer<T> &...buffers) {
    return std::tuple_cat(detail::pair_of(buffers.get_hip_accessible())...);
}
template <typename... T>
auto get_openmp_accessible(const buffer<T> &...buffers) {
    return std::tuple_cat(detail::pair_of(buffers.get_openmp_accessible())...);
}
template <typename... T>
auto get_device_accessible(const buffer<T> &...buffers) {
    return std::tuple_cat(detail::pair_of(buffers.get_device_accessible())...);
}

namespace detail {

template <typename T>
std::true_type is_buffer(const buffer<T> *);
std::false_type is_buffer(const void *);
template <typename... B>
using if_buffers =
    std::enable_if_t<sizeof...(B) != 0 && (decltype(is_buffer(static_cast<const B *>(nullptr)))::value && ...), int>;

} // namespace detail

/// A std::tuple of buffer::data() of each buffer, also of a single one: `auto [a, b] = data(first, second)`.
template <typename... B, detail::if_buffers<B...> = 0>
auto data(B &...buffers) {
    return std::make_tuple(buffers.data()...);
}

/// The overloads for one buffer are better matches than std::data(). An unqualified call finds that, too, if
/// the elements are of namespace std.
template <typename T>
auto data(buffer<T> &one) {
    return std::make_tuple(one.data());
}
template <typename T>
auto data(const buffer<T> &one) {
    return std::make_tuple(one.data());
}
template <typename T>
void data(const buffer<T> &&) = delete;

/// A std::tuple of buffer::pointer() of each.
template <typename... B, detail::if_buffers<B...> = 0>
auto pointer(B &...buffers) {
    return std::make_tuple(buffers.pointer()...);
}

/// Waits for the work on all of them. Returns 0, or -1 after a message for each that failed.
template <typename... T>
int synchronize(const buffer<T> &...buffers) {
    return (0 | ... | buffers.synchronize());
}

namespace detail {

template <typename T>
std::tuple<buffer<T>, T *> with_data(buffer<T> made) {
    T *data = made.data();
    return {std::move(made), data};
}

} // namespace detail

/// A buffer, and its data(): `auto [b, p] = make_buffer<float>(alloc, n, value)`.
template <typename T>
std::tuple<buffer<T>, T *> make_buffer(buffer_allocator allocator, std::size_t n) {
    return detail::with_data(buffer<T>(allocator, n));
}
template <typename T>
std::tuple<buffer<T>, T *> make_buffer(buffer_allocator allocator, std::size_t n, const T &value) {
    return detail::with_data(buffer<T>(allocator, n, value));
}
template <typename T, typename U>
std::tuple<buffer<T>, T *> make_buffer(buffer_allocator allocator, std::size_t n, const U *values) {
    return detail::with_data(buffer<T>(allocator, n, values));
}
template <typename T, typename... Arguments>
std::tuple<buffer<T>, T *> make_buffer(buffer_allocator allocator, const stream &on, Arguments &&...arguments) {
    return detail::with_data(buffer<T>(allocator, on, std::forward<Arguments>(arguments)...));
}

template <typename T>
using p_buffer = std::shared_ptr<buffer<T>>;
template <typename T>
using const_p_buffer = std::shared_ptr<const buffer<T>>;

/// A pointer to the same buffer, which cannot be changed through it.
template <typename T>
const_p_buffer<T> const_ptr(const p_buffer<T> &pointer) noexcept {
    return pointer;
}
template <typename T>
const_p_buffer<T> const_ptr(const const_p_buffer<T> &pointer) noexcept {
    return pointer;
}

/// What it points to.
template <typename T>
buffer<T> &ref_to(const p_buffer<T> &pointer) noexcept {
    return *pointer;
}
template <typename T>
const buffer<T> &ref_to(const const_p_buffer<T> &pointer) noexcept {
    return *pointer;
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
