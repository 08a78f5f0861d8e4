/// A device's elements on the host, for hamr/cpp/store.hpp.
#ifndef HAMR_CPP_MIRROR_HPP
#define HAMR_CPP_MIRROR_HPP

#include <cstddef>
#include <exception>
#include <utility>

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

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
