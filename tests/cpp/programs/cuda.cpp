// hamr.hpp on two CUDA devices: memory of each kind, streams, owners, and movement by access.
#include "hamr.hpp"

#include "checks.hpp"
#include "driver.h"

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

template <typename T>
using B = hamr::buffer<T>;

static int active() {
    int device = -1;
    TRUE(hamr::get_active_cuda_device(device) == 0);
    return device;
}

// A consumer that works on the device, and one on the host, of whatever they are given.
template <typename T, typename U>
static B<T> on_device(B<U> in, int device) {
    hamr::activate_device there(device);
    auto shared = in.get_cuda_accessible();
    TRUE(in.synchronize() == 0);
    int owner = -2;
    const bool mine = in.get_owner() == device || in.get_allocator() == A::cuda_uva;
    if (mine) TRUE((shared.get() == in.data()));
    else if (in.get_owner() == -1) TRUE((shared.get() != in.data() && hamr::get_cuda_device(shared.get(), owner) == 0 && owner == device));
    B<T> out(A::cuda, in);
    TRUE(out.get_owner() == device);
    return out;
}

static void pipelines() {
    for (A a : {A::malloc, A::cuda, A::cuda_async, A::cuda_uva, A::cuda_host}) {
        for (int device : {0, 1}) {
            for (M mode : {M::async, M::sync_host, M::sync}) {
                hamr::activate_cuda_device there(device);
                TRUE(active() == device);
                const hamr::stream s = hamr::stream::create();
                B<float> b(a, s, mode, 1000, 1.5f);
                TRUE(b.get_owner() == (hamr::host_accessible(a) && a != A::cuda_uva ? -1 : device) && b.get_stream().native() == s.native() && s);
                TRUE(b.append(std::vector<int>(24, 2).data(), 24) == 0 && b.size() == 1024);
                auto [sh, ph] = hamr::get_host_accessible(b);
                TRUE(hamr::synchronize(b) == 0);
                TRUE(ph[0] == 1.5f && ph[1023] == 2 && (ph == b.data()) == (b.host_accessible() != 0));
                B<double> moved = on_device<double>(on_device<int>(b, 1 - device), device);
                TRUE(active() == device && moved.get_owner() == device && sum(moved) == 1048 && sum(b) == 1548);
                TRUE(s.synchronize() == 0);
            }
        }
    }
}

static void owners() {
    const float one[] = {1, 2, 3};
    B<float> first(A::cuda, 3, one), other(A::cuda);
    const float *where = first.data();
    int device = -1, released = 0;
    TRUE(hamr::set_active_device(1) == 0 && active() == 1);
    B<float> second(A::cuda, 2, 7.0f), copied(A::cuda, std::move(first));
    TRUE(copied.get_owner() == 1 && copied.data() != where && first.empty() && sum(copied) == 6); // another owner: no move
    TRUE(hamr::set_active_device(0) == 0 && B<int>(A::same, copied).get_owner() == 1 && B<int>(A::cuda, copied).get_owner() == 0);
    TRUE(hamr::set_active_device(1) == 0);
    second = copied;
    other = copied;
    TRUE(second.get_owner() == 1 && other.get_owner() == 0 && sum(second) == 6 && sum(other) == 6);
    where = copied.data();
    second = std::move(copied);
    TRUE(second.data() == where && hamr::get_device(second.data(), device) == 0 && device == 1);
    other = std::move(second);
    TRUE(other.get_owner() == 0 && sum(other) == 6 && !second.data());
    TRUE(other.move(A::cuda) == 0 && other.get_owner() == 1 && other.move(A::malloc) == 0 && other.get_owner() == -1 && other.data()[2] == 3);
    TRUE(other.free() == 0 && other.resize(2, 1) == 0 && sum(other) == 2);
    B<float> grown(A::cuda, 1, 1.0f);
    TRUE(hamr::set_active_device(0) == 0 && grown.free() == 0 && grown.resize(4, 2) == 0 && grown.get_owner() == 1); // upstream forgot it

    {
        B<float> shared(A::cuda, 4, -1, grown.data(), [&](float *p) { released += p == grown.data(); });
        TRUE(shared.get_owner() == 1 && sum(shared) == 8 && shared.set(0, one, 2, 1) == 0);
    }
    TRUE(released == 1 && sum(grown) == 9);
    std::shared_ptr<float> kept = grown.pointer();
    grown.free();
    TRUE(sum(B<float>(A::cuda, hamr::stream(), M::sync, 4, 1, kept)) == 9);
    THROWS(hamr::error, "4711", hamr::activate_device(4711));
    hamr::access_cuda_peer peer;
    TRUE(peer.enable(0, 1, true) == 0 && peer.enable(1, 0, false) == 0 && peer.disable() == 0);
    TRUE(B<float>(hamr::get_device_allocator(), 1, 1).get_device_accessible() && B<float>(A::cuda, 1).device_accessible());
}

