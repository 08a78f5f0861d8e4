/// Views: elements that code reads or writes, wherever it runs.
#ifndef HAMR_CPP_VIEW_HPP
#define HAMR_CPP_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__has_include)
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif
#if __cplusplus >= 202302L && __has_include(<mdspan>)
#include <mdspan>
#endif
#endif

#include "allocator.hpp"
#include "extents.hpp"
#include "stream.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// Whether elements are contiguous in C order.
inline bool is_contiguous(const hamr_info &info, std::int64_t step) noexcept {
    if (!info.size) return true;
    for (std::int32_t i = info.ndim - 1; i >= 0; i--) {
        if (info.shape[i] > 1 && info.strides[i] != step) return false;
        step *= info.shape[i];
    }
    return true;
}
inline bool is_contiguous(const hamr_info &info) noexcept {
    return is_contiguous(info, info.size ? info.bytes / info.size : 0);
}

inline std::vector<std::int64_t> listed(const std::int64_t *first, std::int32_t count) {
    return std::vector<std::int64_t>(first, first + count);
}

} // namespace detail

/// All elements of a buffer, contiguous, for code in a space. Until the view ends they belong to it, and then
/// the buffer has what was written. A view must not outlive the buffer. E is const for reading.
template <typename E>
class view {
public:
    using element_type = E;
    using value_type = std::remove_cv_t<E>;
    using iterator = E *;

    /// Takes over the handle.
    explicit view(hamr_handle *handle) : m_handle(handle) {
        const hamr_info *info = hamr_handle_info(handle);
        if (!info) detail::fail(HAMR_ERROR_RELEASED, "view", hamr_last_error());
        if (!detail::is_contiguous(*info)) {
            hamr_abandon_handle(handle);
            detail::fail(HAMR_ERROR_VALUE, "view",
                         "the elements do not lie one after the other: copy the buffer first");
        }
        m_data = static_cast<E *>(hamr_handle_data(handle));
        m_size = static_cast<std::size_t>(info->bytes) / sizeof(E);
    }

    view(view &&other) noexcept
        : m_handle(std::exchange(other.m_handle, nullptr)),
          m_data(std::exchange(other.m_data, nullptr)),
          m_size(std::exchange(other.m_size, 0)) {}
    view &operator=(view &&other) noexcept {
        if (this == &other) return *this;
        view old(std::move(*this));
        swap(other);
        return *this;
    }
    ~view() {
        if (!m_handle) return;
        const hamr_status status = hamr_release_handle(m_handle);
        if (!status) return;
        detail::told([=] { detail::check(status, "view"); });
        if (status == HAMR_ERROR_MEMORY) hamr_abandon_handle(m_handle);
    }

    void swap(view &other) noexcept {
        std::swap(m_handle, other.m_handle);
        std::swap(m_data, other.m_data);
        std::swap(m_size, other.m_size);
    }

    /// Ends the view, as its destructor does. It throws if the buffer cannot get what was written. If memory
    /// ran out for that, the view is still there, and can be ended again.
    void release() {
        const hamr_status status = hamr_release_handle(m_handle);
        if (status != HAMR_ERROR_MEMORY) {
            m_handle = nullptr;
            m_data = nullptr;
            m_size = 0;
        }
        detail::check(status, "view::release");
    }

    E *data() const noexcept { return m_data; }
    std::size_t size() const noexcept { return m_size; }
    bool empty() const noexcept { return m_size == 0; }
    E *begin() const noexcept { return m_data; } ///< of a view for the host, as are end() and operator[]
    E *end() const noexcept { return m_data + m_size; }
    E &operator[](std::size_t i) const noexcept { return m_data[i]; }

    hamr::extents extents() const {
        const hamr_info *info = m_handle ? hamr_handle_info(m_handle) : nullptr;
        if (!info || static_cast<std::size_t>(info->size) != m_size)
            return hamr::extents(m_size); // of structs, which are bytes to the core
        return hamr::extents(detail::listed(info->shape, info->ndim));
    }

    /// Whether it is memory of its own, not the buffer's.
    bool is_temporary() const {
        const hamr_info *info = m_handle ? hamr_handle_info(m_handle) : nullptr;
        return info && info->flags & HAMR_INFO_TEMPORARY;
    }

    /// The stream on which all earlier work on the elements is ordered.
    hamr::stream stream() const {
        const hamr_info *info = m_handle ? hamr_handle_info(m_handle) : nullptr;
        if (!info) return {};
        return hamr::stream::of(info->stream, detail::stream_backend(static_cast<buffer_allocator>(info->allocator)));
    }

#ifdef __cpp_lib_span
    std::span<E> span() const noexcept { return {m_data, m_size}; }
    /// Other views become spans as any range does: two ways would cause a warning of GCC.
    template <typename V, std::enable_if_t<std::is_same_v<V, E> && !std::is_const_v<V>, int> = 0>
    operator std::span<V>() const && noexcept {
        return span();
    }
#endif

#ifdef __cpp_lib_mdspan
    /// The elements in the buffer's shape, which must have Rank dimensions.
    template <std::size_t Rank>
    std::mdspan<E, std::dextents<std::size_t, Rank>> mdspan() const {
        return std::mdspan<E, std::dextents<std::size_t, Rank>>(m_data,
                                                                detail::span_sizes<Rank>(extents(), "view::mdspan"));
    }
#endif

private:
    hamr_handle *m_handle = nullptr;
    E *m_data = nullptr;
    std::size_t m_size = 0;
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
