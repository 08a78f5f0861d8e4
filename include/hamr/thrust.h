/// Iterators of Thrust's over the elements of a buffer, in the memory of a device.
///
///     thrust::sort(hamr::device_begin(field), hamr::device_end(field));
#ifndef HAMR_THRUST_H
#define HAMR_THRUST_H

#include <cstddef>
#include <string>

#include <thrust/device_ptr.h>

#include "hamr.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

template <typename B>
auto device_elements(B &elements) {
    if (!elements.cuda_accessible() && !elements.hip_accessible())
        fail(HAMR_ERROR_VALUE, "device_begin",
             std::string("kernels do not reach memory of ") + get_allocator_name(elements.get_allocator()));
    if (!elements.is_contiguous())
        fail(HAMR_ERROR_VALUE, "device_begin", "the elements do not lie one after the other: copy the buffer first");
    return thrust::device_pointer_cast(elements.data());
}

} // namespace detail

template <typename T>
thrust::device_ptr<T> device_begin(buffer<T> &elements) {
    return detail::device_elements(elements);
}
template <typename T>
thrust::device_ptr<T> device_end(buffer<T> &elements) {
    return device_begin(elements) + static_cast<std::ptrdiff_t>(elements.size());
}
template <typename T>
thrust::device_ptr<const T> device_begin(const buffer<T> &elements) {
    return detail::device_elements(elements);
}
template <typename T>
thrust::device_ptr<const T> device_end(const buffer<T> &elements) {
    return device_begin(elements) + static_cast<std::ptrdiff_t>(elements.size());
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
