/// hamr::buffer: a growable array in the memory of any device.
#ifndef HAMR_CPP_BUFFER_HPP
#define HAMR_CPP_BUFFER_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "members.hpp"
#include "objects.hpp"
#include "plain.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

template <typename T>
using elements = std::conditional_t<is_object<T>, objects<T>, plain<T>>;

} // namespace detail

/// Elements of type T: numbers, which hamr converts; plain structs and pointers, which hamr treats as bytes;
/// and objects, which are constructed and destroyed, in host memory only. As with a container, many threads may
/// read a buffer at a time, but a thread that changes it must be alone. The default stream is used if no stream
/// is given, and the transfer mode async if no mode is given.
template <typename T>
class buffer : public detail::members<buffer<T>, T> {
    template <typename U>
    friend class buffer;
    friend class detail::members<buffer<T>, T>;
    static_assert(!std::is_const_v<T> && !std::is_volatile_v<T>,
                  "hamr: elements are neither const nor volatile: hand on a const buffer<T> instead");
    template <typename D>
    using if_deleter = std::enable_if_t<std::is_invocable_v<std::decay_t<D> &, T *>, int>;
    /// A pointer that converts to T, as characters do to a string, is one value and no array of values.
    template <typename U>
    using if_values =
        std::enable_if_t<std::is_same_v<T, U> || detail::is_number<T> || !std::is_convertible_v<const U *, T>, int>;

    /// The type of a number of elements after a stream: a template, so that a stream is never converted to a number.
    template <typename N>
    using if_count = std::enable_if_t<std::is_convertible_v<N, std::size_t>, int>;

public:
    using value_type = T;
    using allocator = buffer_allocator;
    using transfer = buffer_transfer;

