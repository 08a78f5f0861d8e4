/// What buffers have besides HAMR's functions: elements as in a container, slices, timed waits and DLPack; and
/// members that not all element types have.
#ifndef HAMR_CPP_MEMBERS_HPP
#define HAMR_CPP_MEMBERS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include "element.hpp"
#include "extents.hpp"
#include "stream.hpp"
#include "view.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// Milliseconds, rounded up, so that a caller does not ask too early.
template <typename R, typename P>
std::int64_t milliseconds(const std::chrono::duration<R, P> &time) {
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    return whole < 0 ? 0 : static_cast<std::int64_t>(whole);
}

/// B is a buffer of T. Members that objects do not have are in this base class: `template class
/// hamr::buffer<T>;` instantiates the members of that class, and not those of its bases.
template <typename B, typename T>
class members {
public:
    /// Elements that the host reaches, in C order. Other buffers throw: they have read() and write(), which
    /// wait for work on the elements, as synchronize() does. These do not.
    T *begin() { return reached(self(), "buffer::begin"); }
    T *end() { return reached(self(), "buffer::end") + self().size(); }
    const T *begin() const { return reached(self(), "buffer::begin"); }
    const T *end() const { return reached(self(), "buffer::end") + self().size(); }
    const T *cbegin() const { return begin(); }
    const T *cend() const { return end(); }
    T &operator[](std::size_t i) { return reached(self(), "buffer::operator[]")[i]; }
    const T &operator[](std::size_t i) const { return reached(self(), "buffer::operator[]")[i]; }
    T &at(std::size_t i) { return reached(self(), "buffer::at")[checked(i)]; }
    const T &at(std::size_t i) const { return reached(self(), "buffer::at")[checked(i)]; }

#ifdef __cpp_lib_span
    std::span<T> span() { return {begin(), self().size()}; }
    std::span<const T> span() const { return {begin(), self().size()}; }
#endif
#ifdef __cpp_lib_mdspan
    /// The elements in the buffer's shape, which must have Rank dimensions.
    template <std::size_t Rank>
    auto mdspan() {
        return std::mdspan<T, std::dextents<std::size_t, Rank>>(
            begin(), detail::span_sizes<Rank>(self().shape(), "buffer::mdspan"));
    }
    template <std::size_t Rank>
    auto mdspan() const {
        return std::mdspan<const T, std::dextents<std::size_t, Rank>>(
            begin(), detail::span_sizes<Rank>(self().shape(), "buffer::mdspan"));
    }
#endif

    /// Elements start, start + step, … before stop of the first dimension, in place. They are read-only for a
    /// const buffer. A step may be negative: slice(n - 1, -1, -1) is all elements backwards.
    B slice(std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
        const std::vector<std::int64_t> shape = sizes_of("buffer::slice");
        const std::int64_t n = shape[0];
        if (step == 0 || start < 0 || start > n || stop < -1 || stop > n)
            fail(HAMR_ERROR_INDEX, "buffer::slice",
                 "start " + std::to_string(start) + ", stop " + std::to_string(stop) + ", step " +
                     std::to_string(step) + ": accepted are 0 … " + std::to_string(n) +
                     ", for stop -1 too, and a step that is not 0");
        const std::int64_t way = step > 0 ? stop - start : start - stop, by = step > 0 ? step : -step;
        std::vector<std::int64_t> strides = self().strides(), sizes = shape;
        sizes[0] = way > 0 ? (way - 1) / by + 1 : 0;
        const std::int64_t offset = sizes[0] ? start * strides[0] : 0;
        strides[0] *= step;
        return part(offset, sizes, strides, "buffer::slice");
    }
    B slice(std::int64_t start, std::int64_t stop, std::int64_t step = 1) const {
        return self().read_only().slice(start, stop, step);
    }

    /// Element i of the first dimension, in place, with one dimension less.
    B row(std::int64_t i) {
        std::vector<std::int64_t> shape = sizes_of("buffer::row"), strides = self().strides();
        if (i < 0 || i >= shape[0])
            fail(HAMR_ERROR_INDEX, "buffer::row",
                 std::to_string(i) + ": accepted are 0 … " + std::to_string(shape[0] - 1));
        const std::int64_t offset = i * strides[0];
        shape.erase(shape.begin());
        strides.erase(strides.begin());
        return part(offset, shape, strides, "buffer::row");
    }
    B row(std::int64_t i) const { return self().read_only().row(i); }

