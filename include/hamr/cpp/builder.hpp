/// Ids of objects, and objects that are made, for hamr/cpp/store.hpp.
#ifndef HAMR_CPP_BUILDER_HPP
#define HAMR_CPP_BUILDER_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "hamr.hpp"
#include "hamr/store.h"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace store {

/// The id of an object: 16 bytes.
class id {
public:
    id() noexcept : m_id() {}
    id(const hamr_store_id &native) noexcept : m_id(native) {}
    explicit id(const std::string &text) {
        if (!hamr_store_id_parse(detail::c_text(text, "store::id"), &m_id))
            detail::fail(HAMR_ERROR_VALUE, "store::id", "\"" + text + "\": accepted are 32 hexadecimal digits");
    }

    std::string text() const {
        char digits[33];
        hamr_store_id_text(&m_id, digits);
        return digits;
    }
    const hamr_store_id *native() const noexcept { return &m_id; }

    friend bool operator==(const id &a, const id &b) noexcept {
        return std::memcmp(&a.m_id, &b.m_id, sizeof a.m_id) == 0;
    }
    friend bool operator!=(const id &a, const id &b) noexcept { return !(a == b); }
    friend bool operator<(const id &a, const id &b) noexcept {
        return std::memcmp(&a.m_id, &b.m_id, sizeof a.m_id) < 0;
    }

private:
    hamr_store_id m_id;
};

/// The properties of a new object, besides its elements.
struct options {
    std::string metadata = {}; ///< JSON, or nothing
    bool evictable = false;
    bool pinned = false;
    bool separate = false;
    bool session = false; ///< goes with the client that makes it

    std::uint32_t flags() const noexcept {
        return evictable * std::uint32_t{HAMR_STORE_EVICTABLE} | pinned * std::uint32_t{HAMR_STORE_PINNED} |
               separate * std::uint32_t{HAMR_STORE_SEPARATE} | session * std::uint32_t{HAMR_STORE_SESSION};
    }
};

namespace detail {
using namespace hamr::detail;

struct ends {
    void operator()(hamr_store *native) const noexcept { hamr_store_close(native); }
    void operator()(hamr_store_builder *native) const noexcept { hamr_store_abort(native); }
    void operator()(hamr_store_server *native) const noexcept { hamr_store_end_server(native); }
    void operator()(hamr_shared *native) const noexcept { hamr_release_shared(native); }
};
template <typename N>
using owned = std::unique_ptr<N, ends>;
} // namespace detail

/// An object that is not sealed. If it is not sealed at the end, it is discarded.
template <typename T>
class builder {
public:
    explicit builder(hamr_store_builder *made) : m_builder(made) {
        hamr_buffer *own = hamr_store_builder_buffer(made), *view = nullptr;
        const hamr_info *info = hamr_info_of(own);
        detail::check(hamr_view(own, &view, 0, 0, info->ndim, info->shape, info->strides), "store::builder");
        m_buffer = std::make_unique<hamr::buffer<T>>(view);
    }

    store::id id() const { return hamr_store_builder_id(m_builder.get()); }

    /// The elements to write to: not after seal() or abort().
    hamr::buffer<T> &buffer() {
        if (!m_buffer) detail::fail(HAMR_ERROR_RELEASED, "store::builder::buffer", "the object was sealed or aborted");
        return *m_buffer;
    }

    /// Lets others find the object, after the work on it; nobody can write it any more. After an error it is
    /// discarded.
    store::id seal() {
        const store::id made = id();
        detail::check(finish(nullptr), "store::builder::seal");
        return made;
    }

    /// The same; returns the sealed elements.
    hamr::buffer<T> seal_and_get() {
        hamr_buffer *made = nullptr;
        detail::check(finish(&made), "store::builder::seal_and_get");
        return hamr::buffer<T>(made);
    }

    void abort() {
        m_buffer.reset();
        detail::check(hamr_store_abort(m_builder.release()), "store::builder::abort");
    }

private:
    hamr_status finish(hamr_buffer **made) {
        if (!m_buffer) detail::fail(HAMR_ERROR_RELEASED, "store::builder", "the object was sealed or aborted");
        if (m_buffer->data() != hamr_data(hamr_store_builder_buffer(m_builder.get())))
            detail::fail(
                HAMR_ERROR_VALUE, "store::builder",
                "the buffer has other elements than the object's: accepted is one that was not resized, moved "
                "or swapped");
        detail::check(hamr_synchronize(m_buffer->native()), "store::builder"); // on a stream that was set
        m_buffer.reset();
        hamr_store_builder *sealed = m_builder.release();
        return hamr_store_seal(sealed, made);
    }

    detail::owned<hamr_store_builder> m_builder;
    std::unique_ptr<hamr::buffer<T>> m_buffer;
};

} // namespace store
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

template <>
struct std::hash<hamr::store::id> {
    std::size_t operator()(const hamr::store::id &object) const noexcept {
        std::size_t value;
        std::memcpy(&value, object.native(), sizeof value); // random already
        return value;
    }
};

#endif
