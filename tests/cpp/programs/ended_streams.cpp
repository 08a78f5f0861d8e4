// Buffers that are released after the CUDA stream of the program's own that they were made for.
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

int main(int, char **arguments) {
    hamr::buffer<float>(A::cuda, 1, 0.0f).synchronize(); // which starts the driver
    find_in(arguments[1], "cuStreamCreate", create);
    find_in(arguments[1], "cuStreamSynchronize", synchronize);
    find_in(arguments[1], "cuStreamDestroy_v2", destroy);
    hamr::activate_cuda_device here(0);
    for (int i = 0; i < std::atoi(arguments[2]); i++)
        for (A allocator : {A::cuda_host, A::cuda, A::cuda_uva})
            for (bool copied : {false, true}) one_end(allocator, copied, i % 2 == 0);
    look_at_the_driver(arguments[1]);
    std::puts("all streams have ended");
}
