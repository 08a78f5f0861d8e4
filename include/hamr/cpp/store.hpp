/// The store, and sharing without one: hamr/store.h for C++17. docs/store.md describes it.
///
///     hamr::store::client client;                            // of the server where servers are by default
///     auto builder = client.create<float>({480, 640});
///     builder.buffer() …
///     hamr::store::id field = builder.seal();
///     hamr::buffer<float> found = client.get<float>(field);  // in place, read-only, and a lease
///
/// Functions throw hamr::error, whose status() is one of the HAMR_ERROR_… of hamr/store_interface.h or of
/// hamr/interface.h. A call that waits for others has a time limit; hamr::store::forever is none.
#ifndef HAMR_CPP_STORE_HPP
#define HAMR_CPP_STORE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hamr.hpp"
#include "hamr/store.h"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// The elements of a buffer in host memory while this lives, page-locked if they are a device's: Vineyard's
/// CUDABufferMirror. They are written back at the end, except after an exception or if the buffer is read-only.
/// Without initialize they are not copied to the host first.
template <typename T>
class mirror {
public:
    explicit mirror(hamr::buffer<T> &mirrored, bool initialize = false) : m_exceptions(std::uncaught_exceptions()) {
        detail::check(hamr_create_mirror(mirrored.native(), initialize, &m_mirror), "mirror");
        m_read_only = (hamr_mirror_info(m_mirror)->flags & HAMR_INFO_READ_ONLY) != 0;
    }
    mirror(const mirror &) = delete;
    mirror &operator=(const mirror &) = delete;

    /// If writing back fails, a message goes to std::cerr; commit() throws instead.
    ~mirror() {
        if (std::uncaught_exceptions() > m_exceptions) hamr_abandon_mirror(std::exchange(m_mirror, nullptr));
        else detail::told([this] { commit(); });
        if (m_mirror) hamr_abandon_mirror(m_mirror); // there was no memory to write it back
    }

    const T *data() const noexcept { return static_cast<const T *>(hamr_mirror_data(m_mirror)); }
    T *mutable_data() {
        if (m_read_only)
            detail::fail(HAMR_ERROR_VALUE, "mirror::mutable_data", "the buffer is read-only: accepted is data()");
        return static_cast<T *>(hamr_mirror_data(m_mirror));
    }
    std::size_t size() const noexcept {
        return m_mirror ? static_cast<std::size_t>(hamr_mirror_info(m_mirror)->size) : 0;
    }
    hamr_mirror *native() const noexcept { return m_mirror; }

    /// Ends it now. data() is then NULL.
    void commit() {
        hamr_mirror *ended = std::exchange(m_mirror, nullptr);
        const hamr_status status = hamr_release_mirror(ended);
        if (status == HAMR_ERROR_MEMORY) m_mirror = ended; // it is still there, to be tried again
        detail::check(status, "mirror::commit");
    }

    /// Ends it without writing anything back.
    void abandon() { detail::check(hamr_abandon_mirror(std::exchange(m_mirror, nullptr)), "mirror::abandon"); }

private:
    hamr_mirror *m_mirror = nullptr;
    int m_exceptions;
    bool m_read_only = false;
};

