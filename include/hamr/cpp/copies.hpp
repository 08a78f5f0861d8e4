/// Copies between arrays on the host and on devices, converted, and prints of arrays on devices, by their addresses.
#ifndef HAMR_CPP_COPIES_HPP
#define HAMR_CPP_COPIES_HPP

#include <cstddef>

#include "buffer.hpp"
#include "device.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// An array on a device. With -1 the runtime says which device; for OpenMP, which does not say it, it is the
/// calling thread's.
template <typename T>
buffer<T> on_device(space where, const stream &on, buffer_transfer mode, std::size_t n, const T *array,
                    int device = HAMR_CURRENT_DEVICE) {
    buffer_allocator allocator = is_object<T> ? buffer_allocator::cuda
                                              : buffer_allocator::none; // objects are refused as on any device
    if (where == space::openmp) {
        allocator = buffer_allocator::openmp;
        if (device < 0) device = openmp_device::get();
    }
    return buffer<T>(allocator, on, mode, n, device, const_cast<T *>(array), 0);
}

/// The status of a function, which may throw.
template <typename F>
int status_in(F &&function) {
    int status = 0;
    return status_of([&] { status = function(); }) ? -1 : status;
}

template <typename T, typename U>
int copy_up(space where, const stream &on, buffer_transfer mode, T *dest, const U *src, std::size_t n) {
    return status_in([&] { return on_device(where, on, mode, n, dest).set(0, src, 0, n); });
}

template <typename T, typename U>
int copy_down(space where, const stream &on, buffer_transfer mode, T *dest, const U *src, std::size_t n) {
    return status_in([&] { return on_device(where, on, mode, n, src).get(0, dest, 0, n); });
}

template <typename T, typename U>
int copy_across(space where, const stream &on, buffer_transfer mode, T *dest, const U *src, int device, std::size_t n) {
    return status_in(
        [&] { return on_device(where, on, mode, n, dest).set(on_device(where, on, mode, n, src, device)); });
}

/// On std::cerr.
template <typename T>
int print_array(space where, const stream &on, const T *array, std::size_t n) {
    return status_of([&] {
        const buffer<T> copied(buffer_allocator::malloc, on, buffer_transfer::sync,
                               on_device(where, on, buffer_transfer::sync, n, array));
        print_values(copied.data(), n);
    });
}

} // namespace detail

/// Each returns 0, or -1 after a message. Without a stream the copy is complete on return. On a stream only
/// host memory may be used again on return. src_device is the device that owns src.
#define HAMR_COPIES(runtime)                                                                                         \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_host(T *dest, const U *src, std::size_t n) {                                        \
        return detail::copy_up(space::runtime, stream(), buffer_transfer::sync, dest, src, n);                       \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_host(const stream &on, T *dest, const U *src, std::size_t n) {                      \
        return detail::copy_up(space::runtime, on, buffer_transfer::async, dest, src, n);                            \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_host_from_##runtime(T *dest, const U *src, std::size_t n) {                                          \
        return detail::copy_down(space::runtime, stream(), buffer_transfer::sync, dest, src, n);                     \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_host_from_##runtime(const stream &on, T *dest, const U *src, std::size_t n) {                        \
        return detail::copy_down(space::runtime, on, buffer_transfer::async, dest, src, n);                          \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_##runtime(T *dest, const U *src, std::size_t n) {                                   \
        return detail::copy_across(space::runtime, stream(), buffer_transfer::sync, dest, src, HAMR_CURRENT_DEVICE,  \
                                   n);                                                                               \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_##runtime(T *dest, const U *src, int src_device, std::size_t n) {                   \
        return detail::copy_across(space::runtime, stream(), buffer_transfer::sync, dest, src, src_device, n);       \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_##runtime(const stream &on, T *dest, const U *src, std::size_t n) {                 \
        return detail::copy_across(space::runtime, on, buffer_transfer::async, dest, src, HAMR_CURRENT_DEVICE, n);   \
    }                                                                                                                \
    template <typename T, typename U>                                                                                \
    int copy_to_##runtime##_from_##runtime(const stream &on, T *dest, const U *src, int src_device, std::size_t n) { \
        return detail::copy_across(space::runtime, on, buffer_transfer::async, dest, src, src_device, n);            \
    }                                                                                                                \
    template <typename T>                                                                                            \
    int runtime##_print(T *values, std::size_t n) {                                                                  \
        return detail::print_array(space::runtime, stream(), static_cast<const T *>(values), n);                     \
    }                                                                                                                \
    template <typename T>                                                                                            \
    int runtime##_print(const stream &on, T *values, std::size_t n) {                                                \
        return detail::print_array(space::runtime, on, static_cast<const T *>(values), n);                           \
    }
HAMR_COPIES(cuda)
HAMR_COPIES(hip)
HAMR_COPIES(openmp)
#undef HAMR_COPIES

template <typename T, typename U>
int copy_to_host_from_host(T *dest, const U *src, std::size_t n) {
    return detail::status_in(
        [&] { return buffer<T>(buffer_allocator::malloc, n, HAMR_CURRENT_DEVICE, dest, 0).set(0, src, 0, n); });
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
