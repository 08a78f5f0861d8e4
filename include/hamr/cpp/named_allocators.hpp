/// Memory of an allocator that a type names, as std::shared_ptr: malloc_allocator<T>::allocate(n, value).
#ifndef HAMR_CPP_NAMED_ALLOCATORS_HPP
#define HAMR_CPP_NAMED_ALLOCATORS_HPP

#include <cstddef>
#include <memory>

#include "buffer.hpp"
#include "copies.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// The result of make(), or NULL after a message.
template <typename T, typename F>
std::shared_ptr<T> allocated(F &&make) {
    std::shared_ptr<T> made;
    status_of([&] { made = make().pointer(); });
    return made;
}

/// A buffer of an allocator, with elements that are on a device. They are const, so that they are copied, not
/// moved.
template <typename T, buffer_allocator A, typename U>
buffer<T> copied_on_device(const stream &on, buffer_transfer mode, std::size_t n, const U *values) {
    const buffer<U> shared = on_device(A == buffer_allocator::openmp ? space::openmp : space::cuda, on, mode, n,
                                       values);
    return buffer<T>(A, on, mode, shared);
}

/// n elements that are not initialised (objects are constructed), that have a value, or that are converted from
/// values in host memory.
template <typename T, buffer_allocator A>
struct host_allocator {
    static std::shared_ptr<T> allocate(std::size_t n) {
        return allocated<T>([&] { return buffer<T>(A, stream(), buffer_transfer::sync, n); });
    }
    static std::shared_ptr<T> allocate(std::size_t n, const T &value) {
        return allocated<T>([&] { return buffer<T>(A, stream(), buffer_transfer::sync, n, value); });
    }
    template <typename U>
    static std::shared_ptr<T> allocate(std::size_t n, const U *values) {
        return allocated<T>([&] { return buffer<T>(A, stream(), buffer_transfer::sync, n, values); });
    }
};

/// The same on the calling thread's device; the values may be on a device, too.
template <typename T, buffer_allocator A>
struct device_allocator : host_allocator<T, A> {
    using host_allocator<T, A>::allocate;

    template <typename U>
    static std::shared_ptr<T> allocate(std::size_t n, const U *values, bool is_there) {
        if (!is_there) return allocate(n, values);
        return allocated<T>([&] { return copied_on_device<T, A>(stream(), buffer_transfer::sync, n, values); });
    }
};

/// The same in the order of a stream, without waiting for it.
template <typename T, buffer_allocator A>
struct stream_allocator {
    static std::shared_ptr<T> allocate(const stream &on, std::size_t n) {
        return allocated<T>([&] { return buffer<T>(A, on, buffer_transfer::async, n); });
    }
    static std::shared_ptr<T> allocate(const stream &on, std::size_t n, const T &value) {
        return allocated<T>([&] { return buffer<T>(A, on, buffer_transfer::async, n, value); });
    }
    template <typename U>
    static std::shared_ptr<T> allocate(const stream &on, std::size_t n, const U *values, bool is_there = false) {
        return allocated<T>([&] {
            return is_there ? copied_on_device<T, A>(on, buffer_transfer::async, n, values)
                            : buffer<T>(A, on, buffer_transfer::async, n, values);
        });
    }
};

} // namespace detail

template <typename T, typename = void>
struct malloc_allocator : detail::host_allocator<T, buffer_allocator::malloc> {};
template <typename T, typename = void>
struct new_allocator : detail::host_allocator<T, buffer_allocator::cpp> {};
template <typename T, typename = void>
struct cuda_malloc_host_allocator : detail::host_allocator<T, buffer_allocator::cuda_host> {};
template <typename T, typename = void>
struct cuda_malloc_allocator : detail::device_allocator<T, buffer_allocator::cuda> {};
template <typename T, typename = void>
struct cuda_malloc_uva_allocator : detail::device_allocator<T, buffer_allocator::cuda_uva> {};
template <typename T, typename = void>
struct cuda_malloc_async_allocator : detail::stream_allocator<T, buffer_allocator::cuda_async> {};
template <typename T, typename = void>
struct hip_malloc_allocator : detail::device_allocator<T, buffer_allocator::hip> {};
template <typename T, typename = void>
struct hip_malloc_uva_allocator : detail::device_allocator<T, buffer_allocator::hip_uva> {};
template <typename T, typename = void>
struct openmp_allocator : detail::device_allocator<T, buffer_allocator::openmp> {};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