static void views() {
    const hamr::stream s = hamr::stream::create(0);
    B<int> b(A::cuda, s, M::async, 4, 1);
    {
        auto view = b.read_write();
        TRUE(view.is_temporary() && view[3] == 1);
        view[0] = 5;
    }
    TRUE(sum(b) == 8 && b.read(hamr::space::cuda, 0).data() == b.data());
    b.write().release();
    const B<int> square = b.reshape({2, 2});
    TRUE(square.data() == b.data() && square.shape() == hamr::extents(2, 2) && square.get_stream() == b.get_stream());
    hamr::stream same = s, none;
    TRUE(same == s.get_stream() && b.set_stream(none, M::sync) == 0 && !b.get_stream() && b.get_transfer_mode() == M::sync);
    TRUE(none.synchronize() == 0 && b.set_stream(same) == 0 && b.get_transfer_mode() == M::async);
    same.swap(none);
    TRUE(none && !same);
}

// One access ends with its object, and that of two with the last; the emulator takes a fill without it for a
// misuse, of which the caller is told here.
static void peers(const char *path) {
    auto *fill = reinterpret_cast<int (*)(void *, unsigned char, std::size_t, void *)>(of_driver(path, "cuMemsetD8Async"));
    auto *forget = reinterpret_cast<void (*)(void)>(of_driver(path, "emulator_reset"));
    if (!forget) return;
    for (A where : {A::cuda, A::cuda_async, A::cuda_vmm}) {
        const hamr::activate_device there(1);
        B<char> b(where, 16, static_cast<char>(1));
        TRUE(b.synchronize() == 0);
        const hamr::activate_device here(0);
        {
            hamr::access_cuda_peer one;
            TRUE(one.enable(0, 1) == 0 && one.enable(0, 1, true) == 0);
            {
                hamr::access_cuda_peer two;
                TRUE(two.enable(0, 1) == 0 && two.disable() == 0 && two.disable() == 0 && two.enable(0, 1) == 0);
            }
            TRUE(fill(b.data(), 2, 16, nullptr) == 0);
        }
        const bool ends = where != A::cuda_async; // a pool is open to each device that can reach it
        TRUE((fill(b.data(), 3, 16, nullptr) != 0) == ends);
        if (ends) forget();
        TRUE(!ends || sum(b) == 32);
    }
    hamr::access_cuda_peer none;
    TRUE(message([&] { return none.enable(0, 99, true); }).find("99") != std::string::npos && none.disable() == 0);
}

