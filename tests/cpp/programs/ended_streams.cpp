// Buffers that are released after the CUDA stream of the program's own that they were made for: ended_streams DRIVER TIMES
// LARGEST.
#include "hamr.hpp"

#include "checks.hpp"
#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

static const unsigned NON_BLOCKING = 1;
static const std::size_t SIZE = 100000;

static int (*create)(void **stream, unsigned flags);
static int (*synchronize)(void *stream);
static int (*destroy)(void *stream);

template <typename F>
static void find_in(const char *driver, const char *name, F &function) {
    void *found = of_driver(driver, name);
    TRUE(found != nullptr);
    std::memcpy(&function, &found, sizeof function);
}

// The memory's release is not ordered on the stream.
static void one_end(A allocator, bool copied, bool waited) {
    void *native = nullptr;
    TRUE(create(&native, NON_BLOCKING) == 0);
    auto b = std::make_unique<hamr::buffer<float>>(allocator, hamr::stream(reinterpret_cast<hamr::stream::native_type>(native)), M::async, SIZE, 2.0f);
    std::unique_ptr<hamr::buffer<float>> copy;
    if (copied) copy = std::make_unique<hamr::buffer<float>>(A::cuda, *b);
    if (waited) TRUE(synchronize(native) == 0);
    TRUE(destroy(native) == 0);
    b.reset();
    copy.reset();
    std::vector<hamr::buffer<float>> others;
    for (int i = 0; i < 2; i++) others.emplace_back(allocator, SIZE, 5.0f);
    for (const auto &other : others) TRUE(sum(other) == 5.0 * SIZE);
}

// What a pipeline has of buffers, which the stream ends before: copies, temporaries on the device and the host, and memory that was shared.
struct pipeline {
    hamr::buffer<float> made, converted;
    std::unique_ptr<hamr::buffer<float>> moved;
    hamr::buffer<double> on_host;
    std::shared_ptr<const float> in_cuda, in_host;
    std::shared_ptr<float> shared;

    pipeline(A allocator, const hamr::stream &on, M mode, std::size_t n)
        : made(allocator, on, mode, n, 1.5f), converted(allocator, on, mode, hamr::buffer<int>(A::malloc, on, mode, n, 2)), on_host(A::cuda_host, on, mode) {
        TRUE(made.append(converted, 0, n / 2) == 0 && made.resize(n) == 0 && on_host.append(made) == 0);
        in_cuda = converted.get_cuda_accessible();
        in_host = converted.get_host_accessible();
        shared = made.pointer();
        hamr::buffer<float> other(A::cuda, on, mode, made);
        moved = std::make_unique<hamr::buffer<float>>(A::cuda, on, mode, std::move(other));
        TRUE(moved->get(on_host) == 0);
    }
};

static bool is_right(const pipeline &p, std::size_t n) {
    return p.on_host.data()[0] == 1.5 && p.on_host.data()[n - 1] == 1.5 && p.in_host.get()[0] == 2 && p.in_host.get()[n - 1] == 2;
}

static void pipelines(std::size_t n, bool waited) {
    void *const no_stream = nullptr, *const per_thread = reinterpret_cast<void *>(2);
    for (A allocator : {A::malloc, A::cpp, A::cuda_host, A::cuda, A::cuda_uva}) {
        for (M mode : {M::async, M::sync_host, M::sync}) {
            for (void *which : {no_stream, per_thread, static_cast<void *>(&n)}) {
                void *native = which;
                if (which == &n) TRUE(create(&native, NON_BLOCKING) == 0);
                auto p = std::make_unique<pipeline>(allocator, hamr::stream(static_cast<hamr::stream::native_type>(native)), mode, n);
                if (waited) TRUE(synchronize(native) == 0 && hamr::synchronize(p->on_host, p->converted, p->made) == 0 && is_right(*p, n));
                const auto on_host = p->on_host.get_host_accessible(); // which outlive the buffers, too
                const auto in_host = p->in_host;
                if (which == &n) TRUE(destroy(native) == 0);
                p.reset();
                if (waited) TRUE(on_host.get()[n - 1] == 1.5 && in_host.get()[n - 1] == 2);
            }
        }
    }
    const hamr::buffer<float> after(A::cuda, n, 3.0f);
    TRUE(sum(after) == 3.0 * static_cast<double>(n));
}

int main(int, char **arguments) {
    const int times = std::atoi(arguments[2]);
    hamr::buffer<float>(A::cuda, 1, 0.0f).synchronize(); // which starts the driver
    find_in(arguments[1], "cuStreamCreate", create);
    find_in(arguments[1], "cuStreamSynchronize", synchronize);
    find_in(arguments[1], "cuStreamDestroy_v2", destroy);
    hamr::activate_cuda_device here(0);
    for (int i = 0; i < times; i++)
        for (A allocator : {A::cuda_host, A::cuda, A::cuda_uva})
            for (bool copied : {false, true}) one_end(allocator, copied, i % 2 == 0);
    for (int i = 0; i < times / 5; i++)
        for (const std::size_t n : {std::size_t(16), std::size_t(1000)}) pipelines(n, i % 2 == 0);
    pipelines(static_cast<std::size_t>(std::atoi(arguments[3])), false);
    pipelines(static_cast<std::size_t>(std::atoi(arguments[3])), true);
    look_at_the_driver(arguments[1]);
    std::puts("all streams have ended");
}
