/// Elements that are constructed, copied and destroyed: strings, shared pointers, classes. They live in the host's
/// memory.
#ifndef HAMR_CPP_OBJECTS_HPP
#define HAMR_CPP_OBJECTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage.hpp"
#include "values.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// Memory of an allocator in which n objects are constructed. It ends with them.
template <typename T>
class object_block {
public:
    object_block(const hamr_place &place, std::size_t room, const char *doing) : m_room(room) {
        if (room > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / sizeof(T))
            fail(HAMR_ERROR_VALUE, doing,
                 std::to_string(room) + " elements of " + std::to_string(sizeof(T)) +
                     " bytes: accepted are up to 2**63 bytes");
        const std::int64_t bytes = static_cast<std::int64_t>(room * sizeof(T));
        hamr_buffer *made = nullptr;
        check(hamr_create(&made, HAMR_UINT8, 1, &bytes, &place, nullptr), doing);
        m_memory.reset(made);
        m_first = static_cast<T *>(hamr_data(made));
    }
    object_block(const object_block &) = delete;
    object_block &operator=(const object_block &) = delete;
    ~object_block() { std::destroy_n(m_first, m_size); }

    T *first() const noexcept { return m_first; }
    std::size_t room() const noexcept { return m_room; }
    std::size_t size() const noexcept { return m_size; }

    /// Notes that objects were constructed up to a position.
    void holds(std::size_t n) noexcept { m_size = n; }

    /// Destroys objects at the end.
    void shorten(std::size_t n) noexcept {
        std::destroy_n(m_first + n, m_size - n);
        m_size = n;
    }

private:
    T *m_first = nullptr;
    std::size_t m_size = 0, m_room;
    owned_buffer m_memory;
};

/// Objects that exist already; their allocator frees them.
template <typename T>
struct ends_objects {
    std::int32_t allocator;
    std::size_t size;
    void operator()(T *first) const noexcept {
        if (allocator == HAMR_ALLOCATOR_CPP) {
            delete[] first;
        } else {
            std::destroy_n(first, size);
            std::free(first);
        }
    }
};

template <typename T>
class objects {
public:
    using value_type = T;

    objects(const hamr_place &place, const extents &shape, const T *value) : objects(place) {
        const std::size_t n = one_row(shape, "buffer");
        if (value) resize(shape, value, "buffer");
        else if (n) resize(shape, nullptr, "buffer");
    }

    /// A copy, with conversion, in the source's place unless one is given.
    template <typename S>
    static objects copy_of(const S &source, const hamr_place *place) {
        const auto values = source.on_host(0, source.size(), "buffer");
        objects made(place_of_copy(source, place));
        made.assign_values(values.get(), source.size(), "buffer");
        return made;
    }

    static objects taken(const hamr_place &place, std::size_t size, int, T *ptr, int take) {
        if (!take) return shared_with(place, size, -1, std::shared_ptr<T>(std::shared_ptr<T>(), ptr));
        if (place.allocator != HAMR_ALLOCATOR_CPP && place.allocator != HAMR_ALLOCATOR_MALLOC)
            fail(HAMR_ERROR_VALUE, "buffer",
                 "objects that hamr is to free are of the allocators malloc and cpp: give a deleter");
        return adopted(place, size, -1, ptr, ends_objects<T>{place.allocator, size});
    }
    template <typename D>
    static objects adopted(const hamr_place &place, std::size_t size, int, T *ptr, D &&deleter) {
        objects made(place);
        made.m_first = std::shared_ptr<T>(
            ptr, keeps_deleter<std::decay_t<D>>{std::make_shared<std::decay_t<D>>(std::forward<D>(deleter))});
        made.m_size = ptr ? size : 0;
        return made;
    }
    static objects shared_with(const hamr_place &place, std::size_t size, int, const std::shared_ptr<T> &ptr) {
        objects made(place);
        made.m_first = ptr;
        made.m_size = ptr ? size : 0;
        return made;
    }

