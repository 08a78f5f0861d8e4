/// Where memory comes from, where it can be used, and which movements a call waits for.
#ifndef HAMR_CPP_ALLOCATOR_HPP
#define HAMR_CPP_ALLOCATOR_HPP

#include <cstdint>
#include <cstdlib>
#include <string>

#include "error.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// The values never change. For a copy, same means the source's allocator. For memory that exists, none asks
/// the runtimes which one has it.
enum class buffer_allocator : int {
    same = -2,
    none = -1,
    cpp = 0,
    malloc = 1,
    cuda = 2,
    cuda_async = 3,
    cuda_uva = 4,
    cuda_host = 5,
    hip = 6,
    hip_uva = 7,
    openmp = 8,
    shared = 9,
    cuda_vmm = 10,
    opencl_device = 11,
    opencl_svm = 12,
    hip_async = 13,
    hip_host = 14,
    sycl_device = 15,
    sycl_shared = 16,
    sycl_host = 17
};

static_assert(HAMR_ALLOCATOR_COUNT == 18, "buffer_allocator has each hamr_allocator");

/// Which movements a call waits for: none, those to the host, or all.
enum class buffer_transfer : int { async = HAMR_ASYNC, sync_host = HAMR_SYNC_HOST, sync = HAMR_SYNC };

/// Where code runs that uses memory.
enum class space : int {
    host = HAMR_HOST,
    cuda = HAMR_CUDA,
    hip = HAMR_HIP,
    openmp = HAMR_OPENMP,
    opencl = HAMR_OPENCL,
    sycl = HAMR_SYCL
};

/// Never NULL.
inline const char *get_allocator_name(buffer_allocator allocator) noexcept {
    if (allocator == buffer_allocator::same) return "same";
    if (allocator == buffer_allocator::none) return "none";
    const char *name = hamr_allocator_name(static_cast<int>(allocator));
    return name ? name : "unknown";
}

/// Throws unless new memory can come from the allocator.
inline void assert_valid_allocator(buffer_allocator allocator) {
    const int number = static_cast<int>(allocator);
    if (number < 0 || number >= HAMR_ALLOCATOR_COUNT)
        detail::fail(HAMR_ERROR_VALUE, "assert_valid_allocator",
                     "allocator is " + std::to_string(number) + ": accepted are those of hamr_allocator");
}

/// The environment variable HAMR_VERBOSE as a number, 0 without it. It is read once.
inline int get_verbose() {
    static const int level = [] {
        const char *text = std::getenv("HAMR_VERBOSE");
        return text ? std::atoi(text) : 0;
    }();
    return level;
}

namespace detail {

/// The spaces, a bit each, that use an allocator's memory in place.
inline unsigned reach_of(buffer_allocator allocator) noexcept {
    switch (static_cast<int>(allocator)) {
#define HAMR_REACH(which, number, name, backend, kind, reach, shared, ...) \
    case number: return (reach) | (shared);
        HAMR_ALLOCATOR_FACTS(HAMR_REACH)
#undef HAMR_REACH
    default: return 0;
    }
}

/// The runtime whose streams the memory is used on: CUDA if the memory needs none.
inline const char *stream_backend(buffer_allocator allocator) noexcept {
    switch (static_cast<int>(allocator)) {
#define HAMR_BACKEND(which, number, name, backend, ...) \
    case number: return backend[0] == 'h' && backend[1] == 'o' ? "cuda" : backend;
        HAMR_ALLOCATOR_FACTS(HAMR_BACKEND)
#undef HAMR_BACKEND
    default: return "cuda";
    }
}

inline int accessible(buffer_allocator allocator, space where) noexcept {
    return (reach_of(allocator) >> static_cast<int>(where)) & 1u ? 1 : 0;
}

inline buffer_allocator preferred(int for_host, const char *doing) {
    std::int32_t found = HAMR_ALLOCATOR_MALLOC;
    check(hamr_preferred_allocator(for_host, &found), doing);
    return static_cast<buffer_allocator>(found);
}

} // namespace detail

/// 1 if code on the host uses the memory in place, else 0.
inline int host_accessible(buffer_allocator allocator) noexcept { return detail::accessible(allocator, space::host); }
inline int cuda_accessible(buffer_allocator allocator) noexcept { return detail::accessible(allocator, space::cuda); }
inline int hip_accessible(buffer_allocator allocator) noexcept { return detail::accessible(allocator, space::hip); }
inline int openmp_accessible(buffer_allocator allocator) noexcept {
    return detail::accessible(allocator, space::openmp);
}

/// The best for devices on this machine: cuda_async, else hip, else openmp, else malloc.
inline buffer_allocator get_device_allocator() { return detail::preferred(0, "get_device_allocator"); }

/// The best on the host for exchange with devices: cuda_host, else malloc.
inline buffer_allocator get_host_allocator() { return detail::preferred(1, "get_host_allocator"); }

namespace detail {

/// The space of get_device_accessible(): the host if there is no device.
inline space device_space() {
    const unsigned reach = reach_of(get_device_allocator());
    for (space where : {space::cuda, space::hip, space::openmp})
        if ((reach >> static_cast<int>(where)) & 1u) return where;
    return space::host;
}

} // namespace detail

/// 1 if the devices of this machine use the memory in place, else 0.
inline int device_accessible(buffer_allocator allocator) {
    return detail::accessible(allocator, detail::device_space());
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