    /// The dimensions in reverse order, in place.
    B transposed() {
        static_assert(is_number<T>, "hamr: elements that hamr has no type for have one dimension");
        const extents shape = self().shape();
        const std::vector<std::int64_t> strides = self().strides();
        return part(0, {std::make_reverse_iterator(shape.end()), std::make_reverse_iterator(shape.begin())},
                    {strides.rbegin(), strides.rend()}, "buffer::transposed");
    }
    B transposed() const { return self().read_only().transposed(); }

    /// Waits for all work on the elements, for at most a time. Returns whether it is over.
    template <typename R, typename P>
    bool wait_for(const std::chrono::duration<R, P> &time) const {
        std::int32_t over = 0;
        check(hamr_wait(self().native(), milliseconds(time), &over), "buffer::wait_for");
        return over != 0;
    }

    /// A DLPack tensor that shares the elements, read-only for a const buffer. The consumer's stream runs after the
    /// work on them; with NULL this call waits for the work. The tensor's deleter may be called on any thread.
    [[nodiscard]] DLManagedTensorVersioned *to_dlpack(void *consumer = nullptr) {
        DLManagedTensorVersioned *made = nullptr;
        check(hamr_to_dlpack(self().native(), consumer, &made), "buffer::to_dlpack");
        return made;
    }
    [[nodiscard]] DLManagedTensorVersioned *to_dlpack(void *consumer = nullptr) const {
        return self().read_only().to_dlpack(consumer);
    }

    /// A buffer that shares the same elements, read-only.
    B read_only() const {
        hamr_buffer *made = nullptr;
        check(hamr_read_only(self().m_storage.get(), &made), "buffer::read_only");
        return B(made);
    }

    /// The same elements in another shape, shared if possible; read-only for a const buffer.
    B reshape(const extents &shape) {
        hamr_buffer *made = nullptr;
        check(hamr_reshape(self().m_storage.get(), &made, shape.rank(), shape.data(), 0), "buffer::reshape");
        return B(made);
    }
    B reshape(const extents &shape) const { return self().read_only().reshape(shape); }

    /// The elements for code in a space on a device; -1 is the calling thread's. When the view ends, the buffer
    /// has what was written to it, wherever that was.
    view<const T> read(space where = space::host, int device = HAMR_CURRENT_DEVICE) const {
        return view<const T>(self().m_storage.open(where, device, HAMR_READ, "buffer::read"));
    }
    view<T> write(space where = space::host, int device = HAMR_CURRENT_DEVICE) {
        return view<T>(self().m_storage.open(where, device, HAMR_WRITE, "buffer::write"));
    }
    view<T> read_write(space where = space::host, int device = HAMR_CURRENT_DEVICE) {
        return view<T>(self().m_storage.open(where, device, HAMR_READ_WRITE, "buffer::read_write"));
    }

    /// The buffer of hamr.h. This object still owns it.
    hamr_buffer *native() {
        hamr_buffer *const its = self().m_storage.get();
        self().m_storage.know_new();
        return its;
    }
    const hamr_buffer *native() const { return self().m_storage.get(); }

private:
    B &self() noexcept { return static_cast<B &>(*this); }
    const B &self() const noexcept { return static_cast<const B &>(*this); }

    template <typename S>
    static auto reached(S &buffer, const char *doing) {
        if (!buffer.host_accessible())
            fail(HAMR_ERROR_VALUE, doing,
                 std::string("the host does not reach memory of ") + get_allocator_name(buffer.get_allocator()) +
                     ": read() and write() do");
        if (!buffer.is_contiguous())
            fail(HAMR_ERROR_VALUE, doing,
                 "the elements do not lie one after the other: read() and write() have them so");
        return buffer.data();
    }

    std::size_t checked(std::size_t i) const {
        if (i >= self().size())
            fail(HAMR_ERROR_INDEX, "buffer::at",
                 std::to_string(i) + ": accepted is less than " + std::to_string(self().size()));
        return i;
    }

    std::vector<std::int64_t> sizes_of(const char *doing) const {
        static_assert(is_number<T>, "hamr: elements that hamr has no type for have one dimension, and no slices");
        const extents shape = self().shape();
        if (!shape.rank()) fail(HAMR_ERROR_VALUE, doing, "the buffer has no dimensions: accepted is one that has");
        return {shape.begin(), shape.end()};
    }

    B part(std::int64_t offset, const std::vector<std::int64_t> &shape, const std::vector<std::int64_t> &strides,
           const char *doing) {
        hamr_buffer *made = nullptr;
        check(hamr_view(self().native(), &made, offset, 0, static_cast<std::int32_t>(shape.size()), shape.data(),
                        strides.data()),
              doing);
        return B(made);
    }
};

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
