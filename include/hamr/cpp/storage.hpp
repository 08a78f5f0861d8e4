/// What every buffer does, for all types of elements.
#ifndef HAMR_CPP_STORAGE_HPP
#define HAMR_CPP_STORAGE_HPP

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "allocator.hpp"
#include "element.hpp"
#include "extents.hpp"
#include "openmp.hpp"
#include "stream.hpp"
#include "view.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

inline hamr_place place_of(buffer_allocator allocator, const stream &on, buffer_transfer transfer,
                           int device = HAMR_CURRENT_DEVICE) {
    return {static_cast<std::int32_t>(allocator), device < 0 ? openmp_device::of(allocator) : device, on.native(),
            static_cast<std::int32_t>(transfer), 0};
}

inline std::int64_t count(std::size_t n, const char *doing) {
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()))
        fail(HAMR_ERROR_VALUE, doing, std::to_string(n) + " elements: accepted are numbers that fit in 63 bits");
    return static_cast<std::int64_t>(n);
}

struct releases {
    void operator()(hamr_buffer *buffer) const noexcept { hamr_release(buffer); }
};
using owned_buffer = std::unique_ptr<hamr_buffer, releases>;

/// n existing elements from start on, in place if they lie in one row of memory.
inline owned_buffer part_of(const hamr_buffer *from, std::size_t start, std::size_t n, const char *doing) {
    hamr_buffer *made = nullptr;
    const std::int64_t all = -1, wanted = count(n, doing);
    owned_buffer flat;
    if (hamr_info_of(from)->ndim != 1) {
        check(hamr_reshape(from, &made, 1, &all, 0), doing);
        flat.reset(made);
        from = made;
    }
    const std::int64_t stride = hamr_info_of(from)->strides[0];
    check(hamr_view(from, &made, n ? count(start, doing) * stride : 0, 0, 1, &wanted, &stride), doing);
    return owned_buffer(made);
}

/// For members that reading functions may have to change: many threads may be in them at once.
inline std::recursive_mutex &late_changes() {
    static std::recursive_mutex lock;
    return lock;
}

/// The info of a storage without a buffer.
inline constexpr hamr_info no_elements{};

/// A buffer of the library. A storage whose elements were moved away has none; when it is needed, it is made
/// anew in the same place. On a named stream the storage keeps its buffer, since streams end, and only the
/// library's buffers are told of that.
class storage {
public:
    storage(std::int32_t element, const hamr_place &place) noexcept
        : m_place(place), m_element(element), m_stream(stream_of(place)), m_told(place.stream) {}

    storage(std::int32_t element, const hamr_place &place, const extents &shape, const void *value, const char *doing)
        : storage(element, place) {
        check(hamr_create(&m_buffer, element, shape.rank(), shape.data(), &place, value), doing);
        know();
    }

    /// Takes the buffer over.
    storage(std::int32_t element, hamr_buffer *buffer) noexcept : m_buffer(buffer), m_place(), m_element(element) {
        know();
        m_stream = stream_of(place());
        m_told = m_stream.native();
    }

    storage(storage &&other) noexcept
        : m_place(other.place()), m_element(other.m_element), m_stream(other.on()), m_told(other.m_told) {
        m_buffer = other.give_up(m_place, m_info);
    }

    storage &operator=(storage &&other) noexcept {
        storage moved(std::move(other));
        swap(moved);
        return *this;
    }

    ~storage() {
        if (m_buffer) hamr_release(m_buffer);
    }

    void swap(storage &other) noexcept {
        std::swap(m_buffer, other.m_buffer);
        std::swap(m_info, other.m_info);
        std::swap(m_place, other.m_place);
        std::swap(m_told, other.m_told);
        m_stream.swap(other.m_stream);
    }