    /// Without elements, in ordinary memory.
    buffer() : buffer(allocator::malloc) {}
    buffer(allocator alloc) : buffer(alloc, hamr::stream()) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode = transfer::async) : buffer(alloc, strm, mode, 0) {}

    /// n elements that are not initialised.
    buffer(allocator alloc, std::size_t n) : buffer(alloc, hamr::stream(), n) {}
    template <typename N, if_count<N> = 0>
    buffer(allocator alloc, const hamr::stream &strm, N n)
        : buffer(alloc, strm, transfer::async, static_cast<std::size_t>(n)) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t n)
        : buffer(alloc, strm, mode, one_dimension(n)) {}

    /// n elements of a value.
    buffer(allocator alloc, std::size_t n, const T &value) : buffer(alloc, hamr::stream(), n, value) {}
    template <typename N, if_count<N> = 0>
    buffer(allocator alloc, const hamr::stream &strm, N n, const T &value)
        : buffer(alloc, strm, transfer::async, static_cast<std::size_t>(n), value) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t n, const T &value)
        : buffer(alloc, strm, mode, one_dimension(n), value) {}

    /// n elements, copied from host memory and converted. The source may be changed when the constructor returns.
    template <typename U, if_values<U> = 0>
    buffer(allocator alloc, std::size_t n, const U *values) : buffer(alloc, hamr::stream(), n, values) {}
    template <typename N, typename U, if_count<N> = 0, if_values<U> = 0>
    buffer(allocator alloc, const hamr::stream &strm, N n, const U *values)
        : buffer(alloc, strm, transfer::async, static_cast<std::size_t>(n), values) {}
    template <typename U, if_values<U> = 0>
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t n, const U *values)
        : buffer(alloc, strm, mode, detail::is_object<T> ? 0 : n) {
        if constexpr (detail::is_object<T>) m_storage.assign_values(values, n, "buffer");
        else m_storage.set_values(0, values, n, "buffer");
    }

    /// Elements in a shape: buffer(alloc, {480, 640}, value).
    buffer(allocator alloc, const extents &shape) : buffer(alloc, hamr::stream(), transfer::async, shape) {}
    buffer(allocator alloc, const extents &shape, const T &value)
        : buffer(alloc, hamr::stream(), transfer::async, shape, value) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, const extents &shape)
        : m_storage(detail::place_of(alloc, strm, mode), shape, nullptr) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, const extents &shape, const T &value)
        : m_storage(detail::place_of(alloc, strm, mode), shape, &value) {}

    /// Shares size elements at ptr, which are the allocator's and on the device owner; with -1 the driver is
    /// asked. The deleter, any function object of a T *, is called once, on any thread, when nobody uses them
    /// any more. It is not called if the constructor throws.
    template <typename D, if_deleter<D> = 0>
    buffer(allocator alloc, std::size_t size, int owner, T *ptr, D &&deleter)
        : buffer(alloc, hamr::stream(), size, owner, ptr, std::forward<D>(deleter)) {}
    template <typename D, if_deleter<D> = 0>
    buffer(allocator alloc, const hamr::stream &strm, std::size_t size, int owner, T *ptr, D &&deleter)
        : buffer(alloc, strm, transfer::async, size, owner, ptr, std::forward<D>(deleter)) {}
    template <typename D, if_deleter<D> = 0>
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t size, int owner, T *ptr, D &&deleter)
        : m_storage(detail::elements<T>::adopted(detail::place_of(alloc, strm, mode), size, owner, ptr,
                                                 std::forward<D>(deleter))) {}

    /// Shares elements. After the buffer's end the allocator frees them, or the caller if take is 0.
    buffer(allocator alloc, std::size_t size, int owner, T *ptr, int take = 1)
        : buffer(alloc, hamr::stream(), size, owner, ptr, take) {}
    buffer(allocator alloc, const hamr::stream &strm, std::size_t size, int owner, T *ptr, int take = 1)
        : buffer(alloc, strm, transfer::async, size, owner, ptr, take) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t size, int owner, T *ptr, int take = 1)
        : m_storage(detail::elements<T>::taken(detail::place_of(alloc, strm, mode), size, owner, ptr, take)) {}

    /// Shares elements that a shared pointer keeps.
    buffer(allocator alloc, std::size_t size, int owner, const std::shared_ptr<T> &ptr)
        : buffer(alloc, hamr::stream(), size, owner, ptr) {}
    buffer(allocator alloc, const hamr::stream &strm, std::size_t size, int owner, const std::shared_ptr<T> &ptr)
        : buffer(alloc, strm, transfer::async, size, owner, ptr) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, std::size_t size, int owner,
           const std::shared_ptr<T> &ptr)
        : m_storage(detail::elements<T>::shared_with(detail::place_of(alloc, strm, mode), size, owner, ptr)) {}

    /// Takes over a buffer of hamr.h, whose elements must be T. A template, since objects have no such buffers.
    template <typename H, std::enable_if_t<std::is_same_v<H, hamr_buffer>, int> = 0>
    explicit buffer(H *made) : m_storage(made) {}

    /// Copies, with conversion. Allocator, stream and mode are the source's, unless they are given.
    buffer(const buffer &other) : m_storage(detail::elements<T>::copy_of(other.m_storage, nullptr)) {}
    template <typename U>
    buffer(const buffer<U> &other) : m_storage(detail::elements<T>::copy_of(other.m_storage, nullptr)) {}
    template <typename U>
    buffer(allocator alloc, const buffer<U> &other)
        : buffer(alloc, other.get_stream(), other.get_transfer_mode(), other) {}
    template <typename U>
    buffer(allocator alloc, const hamr::stream &strm, const buffer<U> &other)
        : buffer(alloc, strm, transfer::async, other) {}
    template <typename U>
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, const buffer<U> &other)
        : m_storage(copied(other, detail::place_of(alloc, strm, mode))) {}

    /// Moves, which leave other without elements. The elements are copied instead if the given allocator is not
    /// other's, or if the active device does not own the memory.
    buffer(buffer &&other) noexcept : m_storage(std::move(other.m_storage)) { other.m_pointer.reset(); }
    buffer(allocator alloc, buffer &&other)
        : buffer(alloc, other.get_stream(), other.get_transfer_mode(), std::move(other)) {}
    buffer(allocator alloc, const hamr::stream &strm, buffer &&other)
        : buffer(alloc, strm, transfer::async, std::move(other)) {}
    buffer(allocator alloc, const hamr::stream &strm, transfer mode, buffer &&other)
        : buffer(alloc == allocator::same ? other.get_allocator() : alloc, strm, mode, 0) {
        *this = std::move(other);
    }

    ~buffer() = default;

    /// The elements become other's; allocator, owner, stream and mode stay.
    buffer &operator=(const buffer &other) { return assign_from(other); }
    template <typename U>
    buffer &operator=(const buffer<U> &other) {
        return assign_from(other);
    }
    buffer &operator=(buffer &&other) {
        if (this != &other) other.changing([&] { take(other); });
        return *this;
    }

    /// Exchanges everything, including allocators, owners, streams and modes.
    void swap(buffer &other) noexcept {
        m_storage.swap(other.m_storage);
        m_pointer.swap(other.m_pointer);
        detail::told([&] { follow(), other.follow(); });
    }
    friend void swap(buffer &one, buffer &other) noexcept { one.swap(other); }

    /// Moves the elements to memory of another allocator, on the calling thread's device, unless they are there.
    int move(allocator alloc) {
        return change("buffer::move", [&](auto doing) { m_storage.move(static_cast<std::int32_t>(alloc), doing); });
    }

    /// Makes room for n elements, so that nothing moves up to that number.
    int reserve(std::size_t n) {
        return change("buffer::reserve", [&](auto doing) { m_storage.reserve(n, nullptr, doing); });
    }
    int reserve(std::size_t n, const T &value) {
        return change("buffer::reserve", [&](auto doing) { m_storage.reserve(n, &value, doing); });
    }

    /// Releases the room that capacity() has beyond size().
    int shrink_to_fit() {
        if (capacity() == size()) return 0;
        return change("buffer::shrink_to_fit", [&](auto doing) { m_storage.shrink(doing); });
    }

    /// Changes the number of elements to n. New ones have the value, or are not initialised.
    int resize(std::size_t n) { return resize_with([=] { return one_dimension(n); }, nullptr); }
    int resize(std::size_t n, const T &value) { return resize_with([=] { return one_dimension(n); }, &value); }
    int resize(const extents &shape) { return resize_with([&] { return shape; }, nullptr); }
    int resize(const extents &shape, const T &value) { return resize_with([&] { return shape; }, &value); }

    /// Releases elements and memory. The buffer can be filled again in the same place.
    int free() {
        return change("buffer::free", [&](auto doing) { m_storage.free(doing); });
    }

    std::size_t size() const noexcept { return m_storage.size(); }
    bool empty() const noexcept { return size() == 0; }
    std::size_t capacity() const noexcept { return m_storage.capacity(); }
    extents shape() const { return m_storage.shape(); }
    std::vector<std::int64_t> strides() const { return m_storage.strides(); } ///< in bytes, for each dimension
    bool is_contiguous() const noexcept { return m_storage.has_one_row(); }
    bool is_read_only() const noexcept {
        if constexpr (detail::is_object<T>) return false;
        else return m_storage.is_read_only();
    }

    /// Replaces the elements by n elements, from src_start on, of host memory or of a buffer.
    template <typename U>
    int assign(const U *src, std::size_t src_start, std::size_t n) {
        return change("buffer::assign", [&](auto doing) { m_storage.assign_values(from(src, src_start), n, doing); });
    }
    template <typename U>
    int assign(const U *src, std::size_t n) {
        return assign(src, 0, n);
    }
    int assign(std::initializer_list<T> values) { return assign(values.begin(), values.size()); }
    template <typename U>
    int assign(const buffer<U> &src, std::size_t src_start, std::size_t n) {
        return change("buffer::assign", [&](auto doing) { m_storage.assign(src.m_storage, src_start, n, doing); });
    }
    template <typename U>
    int assign(const buffer<U> &src) {
        return change("buffer::assign", [&](auto doing) { m_storage.assign_all(src.m_storage, doing); });
    }

    /// Adds n elements at the end.
    template <typename U>
    int append(const U *src, std::size_t src_start, std::size_t n) {
        return change("buffer::append", [&](auto doing) { m_storage.append_values(from(src, src_start), n, doing); });
    }
    template <typename U>
    int append(const U *src, std::size_t n) {
        return append(src, 0, n);
    }
    int append(std::initializer_list<T> values) { return append(values.begin(), values.size()); }
    template <typename U>
    int append(const buffer<U> &src, std::size_t src_start, std::size_t n) {
        return change("buffer::append", [&](auto doing) { m_storage.append(src.m_storage, src_start, n, doing); });
    }
    template <typename U>
    int append(const buffer<U> &src) {
        return append(src, 0, src.size());
    }

    /// Writes n elements from dest_start on. All of them must exist.
    template <typename U>
    int set(std::size_t dest_start, const U *src, std::size_t src_start, std::size_t n) {
        return detail::status_of([&] { m_storage.set_values(dest_start, from(src, src_start), n, "buffer::set"); });
    }
    template <typename U>
    int set(std::size_t dest_start, const buffer<U> &src, std::size_t src_start, std::size_t n) {
        return detail::status_of([&] { m_storage.set(dest_start, src.m_storage, src_start, n, "buffer::set"); });
    }
    template <typename U>
    int set(const buffer<U> &src) {
        return set(0, src, 0, src.size());
    }

    /// Sets every element to value.
    int fill(const T &value) {
        return detail::status_of([&] { m_storage.fill(value, "buffer::fill"); });
    }

    /// Reads n elements from src_start on. Elements in host memory are there when it returns.
    template <typename U>
    int get(std::size_t src_start, U *dest, std::size_t dest_start, std::size_t n) const {
        return detail::status_of(
            [&] { m_storage.get_values(src_start, dest ? dest + dest_start : dest, n, "buffer::get"); });
    }
    template <typename U>
    int get(std::size_t src_start, buffer<U> &dest, std::size_t dest_start, std::size_t n) const {
        return detail::status_of([&] { dest.m_storage.set(dest_start, m_storage, src_start, n, "buffer::get"); });
    }
    template <typename U>
    int get(buffer<U> &dest) const {
        return get(0, dest, 0, size());
    }

    /// The elements where code in the space can read them, as long as the pointer lives: in place if that code
    /// uses the memory and, for devices, the calling thread's device owns it; else in a temporary, which is
    /// valid after synchronize(), unless the mode waits.
    std::shared_ptr<const T> get_host_accessible() const {
        return accessible_in(space::host, "buffer::get_host_accessible");
    }
    std::shared_ptr<const T> get_cuda_accessible() const {
        return accessible_in(space::cuda, "buffer::get_cuda_accessible");
    }
    std::shared_ptr<const T> get_hip_accessible() const {
        return accessible_in(space::hip, "buffer::get_hip_accessible");
    }
    std::shared_ptr<const T> get_openmp_accessible() const {
        return accessible_in(space::openmp, "buffer::get_openmp_accessible");
    }
    std::shared_ptr<const T> get_device_accessible() const {
        return accessible_in(detail::device_space(), "buffer::get_device_accessible");
    }

    /// 1 if code in the space uses the allocator's memory in place, else 0.
    int host_accessible() const { return hamr::host_accessible(get_allocator()); }
    int cuda_accessible() const { return hamr::cuda_accessible(get_allocator()); }
    int hip_accessible() const { return hamr::hip_accessible(get_allocator()); }
    int openmp_accessible() const { return hamr::openmp_accessible(get_allocator()); }
    int device_accessible() const { return hamr::device_accessible(get_allocator()); }

    /// The address of element zero, for code that uses the memory in place; NULL if there is no memory.
    T *data() noexcept { return m_storage.data(); }
    const T *data() const noexcept { return m_storage.data(); }

    /// data(), kept alive even if the buffer ends or moves. The result refers to a member that follows the buffer.
    std::shared_ptr<T> &pointer() {
        m_is_followed = true;
        follow();
        return m_pointer;
    }
    const std::shared_ptr<T> &pointer() const {
        const std::lock_guard<std::recursive_mutex> alone(detail::late_changes());
        m_is_followed = true;
        follow();
        return m_pointer;
    }

    allocator get_allocator() const noexcept { return static_cast<allocator>(m_storage.allocator()); }
    int get_owner() const noexcept { return m_storage.place().device; } ///< -1 is the host
    /// For classes that were written for HAMR: always 0, since the owner is known.
    int set_owner() const noexcept { return 0; }
    int set_owner(const T *) const noexcept { return 0; }

    transfer get_transfer_mode() const noexcept { return static_cast<transfer>(m_storage.place().transfer); }

    /// The stream. If another one is assigned to it, the buffer uses that from its next use on.
    hamr::stream &get_stream() noexcept { return m_storage.on(); }
    const hamr::stream &get_stream() const noexcept { return m_storage.on(); }

    int set_stream(const hamr::stream &strm, transfer mode = transfer::async) {
        return detail::status_of(
            [&] { m_storage.set_stream(strm, static_cast<std::int32_t>(mode), "buffer::set_stream"); });
    }
    int set_transfer(transfer mode) {
        return detail::status_of(
            [&] { m_storage.set_transfer(static_cast<std::int32_t>(mode), "buffer::set_transfer"); });
    }
    int set_transfer_asynchronous() { return set_transfer(transfer::async); }
    int set_transfer_synchronous_host() { return set_transfer(transfer::sync_host); }
    int set_transfer_synchronous() { return set_transfer(transfer::sync); }
    int set_transfer_sycnhronous_host() { return set_transfer_synchronous_host(); } ///< as upstream spells it
    int set_transfer_sycnhronous() { return set_transfer_synchronous(); }

    /// Waits for all work on the elements.
    int synchronize() const {
        return detail::status_of([this] { m_storage.synchronize("buffer::synchronize"); });
    }

    /// Prints the elements, and where they are, on std::cerr.
    int print() const {
        return detail::status_of([this] { m_storage.print(); });
    }