// Copies to memory that somebody has page-locked go on in the default mode. Whoever asks hamr for the elements waits.
static void others_lock(const char *path) {
    auto *lock = reinterpret_cast<int (*)(void *, std::size_t, unsigned)>(of_driver(path, "cuMemHostRegister_v2"));
    auto *unlock = reinterpret_cast<int (*)(void *)>(of_driver(path, "cuMemHostUnregister"));
    const hamr::activate_device here(0);
    std::vector<float> memory(1000);
    TRUE(lock(memory.data(), memory.size() * sizeof(float), 0) == 0);
    const B<float> device(A::cuda, memory.size(), 7.0f);
    float got = 0;
    const std::function<void(B<float> &)> readers[] = {
        [&](B<float> &b) { got = b.get_host_accessible().get()[999]; },
        [&](B<float> &b) { got = b.read()[999]; },
        [&](B<float> &b) { TRUE(b.get(999, &got, 0, 1) == 0); },
        [&](B<float> &b) { got = B<float>(A::malloc, b).data()[999]; },
        [&](B<float> &b) { got = b.synchronize() == 0 ? b[999] : 0; },
        [&](B<float> &b) { b = B<float>(); got = memory[999]; },
    };
    for (const auto &reader : readers) {
        memory.assign(memory.size(), 0);
        B<float> host(A::malloc, memory.size(), -1, memory.data(), 0);
        TRUE(host.get_transfer_mode() == M::async && host.set(0, device, 0, memory.size()) == 0);
        reader(host);
        TRUE(got == 7);
        got = 0;
    }
    TRUE(unlock(memory.data()) == 0);
}

// A stream may end while something names it whose elements were moved away.
static void streams_end() {
    B<float> empty, target(A::cuda, 2, 1.0f);
    {
        const hamr::stream s = hamr::stream::create(0);
        B<float> first(A::cuda, s, 3, 1.0f);
        const B<float> second(std::move(first));
        empty = B<float>(A::cuda, s);
        B<float> third(A::cuda, s, 1, 1.0f);
        empty.swap(third);
        target = std::move(third);
        empty.swap(first);
        TRUE(target.set_stream(s) == 0);
        target = std::move(third);
        TRUE(target.empty() && target.get_stream() == s.get_stream());
    }
    TRUE(!empty.get_stream() && !target.get_stream());
    TRUE(empty.resize(3, 2) == 0 && sum(empty) == 6 && target.resize(3, 2) == 0 && sum(target) == 6);
}

struct holder {
    B<float> field;
};

// Classes that hold buffers are swapped by moves, which leave each its stream, until that ends.
static void streams_stay(A one, A other) {
    B<float> kept;
    {
        const hamr::stream s = hamr::stream::create(0), t = hamr::stream::create(0);
        holder a{B<float>(one, s, 2, 1.0f)}, b{B<float>(other, t, M::sync, 3, 2.0f)};
        std::swap(a, b);
        TRUE(sum(a.field) == 6 && sum(b.field) == 2 && a.field.get_stream() == s && b.field.get_stream() == t);
        const B<float> moved(std::move(a.field));
        TRUE(moved.get_stream() == s && a.field.get_stream() == s && a.field.empty() && a.field.get_allocator() == one);
        TRUE(a.field.resize(2, 5) == 0 && sum(a.field) == 10 && sum(moved) == 6);
        b = std::move(a);
        TRUE(b.field.get_stream() == t && sum(b.field) == 10 && a.field.get_stream() == s && b.field.get_transfer_mode() == M::sync);
        kept.swap(a.field);
    }
    TRUE(!kept.get_stream() && kept.resize(3, 2) == 0 && sum(kept) == 6 && kept.get_allocator() == one);
}

int main(int count, char **arguments) {
    TRUE(hamr::set_active_device(0) == 0); // which loads the driver
    if (count > 1) peers(arguments[1]);
    if (count > 1) others_lock(arguments[1]);
    streams_end();
    streams_stay(A::cuda, A::cuda);
    streams_stay(A::cuda_async, A::cuda);
    streams_stay(A::cuda_vmm, A::cuda_vmm);
    streams_stay(A::cuda_host, A::malloc);
    pipelines();
    owners();
    views();
    TRUE(live_everywhere() == 0);
    if (count > 1) look_at_the_driver(arguments[1]);
    puts("all of C++ on devices");
    return 0;
}
