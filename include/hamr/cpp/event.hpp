/// Events, timed waits for streams, and figures of the process's memory.
#ifndef HAMR_CPP_EVENT_HPP
#define HAMR_CPP_EVENT_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "members.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

struct ends_stream {
    void operator()(hamr_stream *made) const noexcept { hamr_release_stream(made); }
};
struct ends_event {
    void operator()(hamr_event *made) const noexcept { hamr_release_event(made); }
};
using owned_stream = std::unique_ptr<hamr_stream, ends_stream>;

/// A stream of a device as in hamr.h; -1 is the calling thread's device.
inline owned_stream wrapped(const stream &given, const char *backend, int device, const char *doing) {
    hamr_stream *made = nullptr;
    check(hamr_wrap_stream(backend, device, given.native(), &made), doing);
    return owned_stream(made);
}

} // namespace detail

/// Stands for the work on a stream up to a moment. A copy is the same event.
class event {
public:
    event() noexcept = default; ///< none: it is over

    /// An event for the work that a stream holds now. A timed one can be used with elapsed().
    static event record(const stream &on, bool timed = false, const char *backend = "cuda",
                        int device = HAMR_CURRENT_DEVICE) {
        const detail::owned_stream wrapped = detail::wrapped(on, backend, device, "event::record");
        hamr_event *made = nullptr;
        detail::check(hamr_record_event(wrapped.get(), timed, &made), "event::record");
        event result;
        result.m_event.reset(made, detail::ends_event());
        return result;
    }

    void wait() const { wait_at_most(-1, "event::wait"); }
    bool is_done() const { return wait_at_most(0, "event::is_done"); }
    /// Waits for at most a time. Returns whether the work is over.
    template <typename R, typename P>
    bool wait_for(const std::chrono::duration<R, P> &time) const {
        return wait_at_most(detail::milliseconds(time), "event::wait_for");
    }

    /// Makes later work of a stream run after the event.
    void hold_back(const stream &later, const char *backend = "cuda", int device = HAMR_CURRENT_DEVICE) const {
        if (!m_event) return;
        const detail::owned_stream wrapped = detail::wrapped(later, backend, device, "event::hold_back");
        detail::check(hamr_stream_wait_event(wrapped.get(), m_event.get()), "event::hold_back");
    }

    /// The time from one timed event to another; both must be over.
    static std::chrono::nanoseconds elapsed(const event &from, const event &to) {
        std::int64_t time = 0;
        detail::check(hamr_elapsed(from.native(), to.native(), &time), "event::elapsed");
        return std::chrono::nanoseconds(time);
    }

    hamr_event *native() const noexcept { return m_event.get(); }

private:
    bool wait_at_most(std::int64_t time, const char *doing) const {
        std::int32_t over = 1;
        if (m_event) detail::check(hamr_wait_event(m_event.get(), time, &over), doing);
        return over != 0;
    }

    std::shared_ptr<hamr_event> m_event;
};

/// Waits for a stream's work, for at most a time. Returns whether it is over.
template <typename R, typename P>
bool wait_for(const stream &on, const std::chrono::duration<R, P> &time, const char *backend = "cuda",
              int device = HAMR_CURRENT_DEVICE) {
    const detail::owned_stream wrapped = detail::wrapped(on, backend, device, "wait_for");
    std::int32_t over = 0;
    detail::check(hamr_wait_stream(wrapped.get(), detail::milliseconds(time), &over), "wait_for");
    return over != 0;
}

/// The figures of each allocator that was used, for the whole process, including Python.
inline std::vector<hamr_usage> memory_usage() {
    std::array<hamr_usage, HAMR_ALLOCATOR_COUNT> rows{};
    const std::int32_t n = hamr_memory_usage(rows.data(), HAMR_ALLOCATOR_COUNT);
    return {rows.begin(), rows.begin() + n};
}
inline hamr_usage memory_usage(buffer_allocator allocator) {
    for (const hamr_usage &row : memory_usage())
        if (row.allocator == static_cast<std::int32_t>(allocator)) return row;
    hamr_usage none{};
    none.allocator = static_cast<std::int32_t>(allocator);
    return none;
}

/// Releases memory that is kept for reuse.
inline void trim() { detail::check(hamr_trim(), "trim"); }

/// While it lives, memory of cuda_vmm that the calling thread makes can be paused by the name. Those of a thread end in
/// the opposite order.
class pausable {
  public:
    explicit pausable(const std::string &name) {
        detail::check(hamr_enter_pausable(detail::c_text(name, "pausable"), &m_before), "pausable");
    }
    ~pausable() { hamr_leave_pausable(m_before); }
    pausable(const pausable &) = delete;
    pausable &operator=(const pausable &) = delete;

  private:
    std::int64_t m_before = 0;
};

/// Gives the devices' memory of a name back and keeps its addresses. keep is "nothing", "host" or "disk", a file in
/// folder. It waits for all work on the devices; after an error all is as before.
inline void pause(const std::string &name, const std::string &keep, const std::string &folder = {}) {
    detail::check(hamr_pause(detail::c_text(name, "pause"), keep.c_str(), detail::c_text(folder, "pause")), "pause");
}

/// Takes that memory again, at the same addresses. After an error all is paused as before.
inline void resume(const std::string &name) { detail::check(hamr_resume(detail::c_text(name, "resume")), "resume"); }

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
