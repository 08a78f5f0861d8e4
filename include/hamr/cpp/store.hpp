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
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "builder.hpp"
#include "group.hpp"
#include "hamr.hpp"
#include "hamr/store.h"
#include "mirror.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace store {

using milliseconds = std::chrono::milliseconds;
constexpr milliseconds forever{-1};
constexpr milliseconds at_once{0};

/// A session with a server, for all threads. Its leases last until they are released or the session ends.
class client {
public:
    /// The session of the server at a path, by default the usual one.
    explicit client(const std::string &path = {}, milliseconds patience = forever) {
        hamr_store *made = nullptr;
        const char *const at = path.empty() ? nullptr : detail::c_text(path, "store::client");
        detail::check(hamr_store_connect(at, patience.count(), &made), "store::client");
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

    /// put of each buffer of a container, with the names at their places where there are any; "" is none. All
    /// or, after an exception, none.
    template <typename Buffers>
    std::vector<id> put_many(const Buffers &buffers, const std::vector<std::string> &names = {},
                             const options &how = {}) {
        std::vector<const hamr_buffer *> given;
        std::vector<const char *> texts;
        for (const auto &each : buffers) given.push_back(each.native());
        for (const std::string &each : names)
            texts.push_back(each.empty() ? nullptr : detail::c_text(each, "store::client::put_many"));
        if (!names.empty() && names.size() != given.size())
            detail::fail(HAMR_ERROR_VALUE, "store::client::put_many", "accepted is a name for each buffer, or none");
        std::vector<hamr_store_id> made(given.size());
        call("store::client::put_many", hamr_store_put_many, given.data(),
             detail::count(given.size(), "store::client::put_many"), how.flags(), how.metadata.data(),
             how.metadata.size(), names.empty() ? nullptr : texts.data(), made.data());
        return std::vector<id>(made.begin(), made.end());
    }

    /// get of each object, all or, after an exception, none.
    template <typename T>
    std::vector<buffer<T>> get_many(const std::vector<id> &objects) {
        const std::vector<hamr_store_id> asked = natives(objects);
        std::vector<hamr_buffer *> made(asked.size());
        call("store::client::get_many", hamr_store_get_many, asked.data(),
             detail::count(asked.size(), "store::client::get_many"), made.data());
        std::vector<detail::owned_buffer> owned(made.begin(), made.end());
        std::vector<buffer<T>> found;
        for (detail::owned_buffer &each : owned)
            found.push_back(detail::made_by<T>("store::client::get_many", [&](auto to) {
                *to = each.release();
                return HAMR_OK;
            }));
        return found;
    }

    /// delete_object of each, all or, after an exception, none.
    void delete_many(const std::vector<id> &objects, bool force = false) {
        const std::vector<hamr_store_id> asked = natives(objects);
        call("store::client::delete_many", hamr_store_delete_many, asked.data(),
             detail::count(asked.size(), "store::client::delete_many"), force);
    }

    /// Makes one sealed object with copies of many arrays, a group, with a name unless that is empty:
    /// `put_group({{"w", w}, {"layers.0.bias", bias}})`, or a container of pairs such as a std::map.
    id put_group(std::initializer_list<group_array> arrays, const std::string &name = {}, const options &how = {}) {
        return put_group(std::vector<group_array>(arrays), name, how);
    }
    template <typename Arrays>
    id put_group(const Arrays &arrays, const std::string &name = {}, const options &how = {}) {
        const std::vector<group_array> given(std::begin(arrays), std::end(arrays));
        std::vector<hamr_group_item> items;
        for (const group_array &each : given) items.push_back(each.native());
        hamr_store_id made;
        call("store::client::put_group", hamr_store_put_group, items.data(),
             detail::count(items.size(), "store::client::put_group"), how.flags(), how.metadata.data(),
             how.metadata.size(), name.empty() ? nullptr : detail::c_text(name, "store::client::put_group"), &made);
        return made;
    }

    /// A group, in place, and a lease of it.
    group get_group(const id &object, milliseconds patience = at_once) {
        return found_group(object, nullptr, 0, patience);
    }

    /// The part of a group that has some paths, or lies under them.
    group get_group(const id &object, const std::vector<std::string> &only, milliseconds patience = at_once) {
        std::vector<const char *> paths;
        for (const std::string &path : only) paths.push_back(detail::c_text(path, "store::client::get_group"));
        static const char *const none = nullptr;
        return found_group(object, only.empty() ? &none : paths.data(), paths.size(), patience);
    }

    void delete_object(const id &object, bool force = false) {
        call("store::client::delete_object", hamr_store_delete, object.native(), force);
    }
    void put_name(const std::string &name, const id &object, bool replace = false) {
        call_named("store::client::put_name", hamr_store_put_name, name, object.native(), replace);
    }
    /// Gives a sealed object a name, and deletes the one that had it: see hamr_store_replace.
    void replace(const std::string &name, const id &object, bool lasting = false) {
        call_named("store::client::replace", hamr_store_replace, name, object.native(), lasting);
    }
    /// The object that has a name, when it is another one than known.
    id wait_name(const std::string &name, const id &known = {}, milliseconds patience = forever) {
        hamr_store_id found;
        call_named("store::client::wait_name", hamr_store_wait_name, name, known.native(), patience.count(), &found);
        return found;
    }
    id get_name(const std::string &name, milliseconds patience = at_once) {
        hamr_store_id found;
        call_named("store::client::get_name", hamr_store_get_name, name, patience.count(), &found);
        return found;
    }
    void drop_name(const std::string &name) {
        call_named("store::client::drop_name", hamr_store_drop_name, name);
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
    std::vector<id> list_named(const std::string &prefix) {
        return listed(HAMR_STORE_LIST_NAMED, detail::c_text(prefix, "store::client::list_named"));
    }

    /// Returns those that are sealed, as soon as count of them are; fewer when the time is over.
    std::vector<id> wait(const std::vector<id> &objects, std::size_t count, milliseconds patience = forever) {
        const std::vector<hamr_store_id> asked = natives(objects);
        std::vector<hamr_store_id> ready(objects.size());
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

    template <typename... P, typename... A>
    void call_named(const char *doing, hamr_status (*function)(hamr_store *, const char *, P...),
                    const std::string &name, A &&...given) {
        call(doing, function, detail::c_text(name, doing), std::forward<A>(given)...);
    }

    template <typename T>
    buffer<T> got(const id &object, int unsafe, milliseconds patience) {
        return detail::made_by<T>("store::client::get", [&](auto made) {
            return hamr_store_get(m_store.get(), object.native(), unsafe, patience.count(), made);
        });
    }

    static std::vector<hamr_store_id> natives(const std::vector<id> &objects) {
        std::vector<hamr_store_id> all;
        for (const id &object : objects) all.push_back(*object.native());
        return all;
    }

    group found_group(const id &object, const char *const *only, std::size_t n, milliseconds patience) {
        hamr_store_group *made = nullptr;
        call("store::client::get_group", hamr_store_get_group, object.native(), only,
             detail::count(n, "store::client::get_group"), patience.count(), &made);
        return group(made);
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
        const char *const at = path.empty() ? nullptr : detail::c_text(path, "store::server");
        const char *const folder = spill.empty() ? nullptr : detail::c_text(spill, "store::server");
        detail::check(hamr_store_serve(at, host_limit, device_limit, folder, &made), "store::server");
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

#endif
