/// Elements that are only their bytes: numbers, and plain structs, which are bytes to the core.
#ifndef HAMR_CPP_PLAIN_HPP
#define HAMR_CPP_PLAIN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// The number of the core's elements in n elements of T.
template <typename T>
std::int64_t core_count(std::size_t n, const char *doing) {
    const std::int64_t counted = count(n, doing);
    if constexpr (scale<T> != 1) {
        if (n > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / scale<T>)
            fail(HAMR_ERROR_VALUE, doing,
                 std::to_string(n) + " elements of " + std::to_string(sizeof(T)) +
                     " bytes: accepted are up to 2**63 bytes");
    }
    return counted * static_cast<std::int64_t>(scale<T>);
}

/// A shape of elements of T as the core needs it: for numbers the same one, without a copy.
template <typename T>
decltype(auto) core_shape(const extents &shape, const char *doing) {
    if constexpr (scale<T> == 1) {
        return (shape);
    } else {
        if (shape.rank() != 1 || shape[0] < 0)
            fail(HAMR_ERROR_VALUE, doing,
                 "elements that hamr has no type for have one dimension: accepted is extents(n)");
        return extents(core_count<T>(static_cast<std::size_t>(shape[0]), doing));
    }
}

template <typename T>
class plain : public storage {
    static_assert(alignof(T) <= 64, "hamr: elements are aligned to 64 bytes at most");

public:
    plain(const hamr_place &place, const extents &shape, const T *value)
        : storage(element<T>(), place, core_shape<T>(shape, "buffer"), scale<T> == 1 ? value : nullptr, "buffer") {
        if constexpr (scale<T> != 1) {
            if (value) fill(0, size(), *value, "buffer");
        }
    }

    /// Takes over a buffer of hamr.h.
    explicit plain(hamr_buffer *made) : storage(element<T>(), checked(made)) {}

    /// A copy, with conversion, in the source's place unless one is given.
    template <typename S>
    static plain copy_of(const S &source, const hamr_place *place) {
        using U = typename S::value_type;
        if constexpr (is_core_copy<T, U>) {
            return plain(source.copy(element<T>(), place, "buffer").release());
        } else {
            const auto values = source.on_host(0, source.size(), "buffer");
            plain made(place_of_copy(source, place), extents(0), nullptr);
            made.assign_values(values.get(), source.size(), "buffer");
            return made;
        }
    }

    static plain taken(const hamr_place &place, std::size_t size, int owner, T *ptr, int take) {
        return plain(adopt(element<T>(), place, static_cast<std::size_t>(core_count<T>(size, "buffer")), owner, ptr,
                           take ? HAMR_ADOPT_TAKE : 0, nullptr, nullptr));
    }
    template <typename D>
    static plain adopted(const hamr_place &place, std::size_t size, int owner, T *ptr, D &&deleter) {
        return plain(adopt_with<T>(place, size, owner, ptr, std::forward<D>(deleter)));
    }
    static plain shared_with(const hamr_place &place, std::size_t size, int owner, const std::shared_ptr<T> &ptr) {
        return adopted(place, size, owner, ptr.get(), keeps<T>{ptr});
    }

    using value_type = T;

    std::size_t size() const noexcept { return static_cast<std::size_t>(known().size) / scale<T>; }
    std::size_t capacity() const noexcept { return static_cast<std::size_t>(known().capacity) / scale<T>; }
    T *data() const noexcept { return static_cast<T *>(storage::data()); }
    std::shared_ptr<T> shared() const { return std::static_pointer_cast<T>(storage::shared()); }
    bool has_one_row() const noexcept {
        return is_contiguous(known(), scale<T> == 1 ? static_cast<std::int64_t>(sizeof(T)) : 1);
    }

    extents shape() const {
        const hamr_info *known = info();
        if (scale<T> != 1 || !known) return extents(size());
        return extents(listed(known->shape, known->ndim));
    }
    std::vector<std::int64_t> strides() const {
        const hamr_info *known = info();
        if (scale<T> != 1 || !known) return {static_cast<std::int64_t>(sizeof(T))};
        return listed(known->strides, known->ndim);
    }

    void reserve(std::size_t n, const T *value, const char *doing) {
        const std::size_t before = size();
        if (scale<T> == 1 || !value || n <= before)
            return check(hamr_reserve(get(), core_count<T>(n, doing), scale<T> == 1 ? value : nullptr), doing);
        check(hamr_reserve(get(), core_count<T>(n, doing), nullptr), doing);
        resize(extents(n), value, doing);
        resize(extents(before), nullptr, doing);
    }

    void resize(const extents &wanted, const T *value, const char *doing) {
        const extents &shape = core_shape<T>(wanted, doing);
        if constexpr (scale<T> == 1) {
            check(hamr_resize(get(), shape.rank(), shape.data(), value), doing);
        } else {
            const std::size_t before = size(), after = static_cast<std::size_t>(wanted[0]);
            const scratch<T> one(value && after > before ? value : nullptr, value && after > before ? 1 : 0,
                                 doing); // *value may be one of ours
            check(hamr_resize(get(), 1, shape.data(), nullptr), doing);
            if (value && after > before) fill(before, after - before, *one.data(), doing);
        }
    }

    void shrink(const char *doing) {
        storage smaller(element<T>(), copy(element<T>(), nullptr, doing).release());
        take(smaller, doing);
    }

    void fill(const T &value, const char *doing) {
        if constexpr (is_number<T>) check(hamr_fill(get(), element<T>(), &value), doing);
        else fill(0, size(), T(value), doing); // it may be one of the elements
    }

