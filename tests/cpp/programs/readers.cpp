// Threads that read one buffer at the same time, whose stream was assigned or has changed, as `const` allows them to.
#include <hamr.hpp>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "checks.hpp"

using A = hamr::buffer_allocator;

static void at_once(const std::function<void(int)> &read) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            for (ready++; ready < 3;) {}
            read(i);
        });
    for (std::thread &each : threads) each.join();
}

int main() {
    int handle = 0;
    const hamr::stream named = hamr::stream::of(&handle, "cuda");
    for (int round = 0; round < 200; round++) {
        hamr::buffer<double> made(A::malloc, 10, 1.5);
        const hamr::buffer<double> &read = made;

        // Assigned, so that the first reader tells the library of it.
        made.get_stream() = named;
        TRUE(read.pointer().get() == read.data());
        made.get_stream() = hamr::stream();
        at_once([&](int) { TRUE(read.pointer().get() == read.data() && read.get_stream() == hamr::stream()); });

        // Changed behind the buffer's back, as by a stream that has ended: the first reader finds that.
        TRUE(made.set_stream(named) == 0 && hamr_set_stream(made.native(), nullptr, HAMR_SYNC_HOST) == HAMR_OK);
        at_once([&](int i) {
            if (i) TRUE(read.get_stream().native() == nullptr);
            else TRUE(read.synchronize() == 0 && read.read()[9] == 1.5);
        });

        // Without a buffer of the library's, until the first reader asks for one.
        const hamr::buffer<double> moved(std::move(made));
        at_once([&](int i) { TRUE(read.size() == 0 && !read.data() && (i ? read.synchronize() == 0 : read.native() != nullptr)); });
        TRUE(moved.size() == 10);
        made = moved;
        TRUE(made.resize(3) == 0 && read.size() == 3 && read.data() && read.native());
    }
    puts("all have read");
    return 0;
}