    objects(objects &&other) noexcept
        : m_first(std::move(other.m_first)),
          m_block(std::exchange(other.m_block, nullptr)),
          m_size(std::exchange(other.m_size, 0)),
          m_place(other.m_place),
          m_stream(other.m_stream) {}
    objects &operator=(objects &&other) noexcept {
        objects moved(std::move(other));
        swap(moved);
        return *this;
    }

    void swap(objects &other) noexcept {
        m_first.swap(other.m_first);
        std::swap(m_block, other.m_block);
        std::swap(m_size, other.m_size);
        std::swap(m_place, other.m_place);
        m_stream.swap(other.m_stream);
    }

    void know_new() const noexcept {}

    /// hamr.h has no objects.
    hamr_buffer *get() const {
        static_assert(!sizeof(T *),
                      "hamr: this is for elements that are numbers or plain structs, which hamr.h can have");
        return nullptr;
    }

    std::size_t size() const noexcept { return m_size; }
    std::size_t capacity() const noexcept { return m_block ? m_block->room() : m_size; }
    T *data() const noexcept { return m_first.get(); }
    std::shared_ptr<T> shared() const noexcept { return m_first; }
    extents shape() const { return extents(m_size); }
    std::vector<std::int64_t> strides() const { return {static_cast<std::int64_t>(sizeof(T))}; }
    bool has_one_row() const noexcept { return true; }
    std::int32_t allocator() const noexcept { return m_place.allocator; }
    hamr_place place() const noexcept { return m_place; }

    stream &on() noexcept { return m_stream; }
    const stream &on() const noexcept { return m_stream; }
    void set_stream(const stream &wanted, std::int32_t transfer, const char *doing) {
        set_transfer(transfer, doing);
        m_stream = stream::of(wanted.native(), wanted.backend());
    }
    void set_transfer(std::int32_t transfer, const char *doing) {
        if (transfer < HAMR_ASYNC || transfer > HAMR_SYNC)
            fail(HAMR_ERROR_VALUE, doing, "transfer is " + std::to_string(transfer) + ": accepted are 0 to 2");
        m_place.transfer = transfer;
    }
    void synchronize(const char *) const noexcept {} // nothing works on objects but the host

    void reserve(std::size_t n, const T *, const char *doing) {
        if (n > capacity() || !is_alone())
            rebuild(m_place, std::max(n, m_size), m_size, doing, [](T *, std::size_t) {});
    }

    void resize(const extents &shape, const T *value, const char *doing) {
        const std::size_t n = one_row(shape, doing);
        change_size(n, doing, [&](T *at, std::size_t) {
            if constexpr (std::is_copy_constructible_v<T>) {
                if (value) return construct(at, *value);
            } else if (value) {
                fail(HAMR_ERROR_TYPE, doing, "a value for elements that cannot be copied: accepted is none");
            }
            if constexpr (std::is_default_constructible_v<T>) ::new (static_cast<void *>(at)) T();
            else fail(HAMR_ERROR_TYPE, doing, "the elements have no default constructor: accepted is a value for them");
        });
    }

    void shrink(const char *doing) {
        rebuild(m_place, m_size, m_size, doing, [](T *, std::size_t) {});
    }

    void fill(const T &value, const char *) {
        const T kept(value); // it may be one of the elements
        for (std::size_t i = 0; i < m_size; i++) data()[i] = kept;
    }

    void free(const char *) noexcept {
        m_first.reset();
        m_block = nullptr;
        m_size = 0;
    }

    void move(std::int32_t allocator, const char *doing) {
        hamr_place there = m_place;
        if (allocator == m_place.allocator) return;
        there.allocator = allocator;
        check_place(there, doing);
        rebuild(there, m_size, m_size, doing, [](T *, std::size_t) {});
        m_place = there;
    }

