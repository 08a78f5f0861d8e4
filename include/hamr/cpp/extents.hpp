/// The sizes of an array in each of its dimensions.
#ifndef HAMR_CPP_EXTENTS_HPP
#define HAMR_CPP_EXTENTS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// extents(480, 640), or {480, 640} as an argument. Without sizes it stands for one element. In
/// buffer::reshape() one size may be -1: it is computed from the others.
class extents {
public:
    using size_type = std::int64_t;

    extents() = default;

    template <typename N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    explicit extents(N size) : m_rank(1), m_few{checked(size)} {}

    template <
        typename M, typename N, typename... More,
        std::enable_if_t<std::is_integral_v<M> && std::is_integral_v<N> && (std::is_integral_v<More> && ...), int> = 0>
    extents(M first, N second, More... more) : extents({checked(first), checked(second), checked(more)...}) {}

    /// One size in braces is a shape if the function does not accept a number there.
    template <typename N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    extents(std::initializer_list<N> sizes) {
        if (sizes.size() > m_few.size()) m_many.reserve(sizes.size());
        for (N size : sizes) {
            if (sizes.size() > m_few.size()) m_many.push_back(checked(size));
            else m_few[m_rank++] = checked(size);
        }
    }

    explicit extents(std::vector<size_type> sizes) noexcept {
        if (sizes.size() > m_few.size()) {
            m_many = std::move(sizes);
        } else {
            for (size_type size : sizes) m_few[m_rank++] = size;
        }
    }

    std::int32_t rank() const noexcept { return static_cast<std::int32_t>(m_many.empty() ? m_rank : m_many.size()); }
    size_type operator[](std::size_t dimension) const {
        if (dimension >= static_cast<std::size_t>(rank()))
            throw std::out_of_range("hamr::extents: there is no dimension " + std::to_string(dimension));
        return data()[dimension];
    }
    const size_type *data() const noexcept { return m_many.empty() ? m_few.data() : m_many.data(); }
    auto begin() const noexcept { return data(); }
    auto end() const noexcept { return data() + rank(); }

    friend bool operator==(const extents &one, const extents &other) {
        return std::equal(one.begin(), one.end(), other.begin(), other.end());
    }
    friend bool operator!=(const extents &one, const extents &other) { return !(one == other); }

private:
    template <typename N>
    static size_type checked(N size) {
        if (std::is_unsigned_v<N> &&
            static_cast<std::uint64_t>(size) > static_cast<std::uint64_t>(std::numeric_limits<size_type>::max()))
            detail::fail(HAMR_ERROR_VALUE, "extents",
                         "a size is " + std::to_string(size) + ": accepted are those that fit in 63 bits");
        return static_cast<size_type>(size);
    }

    std::size_t m_rank = 0; // 0 where there are many
    std::array<size_type, 4> m_few{}; // without an allocation
    std::vector<size_type> m_many;
};

namespace detail {

/// The sizes of a std::mdspan, which must have as many dimensions as the buffer.
template <std::size_t Rank>
std::array<std::size_t, Rank> span_sizes(const extents &shape, const char *doing) {
    if (shape.rank() != static_cast<std::int32_t>(Rank))
        fail(HAMR_ERROR_VALUE, doing, "the buffer has " + std::to_string(shape.rank()) + " dimensions");
    std::array<std::size_t, Rank> sizes{};
    for (std::size_t i = 0; i < Rank; i++) sizes[i] = static_cast<std::size_t>(shape[i]);
    return sizes;
}

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
