/// Which devices there are, and which one the calling thread uses.
#ifndef HAMR_CPP_DEVICE_HPP
#define HAMR_CPP_DEVICE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "allocator.hpp"
#include "openmp.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

inline bool has_backend(const char *name) {
    std::int32_t available = 0;
    check(hamr_has_backend(name, &available, nullptr), "device");
    return available != 0;
}

/// The runtime of get_device_accessible(), NULL if there is none.
inline const char *device_backend() {
    switch (device_space()) {
    case space::cuda: return "cuda";
    case space::hip: return "hip";
    case space::openmp: return "openmp";
    default: return nullptr;
    }
}

inline const char *cuda_backend() { return has_backend("cuda") ? "cuda" : nullptr; }
inline const char *hip_backend() { return has_backend("hip") ? "hip" : nullptr; }
inline const char *openmp_backend() { return has_backend("openmp") ? "openmp" : nullptr; }

inline bool is_openmp(const char *backend) noexcept { return backend && std::strcmp(backend, "openmp") == 0; }

inline int active_device(const char *backend, const char *doing) {
    std::int32_t device = HAMR_CURRENT_DEVICE;
    if (is_openmp(backend)) return openmp_device::get();
    if (backend) check(hamr_current_device(backend, &device), doing);
    return device;
}

/// The host need not be activated.
inline std::uint64_t enter(const char *backend, int device, const char *doing) {
    std::uint64_t before = 0;
    if (device < 0) return before;
    if (!backend) fail(HAMR_ERROR_UNAVAILABLE, doing, "there is no runtime with device " + std::to_string(device));
    if (is_openmp(backend)) return static_cast<std::uint64_t>(openmp_device::set(device, doing));
    check(hamr_enter_device(backend, device, &before), doing);
    return before;
}

inline int owner_of(const void *address, const char *doing) {
    hamr_found found;
    check(hamr_locate(address, &found), doing);
    return found.allocator == HAMR_UNKNOWN_ALLOCATOR ? HAMR_CURRENT_DEVICE : found.device;
}

} // namespace detail

/// Sets the number that stands for the host, -1.
inline int get_host_identifier(int &device) noexcept {
    device = HAMR_CURRENT_DEVICE;
    return 0;
}
inline int get_host_identifier() noexcept { return HAMR_CURRENT_DEVICE; }
inline int get_cuda_host_identifier(int &device) noexcept { return get_host_identifier(device); }
inline int get_hip_host_identifier(int &device) noexcept { return get_host_identifier(device); }
inline int get_openmp_host_identifier(int &device) noexcept { return get_host_identifier(device); }

/// Sets device to the calling thread's device, or to -1 without one.
inline int get_active_device(int &device) {
    return detail::status_of([&] { device = detail::active_device(detail::device_backend(), "get_active_device"); });
}
inline int get_active_cuda_device(int &device) {
    return detail::status_of([&] { device = detail::active_device(detail::cuda_backend(), "get_active_cuda_device"); });
}
inline int get_active_hip_device(int &device) {
    return detail::status_of([&] { device = detail::active_device(detail::hip_backend(), "get_active_hip_device"); });
}
inline int get_active_openmp_device(int &device) {
    return detail::status_of(
        [&] { device = detail::active_device(detail::openmp_backend(), "get_active_openmp_device"); });
}

/// Sets device to the device of new memory: the calling thread's, or -1, the host, without one.
inline int get_device_identifier(int &device) { return get_active_device(device); }
inline int get_cuda_device_identifier(int &device) { return get_active_cuda_device(device); }
inline int get_hip_device_identifier(int &device) { return get_active_hip_device(device); }
inline int get_openmp_device_identifier(int &device) { return get_active_openmp_device(device); }

/// Makes a device the calling thread's; -1, the host, changes nothing.
inline int set_active_device(int device) {
    return detail::status_of([=] { detail::enter(detail::device_backend(), device, "set_active_device"); });
}
inline int set_active_cuda_device(int device) {
    return detail::status_of([=] { detail::enter(detail::cuda_backend(), device, "set_active_cuda_device"); });
}
inline int set_active_hip_device(int device) {
    return detail::status_of([=] { detail::enter(detail::hip_backend(), device, "set_active_hip_device"); });
}
inline int set_active_openmp_device(int device) {
    return detail::status_of([=] { detail::enter(detail::openmp_backend(), device, "set_active_openmp_device"); });
}