    template <typename U>
    void assign_values(const U *values, std::size_t n, const char *doing) {
        check_values(values, n, doing);
        rebuild(m_place, n, 0, doing, [&](T *at, std::size_t i) { construct(at, values[i]); }, n);
    }
    template <typename U>
    void append_values(const U *values, std::size_t n, const char *doing) {
        check_values(values, n, doing);
        if (n > std::numeric_limits<std::size_t>::max() - m_size)
            fail(HAMR_ERROR_VALUE, doing, std::to_string(n) + " elements are too many");
        change_size(m_size + n, doing, [&](T *at, std::size_t i) { construct(at, values[i]); });
    }
    template <typename U>
    void set_values(std::size_t at, const U *values, std::size_t n, const char *doing) {
        check_values(values, n, doing);
        check_own(at, n, doing);
        assign_each(data() + at, values, n);
    }
    template <typename U>
    void get_values(std::size_t start, U *values, std::size_t n, const char *doing) const {
        check_values(values, n, doing);
        check_own(start, n, doing);
        assign_each(values, static_cast<const T *>(data()) + start, n);
    }

    template <typename S>
    void assign_all(const S &source, const char *doing) {
        assign(source, 0, source.size(), doing);
    }
    template <typename S>
    void assign(const S &source, std::size_t start, std::size_t n, const char *doing) {
        assign_values(source.on_host(start, n, doing).get(), n, doing);
    }
    template <typename S>
    void append(const S &source, std::size_t start, std::size_t n, const char *doing) {
        auto values = source.on_host(start, n, doing);
        const auto *first = values.get();
        if constexpr (std::is_same_v<S, objects>)
            values.reset(); // of this buffer's own elements it would be another user
        append_values(first, n, doing);
    }
    template <typename S>
    void set(std::size_t at, const S &source, std::size_t start, std::size_t n, const char *doing) {
        set_values(at, source.on_host(start, n, doing).get(), n, doing);
    }

    std::shared_ptr<const T> on_host(std::size_t start, std::size_t n, const char *doing) const {
        check_part(m_size, start, n, doing);
        return std::shared_ptr<const T>(m_first, m_first.get() + start);
    }

    std::shared_ptr<const void> accessible(space where, const char *doing) const {
        if (where != space::host) fail_for_objects(doing);
        std::shared_ptr<const void> found;
        if (m_size) found = m_first;
        return found;
    }

    /// Takes over the elements, and keeps allocator, stream and mode.
    void take(objects &other, const char *doing) {
        const hamr_place its = other.m_place;
        other.move(m_place.allocator, doing);
        other.m_place = its;
        m_first = std::move(other.m_first);
        m_block = std::exchange(other.m_block, nullptr);
        m_size = std::exchange(other.m_size, 0);
    }

    void print() const {
        std::cerr << "allocator " << get_allocator_name(static_cast<buffer_allocator>(m_place.allocator))
                  << ", owner -1, size " << m_size << ", capacity " << capacity() << ", address "
                  << static_cast<const void *>(data()) << "\n";
        print_values(data(), m_size);
    }

private:
    /// For a function object that is called once: an exception while it is stored must not call it.
    template <typename D>
    struct keeps_deleter {
        std::shared_ptr<D> function;
        void operator()(T *first) { (*function)(first); }
    };

    explicit objects(const hamr_place &place)
        : m_place(place),
          m_stream(stream::of(place.stream, stream_backend(static_cast<buffer_allocator>(place.allocator)))) {
        static_assert(alignof(T) <= 64, "hamr: elements are aligned to 64 bytes at most");
        static_assert(!std::is_trivially_copyable_v<T>,
                      "hamr: the type of the elements was not complete where a buffer of them was first used");
        check_place(place, "buffer");
        m_place.stream = nullptr;
        m_place.device = HAMR_CURRENT_DEVICE;
    }

    [[noreturn]] static void fail_for_objects(const char *doing) {
        fail(
            HAMR_ERROR_TYPE, doing,
            "objects are not enabled on devices: elements with constructors or destructors live in the host's memory, "
            "as of malloc and cpp");
    }

    static void check_place(const hamr_place &place, const char *doing) {
        switch (place.allocator) {
#define HAMR_HOST_ONLY(which, number, name, backend, kind, ...) \
    case number: \
        if (static_cast<int>(kind) != HAMR_PAGEABLE && static_cast<int>(kind) != HAMR_PINNED) fail_for_objects(doing); \
        return;
            HAMR_ALLOCATOR_FACTS(HAMR_HOST_ONLY)
#undef HAMR_HOST_ONLY
        default:
            fail(HAMR_ERROR_VALUE, doing,
                 "allocator is " + std::to_string(place.allocator) +
                     ": accepted are malloc, cpp and others of the host's memory");
        }
    }