namespace store {

using milliseconds = std::chrono::milliseconds;
constexpr milliseconds forever{-1};
constexpr milliseconds at_once{0};

/// The id of an object: 16 bytes.
class id {
public:
    id() noexcept : m_id() {}
    id(const hamr_store_id &native) noexcept : m_id(native) {}
    explicit id(const std::string &text) {
        if (!hamr_store_id_parse(text.c_str(), &m_id))
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

/// A session with a server, for all threads. Its leases last until they are released or the session ends.
class client {
public:
    /// The session of the server at a path, by default the usual one.
    explicit client(const std::string &path = {}, milliseconds patience = forever) {
        hamr_store *made = nullptr;
        detail::check(hamr_store_connect(path.empty() ? nullptr : path.c_str(), patience.count(), &made),
                      "store::client");
        m_store.reset(made);
    }

    std::string path() const { return hamr_store_path(m_store.get()); }

    /// A new object, which others find when it is sealed. Its memory is any of the host's, or of a device that
    /// can share its memory, as an allocator says.
    template <typename T>
    builder<T> create(const extents &shape, buffer_allocator where = buffer_allocator::malloc,
                      int device = HAMR_CURRENT_DEVICE, const options &how = {}) {
        const hamr_place place = {static_cast<std::int32_t>(where), device, nullptr, HAMR_SYNC_HOST, 0};
        const extents &whole = detail::core_shape<T>(shape, "store::client::create");
        hamr_store_builder *made = nullptr;
        call("store::client::create", hamr_store_create, detail::element<T>(), whole.rank(), whole.data(), &place,
             how.flags(), how.metadata.data(), how.metadata.size(), &made);
        return builder<T>(made);
    }

    template <typename T>
    builder<T> create(std::size_t n, buffer_allocator where = buffer_allocator::malloc,
                      int device = HAMR_CURRENT_DEVICE, const options &how = {}) {
        return create<T>(extents(n), where, device, how);
    }

    /// Makes a sealed object with a copy of elements.
    template <typename T>
    id put(const buffer<T> &elements, const options &how = {}) {
        hamr_store_id made;
        call("store::client::put", hamr_store_put, elements.native(), how.flags(), how.metadata.data(),
             how.metadata.size(), &made);
        return made;
    }

    /// An object's elements in place, read-only, with a lease that lasts as long as the buffer and anything
    /// that shares its memory. With patience the call waits for the object.
    template <typename T>
    buffer<T> get(const id &object, milliseconds patience = at_once) {
        return got<T>(object, 0, patience);
    }

    /// The same for an object that is not sealed. Its changes are seen at once.
    template <typename T>
    buffer<T> get_unsafe(const id &object) {
        return got<T>(object, 1, at_once);
    }

    void delete_object(const id &object, bool force = false) {
        call("store::client::delete_object", hamr_store_delete, object.native(), force);
    }
    void put_name(const std::string &name, const id &object, bool replace = false) {
        call("store::client::put_name", hamr_store_put_name, name.c_str(), object.native(), replace);
    }
    id get_name(const std::string &name, milliseconds patience = at_once) {
        hamr_store_id found;
        call("store::client::get_name", hamr_store_get_name, name.c_str(), patience.count(), &found);
        return found;
    }
    void drop_name(const std::string &name) {
        call("store::client::drop_name", hamr_store_drop_name, name.c_str());
    }

    bool exists(const id &object) {
        std::int32_t there = 0;
        call("store::client::exists", hamr_store_exists, object.native(), &there, nullptr);
        return there != 0;
    }
    hamr_store_info describe(const id &object) {
        hamr_store_info found;
        call("store::client::describe", hamr_store_describe, object.native(), &found);
        return found;
    }

    /// The JSON that the object's maker gave, or nothing.
    std::string metadata(const id &object) {
        char *text = nullptr;
        std::size_t bytes = 0;
        call("store::client::metadata", hamr_store_metadata, object.native(), &text, &bytes);
        const std::unique_ptr<char, decltype(&hamr_free_text)> owner(text, hamr_free_text);
        return std::string(text, bytes);
    }

    /// Replaces the JSON of an object that this client has made and not sealed.
    void set_metadata(const id &object, const std::string &json) {
        call("store::client::set_metadata", hamr_store_set_metadata, object.native(), json.data(), json.size());
    }

    /// Keeps an object from being evicted or spilled, or ends that.
    void pin(const id &object, bool on = true) {
        call("store::client::pin", hamr_store_pin, object.native(), on);
    }

    /// Allows the server to delete a sealed object that nobody has when room is short, or ends that.
    void set_evictable(const id &object, bool on = true) {
        call("store::client::set_evictable", hamr_store_set_evictable, object.native(), on);
    }

    /// Calls that the server does not answer for so long end with an exception; `forever`, the default, is no
    /// limit.
    void set_timeout(milliseconds timeout) {
        call("store::client::set_timeout", hamr_store_set_timeout, timeout.count());
    }

    /// All objects, or those with a name that begins with a text.
    std::vector<id> list(bool unsealed = false) {
        return listed(unsealed * std::uint32_t{HAMR_STORE_LIST_UNSEALED}, nullptr);
    }
    std::vector<id> list_named(const std::string &prefix) { return listed(HAMR_STORE_LIST_NAMED, prefix.c_str()); }

    /// Returns those that are sealed, as soon as count of them are; fewer when the time is over.
    std::vector<id> wait(const std::vector<id> &objects, std::size_t count, milliseconds patience = forever) {
        std::vector<hamr_store_id> asked, ready(objects.size());
        for (const id &object : objects) asked.push_back(*object.native());
        std::int64_t found = 0;
        call("store::client::wait", hamr_store_wait, asked.data(), detail::count(asked.size(), "store::client::wait"),
             detail::count(count, "store::client::wait"), patience.count(), ready.data(), &found);
        return std::vector<id>(ready.begin(), ready.begin() + found);
    }
    std::vector<id> wait(const std::vector<id> &objects) { return wait(objects, objects.size()); }

    hamr_store_figures statistics() {
        hamr_store_figures figures;
        call("store::client::statistics", hamr_store_statistics, &figures);
        return figures;
    }

    hamr_store *native() const noexcept { return m_store.get(); }

private:
    /// Calls a function of hamr/store.h with the session.
    template <typename... P, typename... A>
    void call(const char *doing, hamr_status (*function)(hamr_store *, P...), A &&...given) {
        detail::check(function(m_store.get(), std::forward<A>(given)...), doing);
    }

    template <typename T>
    buffer<T> got(const id &object, int unsafe, milliseconds patience) {
        return detail::made_by<T>("store::client::get", [&](auto made) {
            return hamr_store_get(m_store.get(), object.native(), unsafe, patience.count(), made);
        });
    }

    std::vector<id> listed(std::uint32_t which, const char *prefix) {
        std::vector<id> all;
        std::vector<hamr_store_id> page(256);
        std::uint64_t after = 0;
        do {
            std::int64_t found = 0;
            call("store::client::list", hamr_store_list, which, prefix, &after, page.data(),
                 static_cast<std::int64_t>(page.size()), &found);
            all.insert(all.end(), page.begin(), page.begin() + found);
        } while (after);
        return all;
    }

    detail::owned<hamr_store> m_store;
};

/// A server in this process, for this and other processes. Limits are in bytes. 0 is half of what the process
/// may have, and no limit for devices.
class server {
public:
    explicit server(const std::string &path, std::int64_t host_limit = 0, std::int64_t device_limit = 0,
                    const std::string &spill = {}) {
        hamr_store_server *made = nullptr;
        detail::check(hamr_store_serve(path.empty() ? nullptr : path.c_str(), host_limit, device_limit,
                                       spill.empty() ? nullptr : spill.c_str(), &made),
                      "store::server");
        m_server.reset(made);
    }

    std::string path() const { return hamr_store_server_path(m_server.get()); }

private:
    detail::owned<hamr_store_server> m_server;
};

} // namespace store

/// What another process needs to open a buffer's elements, without a server: docs/sharing.md.
class shared_handle {
public:
    /// flags are HAMR_SHARE_READ_ONLY ….
    template <typename T>
    explicit shared_handle(const buffer<T> &shared, std::uint32_t flags = 0) {
        hamr_shared *made = nullptr;
        detail::check(hamr_share(shared.native(), flags, &made), "shared_handle");
        m_shared.reset(made);
    }

    bool copied() const { return told() & HAMR_SHARE_COPY; }
    bool read_only() const { return told() & HAMR_SHARE_READ_ONLY; }

    /// Sends it over a connected UNIX socket.
    void send(int socket) const { detail::check(hamr_send_shared(m_shared.get(), socket), "shared_handle::send"); }
    hamr_shared *native() const noexcept { return m_shared.get(); }

private:
    std::uint32_t told() const {
        std::uint32_t flags = 0;
        detail::check(hamr_shared_frame(m_shared.get(), nullptr, nullptr, nullptr, nullptr, &flags), "shared_handle");
        return flags;
    }

    store::detail::owned<hamr_shared> m_shared;
};

/// The elements of a handle that is received over a connected UNIX socket, from any language.
template <typename T>
buffer<T> open_shared(int socket) {
    return detail::made_by<T>("open_shared", [&](auto made) { return hamr_open_shared(socket, made); });
}

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