/// Sets device to the one that owns the memory at an address; -1 is the host.
inline int get_device(const void *address, int &device) {
    return detail::status_of([&] { device = detail::owner_of(address, "get_device"); });
}
inline int get_cuda_device(const void *address, int &device) {
    return detail::status_of([&] { device = detail::owner_of(address, "get_cuda_device"); });
}
inline int get_hip_device(const void *address, int &device) {
    return detail::status_of([&] { device = detail::owner_of(address, "get_hip_device"); });
}
inline int get_openmp_device(const void *address, int &device) {
    return detail::status_of([&] { device = detail::owner_of(address, "get_openmp_device"); });
}

namespace detail {

/// Makes a device the calling thread's while the object lives. Construct and destroy it in the same thread.
class scoped_device {
public:
    scoped_device(const scoped_device &) = delete;
    scoped_device &operator=(const scoped_device &) = delete;
    ~scoped_device() {
        if (m_entered)
            told([this] {
                if (!is_openmp(m_backend)) check(hamr_leave_device(m_backend, m_before), "activate_device");
                else if (static_cast<int>(m_before) >= 0)
                    openmp_device::set(static_cast<int>(m_before), "activate_device");
            });
    }

protected:
    scoped_device(const char *backend, int device, const char *doing)
        : m_backend(backend), m_before(enter(backend, device, doing)), m_entered(device >= 0) {}

private:
    const char *m_backend;
    std::uint64_t m_before;
    bool m_entered;
};

} // namespace detail

/// Makes a device the calling thread's while the object lives; -1, the host, changes nothing.
class activate_device : detail::scoped_device {
public:
    explicit activate_device(int device) : scoped_device(detail::device_backend(), device, "activate_device") {}
};

class activate_cuda_device : detail::scoped_device {
public:
    explicit activate_cuda_device(int device) : scoped_device(detail::cuda_backend(), device, "activate_cuda_device") {}
};

class activate_hip_device : detail::scoped_device {
public:
    explicit activate_hip_device(int device) : scoped_device(detail::hip_backend(), device, "activate_hip_device") {}
};

class activate_openmp_device : detail::scoped_device {
public:
    explicit activate_openmp_device(int device)
        : scoped_device(detail::openmp_backend(), device, "activate_openmp_device") {}
};

/// Lets one CUDA device reach the memory of another, until disable() or the object's end. Access belongs to the
/// process: it stays as long as another object, hamr's own copies between the two, or another library needs it.
class access_cuda_peer {
public:
    access_cuda_peer() = default;
    access_cuda_peer(const access_cuda_peer &) = delete;
    access_cuda_peer &operator=(const access_cuda_peer &) = delete;
    ~access_cuda_peer() {
        detail::told([this] { end(); });
    }

    /// Lets dest reach src's memory and, if symmetric, src dest's: both or neither. It is no error if access is
    /// enabled already.
    int enable(int dest, int src, bool symmetric = false) {
        return detail::status_of([&] {
            if (dest == src) return;
            const std::size_t before = m_pairs.size();
            try {
                add(dest, src);
                if (symmetric) add(src, dest);
            } catch (...) {
                if (m_pairs.size() > before) remove_last();
                throw;
            }
        });
    }

    /// Ends the access of enable(), after the work of the devices.
    int disable() {
        return detail::status_of([this] { end(); });
    }

private:
    void end() {
        while (!m_pairs.empty()) detail::check(remove_last(), "access_cuda_peer::disable");
    }

    void add(int user, int owner) {
        const std::pair<int, int> wanted(user, owner);
        if (std::find(m_pairs.begin(), m_pairs.end(), wanted) != m_pairs.end()) return;
        m_pairs.reserve(m_pairs.size() + 1); // nothing can fail when access is there
        detail::check(hamr_enable_peer("cuda", user, owner), "access_cuda_peer::enable");
        m_pairs.push_back(wanted);
    }

    hamr_status remove_last() noexcept {
        const hamr_status status = hamr_disable_peer("cuda", m_pairs.back().first, m_pairs.back().second);
        if (status == HAMR_OK) m_pairs.pop_back();
        return status;
    }

    std::vector<std::pair<int, int>> m_pairs; // who reaches whom
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
