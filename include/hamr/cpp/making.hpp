/// Buffers of elements that exist already: adopted, taken over from a vector, listed, or from DLPack; and many
/// copies by one call.
#ifndef HAMR_CPP_MAKING_HPP
#define HAMR_CPP_MAKING_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "buffer.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// What is known of memory that a buffer adopts.
struct adoption {
    buffer_allocator allocator = buffer_allocator::malloc; ///< none: the runtimes of devices are asked
    int owner = -1;                                      ///< the device; -1: the host, or the runtimes are asked
    stream on = {};
    buffer_transfer mode = buffer_transfer::async;
    std::vector<std::int64_t> strides = {}; ///< in bytes, for each dimension; none: C order
    bool read_only = false;
};

/// A buffer that shares elements, in a shape and with strides. The deleter, any function object of the address,
/// is called once, on any thread, when nobody uses the elements any more. It is not called if this function
/// throws. Const elements are read-only.
template <typename E, typename D,
          std::enable_if_t<std::is_invocable_v<std::decay_t<D> &, std::remove_const_t<E> *>, int> = 0>
buffer<std::remove_const_t<E>> adopt(E *data, const extents &shape, D &&deleter, const adoption &how = {}) {
    using T = std::remove_const_t<E>;
    using context = detail::deleter_of<T, std::decay_t<D>>;
    if (!how.strides.empty() && how.strides.size() != static_cast<std::size_t>(shape.rank()))
        detail::fail(HAMR_ERROR_VALUE, "adopt",
                     std::to_string(how.strides.size()) + " strides for " + std::to_string(shape.rank()) +
                         " dimensions: accepted are none, or as many");
    if (detail::scale<T> != 1 && !how.strides.empty())
        detail::fail(HAMR_ERROR_VALUE, "adopt",
                     "elements that hamr has no type for lie one after the other: accepted are no strides");
    const extents &whole = detail::core_shape<T>(shape, "adopt");
    hamr_place place = detail::place_of(how.allocator, how.on, how.mode, how.owner);
    const std::uint32_t flags = how.read_only || std::is_const_v<E> ? HAMR_ADOPT_READ_ONLY : 0;
    std::unique_ptr<context> kept(new context{std::forward<D>(deleter)});
    hamr_buffer *made = nullptr;
    detail::check(hamr_adopt(&made, const_cast<T *>(data), detail::element<T>(), whole.rank(), whole.data(),
                             how.strides.empty() ? nullptr : how.strides.data(), &place, flags, context::call,
                             kept.get()),
                  "adopt");
    kept.release();
    return buffer<T>(made);
}

/// The same for elements that outlive the buffer and everything that is made of it.
template <typename E>
buffer<std::remove_const_t<E>> adopt(E *data, const extents &shape, const adoption &how = {}) {
    return adopt(data, shape, [](const std::remove_const_t<E> *) {}, how);
}

/// A buffer of a vector's elements, in place.
template <typename T>
buffer<T> take_over(std::vector<T> &&elements) {
    static_assert(!std::is_same_v<T, bool>, "hamr::take_over: a std::vector<bool> has bits, and no elements");
    auto kept = std::make_shared<std::vector<T>>(std::move(elements));
    T *const data = kept->data();
    const std::size_t size = kept->size();
    if (!size) return buffer<T>(buffer_allocator::cpp);
    return buffer<T>(buffer_allocator::cpp, size, -1, data, [kept](T *) mutable { kept.reset(); });
}

/// A buffer of listed elements: buffer_of<double>(buffer_allocator::malloc, {1, 2.5}).
template <typename T>
buffer<T> buffer_of(buffer_allocator allocator, std::initializer_list<T> values) {
    return buffer<T>(allocator, values.size(), values.begin());
}

namespace detail {

/// The layout of a tensor in DLPack 1. exchange.h does not define it, since programs have a header of their own.
struct tensor {
    std::uint32_t major, minor;
    void *context;
    void (*deleter)(void *);
    std::uint64_t flags;
    void *data;
    std::int32_t device, device_id, ndim;
    std::uint8_t code, bits;
    std::uint16_t lanes;
    const std::int64_t *shape, *strides;
    std::uint64_t offset;

