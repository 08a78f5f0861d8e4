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

/// What data(b) and pointer(b) of one buffer return: `auto [p] = data(b)` names the pointer, as with
/// more of them, and `P p = data(b)` is it.
template <typename P>
class single : public std::tuple<P> {
public:
    using std::tuple<P>::tuple;
    operator P() const { return std::get<0>(*this); }
    decltype(auto) operator*() const { return *std::get<0>(*this); }
    P operator->() const { return std::get<0>(*this); }
};

namespace detail {

template <typename T>
auto pair_of(std::shared_ptr<T> shared) {
    T *data = shared.get();
    return std::make_tuple(std::move(shared), data);
}

template <typename... P>
auto listed_pointers(P... pointers) {
    if constexpr (sizeof...(P) == 1) return single<P...>(std::move(pointers)...);
    else return std::make_tuple(std::move(pointers)...);
}

} // namespace detail

/// For each buffer a shared pointer, which keeps the elements, and the pointer in it:
/// `auto [sa, a, sb, b] = get_host_accessible(first, second)`.
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

template <typename B>
struct is_buffer : std::false_type {};
template <typename T>
struct is_buffer<buffer<T>> : std::true_type {};
template <typename... B>
using if_buffers = std::enable_if_t<sizeof...(B) != 0 && (is_buffer<std::remove_const_t<B>>::value && ...), int>;

} // namespace detail

/// Of each, buffer::data(): `auto [a, b] = data(first, second)`.
template <typename... B, detail::if_buffers<B...> = 0>
auto data(B &...buffers) {
    return detail::listed_pointers(buffers.data()...);
}

/// Of each, buffer::pointer().
template <typename... B, detail::if_buffers<B...> = 0>
auto pointer(B &...buffers) {
    return detail::listed_pointers(std::decay_t<decltype(buffers.pointer())>(buffers.pointer())...);
}

/// Waits for the work on all of them. 0, or -1 after a message for each that failed.
template <typename... T>
int synchronize(const buffer<T> &...buffers) {
    return (0 | ... | buffers.synchronize());
}

/// A buffer, and its data(): `auto [b, p] = make_buffer<float>(alloc, n, value)`.
template <typename T, typename... Arguments>
std::tuple<buffer<T>, T *> make_buffer(buffer_allocator allocator, Arguments &&...arguments) {
    buffer<T> made(allocator, std::forward<Arguments>(arguments)...);
    T *data = made.data();
    return {std::move(made), data};
}

template <typename T>
using p_buffer = std::shared_ptr<buffer<T>>;
template <typename T>
using const_p_buffer = std::shared_ptr<const buffer<T>>;

/// A pointer to the same buffer, which is not changed through it.
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

} // namespace hamr

namespace std { // what structured bindings ask

template <typename P>
struct tuple_size<hamr::single<P>> : integral_constant<size_t, 1> {};
template <size_t I, typename P>
struct tuple_element<I, hamr::single<P>> : tuple_element<I, tuple<P>> {};

} // namespace std

#endif