    /// Never NULL. Threads may do this at the same time.
    hamr_buffer *get() const {
        hamr_buffer *found = __atomic_load_n(&m_buffer, __ATOMIC_ACQUIRE), *made = nullptr;
        const std::int64_t none = 0;
        if (!found) {
            check(hamr_create(&made, m_element, 1, &none, &m_place, nullptr), "buffer");
            if (__atomic_compare_exchange_n(&m_buffer, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                found = made;
            else hamr_release(made);
        }
        find_stream(); // another thread may do so now
        if (m_stream.native() != __atomic_load_n(&m_told, __ATOMIC_ACQUIRE)) tell_stream(found);
        return found;
    }

    /// For the only user, after a call that may have made a buffer.
    void know_new() noexcept {
        if (!m_info->shape) know();
    }

    /// The stream. The library learns of an assigned one before the next use.
    stream &on() noexcept {
        find_stream();
        return m_stream;
    }
    const stream &on() const noexcept {
        find_stream();
        return m_stream;
    }

    void set_stream(const stream &wanted, std::int32_t transfer, const char *doing) {
        check(hamr_set_stream(get(), wanted.native(), transfer), doing);
        m_stream = stream::of(wanted.native(), wanted.backend());
        m_told = wanted.native();
    }
    void set_transfer(std::int32_t transfer, const char *doing) { check(hamr_set_transfer(get(), transfer), doing); }
    void synchronize(const char *doing) const { check(hamr_synchronize(get()), doing); }

    /// The info, without a call, also if there is no buffer: a buffer that was made for reading has no elements.
    const hamr_info &known() const noexcept { return *m_info; }

    /// NULL if the elements were moved away.
    const hamr_info *info() const noexcept {
        const hamr_buffer *found = __atomic_load_n(&m_buffer, __ATOMIC_ACQUIRE);
        return found ? hamr_info_of(found) : nullptr;
    }

    bool is_read_only() const noexcept {
        const hamr_info *known = info();
        return known && known->flags & HAMR_INFO_READ_ONLY;
    }

    void *data() const noexcept { return m_info->flags & HAMR_INFO_ADDRESS ? m_info->address : asked_address(); }

    std::int32_t allocator() const noexcept { return m_info->shape ? m_info->allocator : m_place.allocator; }
    hamr_place place() const noexcept {
        const hamr_info *known = info();
        if (!known) return m_place;
        return {known->allocator, known->device, known->stream, known->transfer, 0};
    }

    owned_buffer copy(std::int32_t element, const hamr_place *place, const char *doing) const {
        hamr_buffer *made = nullptr;
        check(hamr_copy(get(), &made, element, place), doing);
        return owned_buffer(made);
    }

    /// The elements for code in a space: in place, else in a temporary. They last as long as the result, which
    /// is empty if there are no elements.
    std::shared_ptr<const void> accessible(space where, const char *doing) const {
        const hamr_info *known = info();
        if (!known || !known->size) return {};
        owned_buffer contiguous;
        if (!is_contiguous(*known)) contiguous = copy(m_element, nullptr, doing);
        hamr_handle *handle = nullptr;
        check(hamr_access(contiguous ? contiguous.get() : get(), static_cast<std::int32_t>(where),
                          openmp_device::of(where), HAMR_PLAIN, &handle),
              doing);
        return std::shared_ptr<const void>(hamr_handle_data(handle),
                                           [handle](const void *) { hamr_release_handle(handle); });
    }

    /// The memory. The result keeps it alive.
    std::shared_ptr<void> shared() const {
        const hamr_info *known = info();
        void *const elements = data();
        if (!elements) return {};
        hamr_buffer *made = nullptr;
        check(hamr_view(get(), &made, 0, 0, known->ndim, known->shape, known->strides), "buffer::pointer");
        return std::shared_ptr<void>(elements, [made](void *) { hamr_release(made); });
    }

    hamr_handle *open(space where, int device, std::int32_t mode, const char *doing) const {
        hamr_handle *handle = nullptr;
        check(hamr_access(get(), static_cast<std::int32_t>(where), device, mode, &handle), doing);
        return handle;
    }

    /// Takes over the elements of a storage of the same allocator and owner, and keeps its own stream and mode.
    void take(storage &other, const char *doing) {
        const hamr_place mine = place();
        if (!other.m_buffer) {
            if (m_buffer) check(hamr_free(m_buffer), doing);
            return;
        }
        const hamr_info *info = nullptr;
        other.find_stream();
        owned_buffer its(other.give_up(other.place(), info));
        try {
            check(hamr_set_stream(its.get(), on().native(), mine.transfer), doing);
        } catch (...) {
            if (other.m_buffer) hamr_swap(other.m_buffer, its.get());
            else other.m_buffer = its.release();
            other.know();
            throw;
        }
        m_told = m_stream.native();
        if (m_buffer) hamr_release(m_buffer);
        m_buffer = its.release();
        m_info = info;
    }

    void print_place(std::size_t size, std::size_t capacity) const {
        const hamr_place where = place();
        std::cerr << "allocator " << get_allocator_name(static_cast<buffer_allocator>(where.allocator)) << ", owner "
                  << where.device << ", size " << size << ", capacity " << capacity << ", address " << data() << "\n";
    }

    void print() const {
        const hamr_info *known = info();
        char *text = nullptr;
        check(hamr_text(get(), 0, &text), "buffer::print");
        const std::unique_ptr<char, decltype(&hamr_free_text)> owner(text, hamr_free_text);
        print_place(known ? static_cast<std::size_t>(known->size) : 0,
                    known ? static_cast<std::size_t>(known->capacity) : 0);
        std::cerr << text << std::endl;
    }

private:
    static stream stream_of(const hamr_place &place) noexcept {
        return stream::of(place.stream, stream_backend(static_cast<buffer_allocator>(place.allocator)));
    }

    void know() noexcept { m_info = m_buffer ? hamr_info_of(m_buffer) : &no_elements; }

    /// Sets the buffer with the elements that were another storage's, and its info. The stream is known.
    hamr_buffer *give_up(const hamr_place &where, const hamr_info *&its) noexcept {
        hamr_buffer *made = nullptr;
        if (m_buffer && m_stream && hamr_take(m_buffer, &made) == HAMR_OK) {
            its = hamr_info_of(made);
            return made;
        }
        made = std::exchange(m_buffer, nullptr);
        its = std::exchange(m_info, &no_elements);
        m_place = where;
        m_place.stream = nullptr;
        m_stream = stream_of(m_place);
        m_told = nullptr;
        return made;
    }

    /// The address of memory. The library then knows that programs have it.
    __attribute__((noinline, pure)) void *asked_address() const noexcept {
        const hamr_buffer *found = __atomic_load_n(&m_buffer, __ATOMIC_ACQUIRE);
        return found ? hamr_data(found) : hamr_no_pointer();
    }

    void tell_stream(hamr_buffer *to) const {
        const std::lock_guard<std::recursive_mutex> alone(late_changes());
        void *const wanted = m_stream.native();
        if (wanted == m_told) return;
        check(hamr_set_stream(to, wanted, hamr_info_of(to)->transfer), "buffer::get_stream");
        __atomic_store_n(&m_told, wanted, __ATOMIC_RELEASE);
    }

    /// Only the library's buffers leave streams that end.
    void find_stream() const noexcept {
        const hamr_info *known = m_info->shape ? m_info : info();
        if (!known || known->stream == __atomic_load_n(&m_told, __ATOMIC_ACQUIRE)) return;
        const std::lock_guard<std::recursive_mutex> alone(late_changes());
        if (known->stream == m_told) return; // another thread has found it, and others read it now
        if (m_stream.native() == m_told) m_stream = stream_of(place());
        __atomic_store_n(&m_told, known->stream, __ATOMIC_RELEASE);
    }

    mutable hamr_buffer *m_buffer = nullptr;
    const hamr_info *m_info = &no_elements; // the library's of m_buffer, which always tells what is so
    hamr_place m_place; // of m_buffer where that is NULL
    std::int32_t m_element;
    mutable stream m_stream;
    mutable void *m_told; // what the library has for it
};

/// The place of a copy of elements: their own, unless one is given.
template <typename S>
hamr_place place_of_copy(const S &source, const hamr_place *given) {
    hamr_place its = source.place();
    its.stream = source.on().native();
    if (!given) return its;
    hamr_place wanted = *given;
    if (wanted.allocator == HAMR_SAME_ALLOCATOR) {
        wanted.allocator = its.allocator;
        wanted.device = its.device;
    }
    return wanted;
}

/// The deleter of foreign memory: any function object of a pointer, called once.
template <typename T, typename D>
struct deleter_of {
    D function;

    static void call(void *data, void *self) noexcept {
        const std::unique_ptr<deleter_of> owner(static_cast<deleter_of *>(self));
        owner->function(static_cast<T *>(data));
    }
};

/// Keeps shared memory alive.
template <typename T>
struct keeps {
    std::shared_ptr<T> memory;
    void operator()(T *) noexcept { memory.reset(); }
};

/// Existing memory. Without a deleter it stays the caller's. For an owner of -1 the core asks the driver.
inline hamr_buffer *adopt(std::int32_t element, hamr_place place, std::size_t size, int owner, void *data,
                          std::uint32_t flags, hamr_deleter deleter, void *context) {
    const std::int64_t n = count(size, "buffer");
    hamr_buffer *made = nullptr;
    place.device = owner;
    check(hamr_adopt(&made, data, element, 1, &n, nullptr, &place, flags, deleter, context), "buffer");
    return made;
}

template <typename T, typename D>
hamr_buffer *adopt_with(const hamr_place &place, std::size_t size, int owner, T *data, D &&function) {
    using deleter = deleter_of<T, std::decay_t<D>>;
    if (size > static_cast<std::size_t>(-1) / scale<T>)
        fail(HAMR_ERROR_VALUE, "buffer", std::to_string(size) + " elements are too many");
    std::unique_ptr<deleter> context(new deleter{std::forward<D>(function)});
    hamr_buffer *made = adopt(element<T>(), place, size * scale<T>, owner, data, 0, deleter::call, context.get());
    context.release();
    return made;
}

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