    static std::size_t one_row(const extents &shape, const char *doing) {
        if (shape.rank() != 1 || shape[0] < 0)
            fail(HAMR_ERROR_VALUE, doing,
                 "elements that hamr has no type for have one dimension: accepted is extents(n)");
        return static_cast<std::size_t>(shape[0]);
    }

    void check_own(std::size_t start, std::size_t n, const char *doing) const {
        if (start > m_size || n > m_size - start)
            fail(HAMR_ERROR_INDEX, doing,
                 "n is " + std::to_string(n) + " from element " + std::to_string(start) + " on: the buffer has " +
                     std::to_string(m_size));
    }

    /// Assigns other elements to these; they may be some of the same.
    template <typename D, typename S>
    static void assign_each(D *to, const S *from, std::size_t n) {
        const bool backwards = std::less<const void *>()(from, to) && !std::less<const void *>()(from + n, to);
        for (std::size_t i = 0; i < n; i++) assign_to(to[backwards ? n - 1 - i : i], from[backwards ? n - 1 - i : i]);
    }

    bool is_alone() const noexcept {
        if (!m_block) return !m_first;
        if (m_first.use_count() != 1) return false;
        const std::shared_ptr<T> ordered(
            m_first); // its end comes after what other threads did before they gave up theirs
        return true;
    }

    /// Changes the number of elements to n; make(address, i) constructs the new ones. Elements that are shared
    /// stay as they are.
    template <typename F>
    void change_size(std::size_t n, const char *doing, F &&make) {
        if (n == m_size) return;
        if (!m_block || !is_alone() || n > m_block->room()) {
            const std::size_t kept = std::min(n, m_size);
            const std::size_t room = n > capacity() && m_size ? std::max(n, 2 * capacity()) : n;
            return rebuild(m_place, room, kept, doing, make, n - kept);
        }
        if (n < m_size) {
            m_block->shorten(n);
        } else {
            unfinished<T> made(data() + m_size);
            for (std::size_t i = 0; i < n - m_size; i++, made.made()) make(made.next(), i);
            made.keep();
            m_block->holds(n);
        }
        m_size = n;
    }

    /// New memory with the first of these elements, and after them new ones that make(address, i) constructs.
    template <typename F>
    void rebuild(const hamr_place &place, std::size_t room, std::size_t kept, const char *doing, F &&make,
                 std::size_t more = 0) {
        if (!room) return free(doing);
        auto block = std::make_shared<object_block<T>>(place, room, doing);
        unfinished<T> made(block->first() + kept),
            moved(block->first()); // new ones first: they may be made of what is here
        for (std::size_t i = 0; i < more; i++, made.made()) make(made.next(), i);
        const bool alone = is_alone();
        for (std::size_t i = 0; i < kept; i++, moved.made()) copy_or_move(moved.next(), data()[i], alone, doing);
        made.keep();
        moved.keep();
        block->holds(kept + more);
        m_block = block.get();
        m_first = std::shared_ptr<T>(block, block->first());
        m_size = kept + more;
    }

    static void copy_or_move(T *to, T &from, bool alone, const char *doing) {
        if constexpr (!std::is_copy_constructible_v<T>) {
            if (!alone) fail(HAMR_ERROR_IN_USE, doing, "elements that cannot be copied are in use elsewhere");
            ::new (static_cast<void *>(to)) T(std::move(from));
        } else if (std::is_nothrow_move_constructible_v<T> && alone) {
            ::new (static_cast<void *>(to)) T(std::move(from));
        } else {
            ::new (static_cast<void *>(to)) T(static_cast<const T &>(from));
        }
    }

    std::shared_ptr<T> m_first;
    object_block<T> *m_block = nullptr; // what m_first is in, unless it was made elsewhere
    std::size_t m_size = 0;
    hamr_place m_place;
    stream m_stream;
};

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