private:
    static extents one_dimension(std::size_t n) { return extents(n); }

    template <typename U>
    static const U *from(const U *src, std::size_t start) noexcept {
        return src ? src + start : src;
    }

    template <typename U>
    static detail::elements<T> copied(const buffer<U> &other, hamr_place place) {
        if (place.allocator == HAMR_SAME_ALLOCATOR) place.device = other.get_owner();
        return detail::elements<T>::copy_of(other.m_storage, &place);
    }

    std::shared_ptr<const T> accessible_in(space where, const char *doing) const {
        return std::static_pointer_cast<const T>(m_storage.accessible(where, doing));
    }

    template <typename U>
    buffer &assign_from(const buffer<U> &other) {
        if (static_cast<const void *>(this) != static_cast<const void *>(&other))
            changing([&] { m_storage.assign_all(other.m_storage, "buffer::operator="); });
        return *this;
    }

    void take(buffer &other) {
        if constexpr (!detail::is_object<T>) {
            const hamr_place mine = m_storage.place(), its = other.m_storage.place();
            if (mine.allocator != its.allocator || mine.device != its.device) {
                assign_from(other);
                const detail::elements<T> gone(std::move(other.m_storage));
                return;
            }
        }
        changing([&] { m_storage.take(other.m_storage, "buffer::operator="); });
    }

    void follow() const {
        if (m_is_followed && m_pointer.get() != m_storage.data()) m_pointer = m_storage.shared();
    }

    void follow_new() {
        m_storage.know_new();
        follow();
    }

    /// Without this the member of pointer() would keep memory that the buffer has left.
    template <typename F>
    void changing(F &&function) {
        m_pointer.reset();
        try {
            function();
        } catch (...) {
            follow_new();
            throw;
        }
        follow_new();
    }

    template <typename F>
    int change(const char *doing, F &&function) {
        return detail::status_of([&] { changing([&] { function(doing); }); });
    }

    template <typename F>
    int resize_with(F &&shape, const T *value) {
        return change("buffer::resize", [&](auto doing) { m_storage.resize(shape(), value, doing); });
    }

    detail::elements<T> m_storage;
    mutable std::shared_ptr<T> m_pointer; // empty until pointer() is called
    mutable bool m_is_followed = false;   // whether somebody may have a reference to it
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
