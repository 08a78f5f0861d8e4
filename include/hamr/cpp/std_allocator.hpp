/// hamr's memory for the containers of the standard library.
#ifndef HAMR_CPP_STD_ALLOCATOR_HPP
#define HAMR_CPP_STD_ALLOCATOR_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include "allocator.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// Memory that the host reaches: std::vector<double, hamr::std_allocator<double>>; page-locked memory by
/// hamr::std_allocator<double>(buffer_allocator::cuda_host). Elements are aligned to 64 bytes.
template <typename T>
class std_allocator {
    static_assert(alignof(T) <= 64, "hamr::std_allocator: memory is aligned to 64 bytes");

public:
    using value_type = T;

    std_allocator(buffer_allocator kind = buffer_allocator::malloc) noexcept : m_kind(kind) {}
    template <typename U>
    std_allocator(const std_allocator<U> &other) noexcept : m_kind(other.kind()) {}

    buffer_allocator kind() const noexcept { return m_kind; }

    [[nodiscard]] T *allocate(std::size_t n) {
        if (!host_accessible(m_kind))
            detail::fail(HAMR_ERROR_VALUE, "std_allocator",
                         std::string("the host does not reach memory of ") + get_allocator_name(m_kind));
        if (n > (std::numeric_limits<std::size_t>::max() / 2 - room) / sizeof(T)) throw std::bad_array_new_length();
        const std::int64_t bytes = static_cast<std::int64_t>(n * sizeof(T) + room);
        const hamr_place place = {static_cast<std::int32_t>(m_kind), HAMR_CURRENT_DEVICE, nullptr, HAMR_SYNC_HOST, 0};
        hamr_buffer *made = nullptr;
        detail::check(hamr_create(&made, HAMR_UINT8, 1, &bytes, &place, nullptr), "std_allocator");
        auto *const first = static_cast<unsigned char *>(hamr_data(made));
        auto *const elements = first + room - reinterpret_cast<std::uintptr_t>(first) % 64;
        reinterpret_cast<hamr_buffer **>(elements)[-1] = made;
        return reinterpret_cast<T *>(elements);
    }

    void deallocate(T *elements, std::size_t) noexcept { hamr_release(reinterpret_cast<hamr_buffer **>(elements)[-1]); }

    friend bool operator==(const std_allocator &one, const std_allocator &other) noexcept {
        return one.m_kind == other.m_kind;
    }
    friend bool operator!=(const std_allocator &one, const std_allocator &other) noexcept { return !(one == other); }

private:
    static constexpr std::size_t room = 128; // for the buffer's name, in front, and for the alignment

    buffer_allocator m_kind;
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
