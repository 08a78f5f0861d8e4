/// Objects of many arrays, for hamr/cpp/store.hpp.
#ifndef HAMR_CPP_GROUP_HPP
#define HAMR_CPP_GROUP_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "builder.hpp"
#include "hamr.hpp"
#include "hamr/store.h"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace store {
/// An array of a new group: its path, its elements, which the caller keeps, and JSON or nothing.
class group_array {
public:
    template <typename T>
    group_array(std::string path, const buffer<T> &elements, std::string metadata = {})
        : m_path(std::move(path)), m_metadata(std::move(metadata)),
          m_elements(const_cast<hamr_buffer *>(elements.native())) {}
    template <typename P, typename T>
    group_array(const std::pair<P, buffer<T>> &both) : group_array(both.first, both.second) {}

    hamr_group_item native() const {
        const char *const doing = "store::client::put_group";
        return {detail::c_text(m_path, doing), m_elements,
                m_metadata.empty() ? nullptr : detail::c_text(m_metadata, doing)};
    }

private:
    std::string m_path, m_metadata;
    hamr_buffer *m_elements;
};

/// Arrays of one object, in place and read-only. The lease lasts as long as the group, or any buffer that get
/// has returned.
class group {
public:
    explicit group(hamr_store_group *made) : m_group(made) {}

    std::size_t size() const {
        std::int64_t n = 0;
        hamr_store_group_items(m_group.get(), &n);
        return static_cast<std::size_t>(n);
    }

    /// The path of an array: the keys and positions that lead to it, with dots in between.
    std::string path(std::size_t i) const { return at(i).path; }

    template <typename T>
    buffer<T> get(const std::string &path) const {
        return view<T>(found(path));
    }
    template <typename T>
    buffer<T> get(std::size_t i) const {
        return view<T>(at(i));
    }

    /// What an array is, whatever its type.
    const hamr_info &info(const std::string &path) const { return *hamr_info_of(found(path).buffer); }
    const hamr_info &info(std::size_t i) const { return *hamr_info_of(at(i).buffer); }

    /// The JSON of the group or of an array, or nothing.
    std::string metadata() const { return texts().first; }
    std::string metadata(const std::string &path) const { return text(found(path).metadata); }

    /// What was put among the arrays, by path, as JSON: see hamr/store_interface.h.
    std::string values() const { return texts().second; }

    hamr_store_group *native() const noexcept { return m_group.get(); }

private:
    struct ends {
        void operator()(hamr_store_group *native) const noexcept { hamr_store_release_group(native); }
    };

    static std::string text(const char *json) { return json ? json : ""; }

    std::pair<std::string, std::string> texts() const {
        const char *metadata = nullptr, *values = nullptr;
        detail::check(hamr_store_group_texts(m_group.get(), &metadata, &values), "store::group");
        return {text(metadata), text(values)};
    }

    const hamr_group_item &at(std::size_t i) const {
        std::int64_t n = 0;
        const hamr_group_item *items = hamr_store_group_items(m_group.get(), &n);
        if (i >= static_cast<std::size_t>(n))
            detail::fail(HAMR_ERROR_INDEX, "store::group",
                         std::to_string(i) + ": accepted are 0 ... " + std::to_string(n - 1));
        return items[i];
    }

    const hamr_group_item &found(const std::string &path) const {
        const hamr_group_item *item = hamr_store_group_find(m_group.get(), detail::c_text(path, "store::group"));
        if (!item) detail::fail(HAMR_ERROR_NOT_FOUND, "store::group", hamr_last_error());
        return *item;
    }

    template <typename T>
    static buffer<T> view(const hamr_group_item &item) {
        const hamr_info *is = hamr_info_of(item.buffer);
        return detail::made_by<T>("store::group::get", [&](auto made) {
            return hamr_view(item.buffer, made, 0, 0, is->ndim, is->shape, is->strides);
        });
    }

    std::unique_ptr<hamr_store_group, ends> m_group;
};

} // namespace store
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