    void free(const char *doing) { check(hamr_free(get()), doing); }
    void move(std::int32_t allocator, const char *doing) {
        check(hamr_move(get(), allocator, openmp_device::of(static_cast<buffer_allocator>(allocator))), doing);
    }

    template <typename U>
    void assign_values(const U *values, std::size_t n, const char *doing) {
        with_values(
            values, n, doing,
            [&](const T *own) { return hamr_assign_values(get(), element<T>(), own, core_count<T>(n, doing)); },
            [&](auto type) { return hamr_assign_values(get(), type, values, count(n, doing)); });
    }
    template <typename U>
    void append_values(const U *values, std::size_t n, const char *doing) {
        with_values(
            values, n, doing,
            [&](const T *own) { return hamr_append_values(get(), element<T>(), own, core_count<T>(n, doing)); },
            [&](auto type) { return hamr_append_values(get(), type, values, count(n, doing)); });
    }
    template <typename U>
    void set_values(std::size_t at, const U *values, std::size_t n, const char *doing) {
        const std::int64_t first = core_count<T>(at, doing);
        with_values(
            values, n, doing,
            [&](const T *own) { return hamr_set_values(get(), first, element<T>(), own, core_count<T>(n, doing)); },
            [&](auto type) { return hamr_set_values(get(), first, type, values, count(n, doing)); });
    }

    template <typename U>
    void get_values(std::size_t start, U *values, std::size_t n, const char *doing) const {
        const std::int64_t first = core_count<T>(start, doing), wanted = core_count<T>(n, doing);
        if constexpr (is_core_copy<T, U>) {
            check(hamr_get_values(get(), first, element<U>(), values, wanted), doing);
        } else {
            check_values(values, n, doing);
            check_part(size(), start, n, doing);
            scratch<T> own(n);
            check(hamr_get_values(get(), first, element<T>(), own.data(), wanted), doing);
            for (std::size_t i = 0; i < n; i++) assign_to(values[i], own.data()[i]);
        }
    }

    /// Assigns all elements of another storage; for numbers their shape, too.
    template <typename S>
    void assign_all(const S &source, const char *doing) {
        if constexpr (is_core_copy<T, typename S::value_type>) check(hamr_assign(get(), source.get()), doing);
        else assign(source, 0, source.size(), doing);
    }
    template <typename S>
    void assign(const S &source, std::size_t start, std::size_t n, const char *doing) {
        if constexpr (is_core_copy<T, typename S::value_type>)
            check(hamr_assign(get(), source.part(start, n, doing).get()), doing);
        else assign_values(source.on_host(start, n, doing).get(), n, doing);
    }
    template <typename S>
    void append(const S &source, std::size_t start, std::size_t n, const char *doing) {
        if constexpr (is_core_copy<T, typename S::value_type>)
            check(hamr_append(get(), source.part(start, n, doing).get()), doing);
        else append_values(source.on_host(start, n, doing).get(), n, doing);
    }
    template <typename S>
    void set(std::size_t at, const S &source, std::size_t start, std::size_t n, const char *doing) {
        if constexpr (is_core_copy<T, typename S::value_type>)
            check(hamr_set(get(), core_count<T>(at, doing), source.get(), core_count<T>(start, doing),
                           core_count<T>(n, doing)),
                  doing);
        else set_values(at, source.on_host(start, n, doing).get(), n, doing);
    }

    /// n elements from start on, in place if they lie in one row of memory.
    owned_buffer part(std::size_t start, std::size_t n, const char *doing) const {
        check_part(size(), start, n, doing);
        return part_of(get(), start * scale<T>, n * scale<T>, doing);
    }

    /// The same, for reading by host code.
    std::shared_ptr<const T> on_host(std::size_t start, std::size_t n, const char *doing) const {
        check_part(size(), start, n, doing);
        auto all = std::static_pointer_cast<const T>(accessible(space::host, doing));
        synchronize(doing);
        const T *first = all.get() + start;
        return std::shared_ptr<const T>(std::move(all), first);
    }

    void print() const {
        if constexpr (is_number<T>) {
            storage::print();
        } else {
            const auto values = on_host(0, size(), "buffer::print");
            print_place(size(), capacity());
            print_values(values.get(), size());
        }
    }

private:
    template <typename U, typename Own, typename Other>
    void with_values(const U *values, std::size_t n, const char *doing, Own &&own, Other &&other) {
        if constexpr (std::is_same_v<T, U>) check(own(values), doing);
        else if constexpr (is_core_copy<T, U>) check(other(element<U>()), doing);
        else check(own(scratch<T>(values, n, doing).data()), doing);
    }

    void fill(std::size_t start, std::size_t n, const T &value, const char *doing) {
        const std::size_t most = std::min(n, std::max<std::size_t>(1, 1048576 / sizeof(T)));
        const scratch<T> values(most, value);
        for (std::size_t done = 0; done < n; done += most)
            set_values(start + done, values.data(), std::min(most, n - done), doing);
    }

    static hamr_buffer *checked(hamr_buffer *made) {
        const hamr_info *info = hamr_info_of(made);
        if (!info) fail(HAMR_ERROR_VALUE, "buffer", hamr_last_error());
        if (info->element != element<T>())
            fail(HAMR_ERROR_TYPE, "buffer",
                 std::string("the elements are ") + hamr_element_name(info->element) + ": accepted is " +
                     hamr_element_name(element<T>()));
        if (scale<T> != 1 &&
            (info->ndim != 1 || info->size % static_cast<std::int64_t>(scale<T>) || !is_contiguous(*info)))
            fail(HAMR_ERROR_TYPE, "buffer",
                 std::to_string(info->size) + " bytes: accepted is one row of elements of " +
                     std::to_string(sizeof(T)) + " bytes");
        return made;
    }
};

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