    /// HAMR_INVALID if hamr has no such type; the core then refuses it.
    std::int32_t element() const noexcept {
#define HAMR_DLPACK(type, number, name, size, kind, its_code, its_bits, ...) \
    if (code == (its_code) && bits == (its_bits) && lanes == 1) return type;
        HAMR_ELEMENT_TYPES(HAMR_DLPACK)
#undef HAMR_DLPACK
        return HAMR_INVALID;
    }
};

/// Throws if a tensor cannot be a buffer of T, before it is taken over.
template <typename T>
void check_tensor(const DLManagedTensorVersioned *given) {
    tensor found{};
    if (given) std::memcpy(&found, static_cast<const void *>(given), sizeof found);
    if (found.major != 1 || found.element() == HAMR_INVALID) return;
    if (found.element() != element<T>())
        fail(HAMR_ERROR_TYPE, "from_dlpack",
             std::string("the elements are ") + hamr_element_name(found.element()) + ": accepted is " +
                 hamr_element_name(element<T>()));
    if constexpr (scale<T> != 1) {
        const std::int64_t size = found.ndim == 1 ? found.shape[0] : 1;
        if (found.ndim != 1 || size % static_cast<std::int64_t>(scale<T>) ||
            (found.strides && size > 1 && found.strides[0] != 1))
            fail(HAMR_ERROR_TYPE, "from_dlpack",
                 "accepted is one row of elements of " + std::to_string(sizeof(T)) + " bytes");
    }
}

/// The buffer that a call makes, which sets a hamr_buffer * and returns a status.
template <typename T, typename F>
buffer<T> made_by(const char *doing, F &&function) {
    hamr_buffer *made = nullptr;
    check(function(&made), doing);
    owned_buffer owner(made);
    buffer<T> elements(made);
    owner.release();
    return elements;
}

} // namespace detail

/// A buffer that shares a tensor's elements, which must be T. It takes over the tensor, unless it throws.
/// producer is the stream on which the elements are written.
template <typename T>
buffer<T> from_dlpack(DLManagedTensorVersioned *tensor, void *producer = nullptr) {
    detail::check_tensor<T>(tensor);
    return detail::made_by<T>("from_dlpack", [&](auto made) { return hamr_from_dlpack(tensor, producer, made); });
}

/// Copies the elements of each source to the destination at the same position, in as few steps as the runtimes
/// allow. Returns 0, or -1 after a message.
template <typename Destinations, typename Sources>
int copy_many(Destinations &destinations, const Sources &sources) {
    return detail::status_of([&] {
        std::vector<hamr_buffer *> to;
        std::vector<const hamr_buffer *> from;
        for (auto &each : destinations) to.push_back(each.native());
        for (const auto &each : sources) from.push_back(each.native());
        if (to.size() != from.size())
            detail::fail(HAMR_ERROR_VALUE, "copy_many",
                         std::to_string(to.size()) + " destinations of " + std::to_string(from.size()) +
                             " sources: accepted are as many");
        detail::check(hamr_copy_many(detail::count(to.size(), "copy_many"), to.data(), from.data(), -1), "copy_many");
    });
}

namespace detail {

inline int copied_blocks(const std::vector<hamr_buffer *> &to, const hamr_buffer *to_index,
                         const std::vector<const hamr_buffer *> &from, const hamr_buffer *from_index) {
    return status_of([&] {
        if (to.size() != from.size())
            fail(HAMR_ERROR_VALUE, "copy_blocks",
                 std::to_string(to.size()) + " destinations of " + std::to_string(from.size()) +
                     " sources: accepted are as many");
        check(hamr_copy_blocks(count(to.size(), "copy_blocks"), to.data(), to_index, from.data(), from_index, -1),
              "copy_blocks");
    });
}

} // namespace detail

/// Sets block destination_index[k] of the destination from block source_index[k] of the source, for all k, along the
/// first dimension. Where a block is named twice, the last one wins. Returns 0, or -1 after a message.
template <typename T, typename I, typename U, typename J>
int copy_blocks(buffer<T> &destination, const buffer<I> &destination_index, const buffer<U> &source,
                const buffer<J> &source_index) {
    return detail::copied_blocks({destination.native()}, destination_index.native(), {source.native()},
                                 source_index.native());
}

/// The same for containers of buffers, which share the indices.
template <typename Destinations, typename I, typename Sources, typename J>
int copy_blocks(Destinations &destinations, const buffer<I> &destination_index, const Sources &sources,
                const buffer<J> &source_index) {
    std::vector<hamr_buffer *> to;
    std::vector<const hamr_buffer *> from;
    for (auto &each : destinations) to.push_back(each.native());
    for (const auto &each : sources) from.push_back(each.native());
    return detail::copied_blocks(to, destination_index.native(), from, source_index.native());
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
