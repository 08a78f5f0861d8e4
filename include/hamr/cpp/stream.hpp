/// Streams: the order of a device's work.
#ifndef HAMR_CPP_STREAM_HPP
#define HAMR_CPP_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <ostream>
#include <type_traits>
#include <utility>

#include "error.hpp"

// What a cudaStream_t and a hipStream_t point to, in the vendors' headers or without them.
struct CUstream_st;
struct ihipStream_t;

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// The handle of a stream that its maker owns; or, by create(), a stream that ends with the last copy of the
/// object.
class stream {
    template <typename V>
    using if_handle = std::enable_if_t<std::is_pointer_v<V> || std::is_null_pointer_v<V> || std::is_integral_v<V>, int>;

public:
    using native_type = CUstream_st *; ///< cudaStream_t is the same type

    using hip_type = ihipStream_t *;   ///< hipStream_t is the same type

    stream() noexcept = default; ///< the default stream
    stream(native_type native) noexcept : m_native(native) {}

    /// A template, so that 0 and nullptr are streams of one type.
    template <typename S, std::enable_if_t<std::is_same_v<S, ihipStream_t>, int> = 0>
    stream(S *native) noexcept : m_native(reinterpret_cast<native_type>(native)), m_backend("hip") {}

    /// A stream of a runtime other than CUDA, by its handle. The name must last, as a literal does.
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
    operator hip_type() const noexcept { return get_hip_stream(); }
    native_type get_cuda_stream() const noexcept { return m_native; }
    hip_type get_hip_stream() const noexcept { return reinterpret_cast<hip_type>(m_native); }
    std::size_t get_stream() const noexcept {
        return reinterpret_cast<std::size_t>(m_native);
    } ///< the handle as a number
    void *native() const noexcept { return m_native; }
    const char *backend() const noexcept { return m_backend; }

    /// As std::size_t it is the handle; as bool and int, whether it is not the default stream.
    template <typename N, std::enable_if_t<std::is_same_v<N, std::size_t>, int> = 0>
    operator N() const noexcept {
        return get_stream();
    }
    operator bool() const noexcept { return m_native != nullptr; }

    friend bool operator==(const stream &one, const stream &other) noexcept { return one.m_native == other.m_native; }
    friend bool operator!=(const stream &one, const stream &other) noexcept { return one.m_native != other.m_native; }

    /// Comparison with a handle or a number. These are templates, since a stream converts to both.
    template <typename V, if_handle<V> = 0>
    friend bool operator==(const stream &one, V other) noexcept {
        return one.get_stream() == number_of(other);
    }
    template <typename V, if_handle<V> = 0>
    friend bool operator==(V one, const stream &other) noexcept {
        return other == one;
    }
    template <typename V, if_handle<V> = 0>
    friend bool operator!=(const stream &one, V other) noexcept {
        return !(one == other);
    }
    template <typename V, if_handle<V> = 0>
    friend bool operator!=(V one, const stream &other) noexcept {
        return !(other == one);
    }

    /// Waits for the stream's work.
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

    friend std::ostream &operator<<(std::ostream &to, const stream &which) { return to << which.native(); }

private:
    template <typename V>
    static std::size_t number_of(V handle) noexcept {
        if constexpr (std::is_null_pointer_v<V>) return 0;
        else if constexpr (std::is_pointer_v<V>) return reinterpret_cast<std::size_t>(handle);
        else return static_cast<std::size_t>(handle);
    }

    static void end(hamr_stream *made) { hamr_release_stream(made); }

    static void wait(const hamr_stream *which) {
        detail::check(hamr_wait_stream(which, -1, nullptr), "stream::synchronize");
    }

    native_type m_native = nullptr;
    const char *m_backend = "cuda";
    std::shared_ptr<hamr_stream> m_made;
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
