/// Streams: in which order devices work.
#ifndef HAMR_CPP_STREAM_HPP
#define HAMR_CPP_STREAM_HPP

#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>

#include "error.hpp"

struct CUstream_st; // what a cudaStream_t and a CUstream point to, in CUDA's headers or without them

namespace hamr {

/// The handle of a stream, which stays with whom it is from; or, by create(), a stream that ends with
/// the last copy of the object.
class stream {
public:
    using native_type = CUstream_st *; ///< cudaStream_t is the same type

    stream() noexcept = default; ///< the default stream
    stream(native_type native) noexcept : m_native(native) {}

    /// A stream of another runtime than CUDA, by its handle. The name must last, as a literal does.
    static stream of(void *native, const char *backend) noexcept {
        stream result(static_cast<native_type>(native));
        result.m_backend = backend;
        return result;
    }

    /// A new stream on a device, -1 being the calling thread's.
    static stream create(int device = HAMR_CURRENT_DEVICE, const char *backend = "cuda") {
        hamr_stream *made = nullptr;
        detail::check(hamr_create_stream(backend, device, &made), "stream::create");
        stream result = of(hamr_native_stream(made), backend);
        result.m_made = std::shared_ptr<hamr_stream>(made, end);
        return result;
    }

    operator native_type() const noexcept { return m_native; }
    native_type get_stream() const noexcept { return m_native; }
    void *native() const noexcept { return m_native; }

    /// Whether it is another than the default stream.
    explicit operator bool() const noexcept { return m_native != nullptr; }

    /// Waits for the work that it holds.
    int synchronize() const {
        return detail::status_of([this] {
            std::int32_t available = 1;
            if (m_made) return wait(m_made.get());
            if (!m_native) detail::check(hamr_has_backend(m_backend, &available, nullptr), "stream::synchronize");
            if (!available) return; // there is no work
            hamr_stream *wrapped = nullptr;
            detail::check(hamr_wrap_stream(m_backend, HAMR_CURRENT_DEVICE, m_native, &wrapped), "stream::synchronize");
            const std::unique_ptr<hamr_stream, decltype(&end)> owner(wrapped, end);
            wait(wrapped);
        });
    }

    void print() const { std::cerr << "stream " << native() << std::endl; }

    void swap(stream &other) noexcept {
        std::swap(m_native, other.m_native);
        std::swap(m_backend, other.m_backend);
        m_made.swap(other.m_made);
    }

private:
    static void end(hamr_stream *made) { hamr_release_stream(made); }

    static void wait(const hamr_stream *which) { detail::check(hamr_wait_stream(which, -1, nullptr), "stream::synchronize"); }

    native_type m_native = nullptr;
    const char *m_backend = "cuda";
    std::shared_ptr<hamr_stream> m_made;
};

} // namespace hamr

#endif
