// A random walk over buffers of several types, beside vectors that say what they hold: model SEED STEPS
// [DRIVER]. With a driver of an emulator's the memory is that of two devices, too.
#include <hamr.hpp>

#include <random>
#include <sstream>
#include <tuple>

#include "checks.hpp"
#include "driver.h"
#include "model_views.hpp"

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

static std::mt19937 random_bits;
static std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_bits); }
static bool chance(std::size_t of) { return below(of) == 0; }

static std::vector<A> places{A::cpp, A::malloc, A::shared};
static std::vector<hamr::stream> streams[2]; // of each device
static bool devices = false;
static int device = 0; // this thread's
static int given = 0, ended = 0; // memory of this program's that buffers share

static A any_place() { return places[below(places.size())]; }
static M any_mode() { return static_cast<M>(below(3)); }

static hamr::stream any_stream(int of = device) {
    const std::vector<hamr::stream> &list = streams[of < 0 ? device : of];
    const std::size_t which = below(list.size() + 1);
    return which ? list[which - 1] : hamr::stream();
}

template <typename T>
std::vector<T> numbers(std::size_t n) {
    std::vector<T> made(n);
    for (T &each : made) each = static_cast<T>(below(100));
    return made;
}

template <typename T, typename U>
std::vector<T> converted(const std::vector<U> &from) {
    std::vector<T> made;
    for (const U &each : from) made.push_back(static_cast<T>(each));
    return made;
}

template <typename T>
struct slot {
    hamr::buffer<T> b;
    std::vector<T> model;
};

// What code keeps of elements, across whatever happens to the buffer.
template <typename T>
struct held {
    std::shared_ptr<const T> elements;
    std::vector<T> model;
};

template <typename T>
struct slots {
    std::vector<slot<T>> list{4};
    std::vector<held<T>> kept;
    slot<T> &any() { return list[below(list.size())]; }
};

using types = std::tuple<slots<std::int8_t>, slots<float>, slots<double>, slots<std::int64_t>>;
static types *world;

template <std::size_t I = 0, typename F>
void visit(std::size_t which, F &&function) {
    if constexpr (I < std::tuple_size_v<types>) {
        if (which == I) function(std::get<I>(*world));
        else visit<I + 1>(which, function);
    }
}

template <typename F>
void with_any(F &&function) {
    visit(below(std::tuple_size_v<types>), [&](auto &all) { function(all.any()); });
}

template <typename T>
void check(const slot<T> &s) {
    TRUE(s.b.size() == s.model.size());
    std::vector<T> read(s.model.size());
    TRUE(s.b.get(0, read.data(), 0, read.size()) == 0);
    TRUE(read == s.model);
    TRUE(s.b.data() || read.empty());
}

template <typename T>
void check(slots<T> &all) {
    for (slot<T> &s : all.list) check(s);
    for (held<T> &h : all.kept) {
        for (slot<T> &s : all.list) {
            if (s.b.data() != h.elements.get()) continue;
            TRUE(s.b.synchronize() == 0);
            const std::size_t n = std::min(s.model.size(), h.model.size());
            std::copy_n(s.model.begin(), n, h.model.begin());
        }
        for (std::size_t i = 0; i < h.model.size(); i++) TRUE(h.elements.get()[i] == h.model[i]);
    }
}

// A range inside of n elements, or, seldom, one that is not; then the call must refuse it.
struct range {
    std::size_t start, n;
    bool good;
    explicit range(std::size_t of) : start(below(of + 1)), n(below(of - start + 1)), good(true) {
        if (!chance(12)) return;
        n = chance(2) ? of - start + 1 + below(3) : SIZE_MAX - below(3) * start;
        good = false;
    }
};

template <typename T>
std::vector<T> part(const std::vector<T> &of, range r) {
    return std::vector<T>(of.begin() + static_cast<std::ptrdiff_t>(r.start), of.begin() + static_cast<std::ptrdiff_t>(r.start + r.n));
}

// Elements that the host has, and that are what the model says at return.
template <typename T>
bool on_host(const slot<T> &s) {
    return s.b.host_accessible() && s.b.synchronize() == 0;
}

template <typename T>
void make(slot<T> &s) {
    const std::size_t n = chance(4) ? 0 : below(chance(8) ? 5000 : 40);
    const A a = any_place();
    const T value = static_cast<T>(below(100));
    const std::vector<int> host = numbers<int>(n);
    s.model.assign(n, value);
    switch (below(9)) {
    case 0: s.b = hamr::buffer<T>(a), s.model.clear(); break;
    case 1: s.b = hamr::buffer<T>(a, any_stream(), any_mode(), n, value); break;
    case 2: s.b.~buffer(), new (&s.b) hamr::buffer<T>(a, any_stream(), any_mode(), n, host.data()), s.model = converted<T>(host); break;
    case 3: s.b.~buffer(), new (&s.b) hamr::buffer<T>(a, hamr::extents(n), value); break;
    case 4: {
        std::unique_ptr<T[]> owner(new T[n + 1]);
        T *memory = owner.get();
        std::fill_n(memory, n, value);
        given++;
        s.b.~buffer();
        new (&s.b) hamr::buffer<T>(A::cpp, n, -1, memory, [own = std::move(owner)](T *p) mutable { ended += p == own.get(), own.reset(); });
        break;
    }
    case 5: {
        given++;
        std::shared_ptr<T> shared(new T[n + 1], [](T *p) { delete[] p, ended++; });
        std::fill_n(shared.get(), n, value);
        s.b.~buffer();
        new (&s.b) hamr::buffer<T>(A::cpp, any_stream(), n, -1, shared);
        break;
    }
    case 6: {
        T *memory = static_cast<T *>(std::malloc((n + 1) * sizeof(T)));
        std::fill_n(memory, n, value);
        s.b.~buffer();
        new (&s.b) hamr::buffer<T>(A::malloc, n, -1, memory, 1);
        break;
    }
    case 7:
        s.b.~buffer(), new (&s.b) hamr::buffer<T>(a, n);
        TRUE(s.b.set(0, s.model.data(), 0, n) == 0);
        break;
    default: s.b = hamr::buffer<T>(a, n, value);
    }
}

template <typename T, typename U>
void copy(slot<T> &s, slot<U> &from) {
    if (static_cast<void *>(&s) == static_cast<void *>(&from)) {
        const hamr::buffer<T> &same = s.b;
        s.b = same;
        return;
    }
    s.model = converted<T>(from.model);
    switch (below(5)) {
    case 0: s.b = from.b; break;
    case 1: s.b.~buffer(), new (&s.b) hamr::buffer<T>(from.b); break;
    case 2: s.b.~buffer(), new (&s.b) hamr::buffer<T>(any_place(), from.b); break;
    case 3: s.b.~buffer(), new (&s.b) hamr::buffer<T>(A::same, any_stream(from.b.get_owner()), any_mode(), from.b); break;
    default: s.b = hamr::buffer<T>(any_place(), any_stream(), from.b);
    }
}

template <typename T>
void move(slot<T> &s, slot<T> &from) {
    const bool itself = &s == &from;
    hamr::buffer<T> &other = from.b;
    switch (below(itself ? 2 : 4)) {
    case 0: s.b.swap(other), s.model.swap(from.model); return;
    case 1: s.b = std::move(other); break;
    case 2: s.b.~buffer(), new (&s.b) hamr::buffer<T>(std::move(other)); break;
    default: s.b.~buffer(), new (&s.b) hamr::buffer<T>(any_place(), std::move(other));
    }
    if (itself) return;
    s.model = std::move(from.model);
    from.model.clear();
}

// From a buffer, maybe itself, from the host's memory, or from the buffer's own.
template <typename T, typename U>
void change(slot<T> &s, slot<U> &from) {
    const range r(from.model.size());
    const std::size_t at = below(s.model.size() + 1);
    const std::size_t source = r.good ? below(3) : 0, what = below(3);
    const bool own = source == 2 && on_host(from);
    const bool fits = what != 2 || (r.good && at + r.n <= s.model.size());
    const U *host = own ? from.b.data() : from.model.data();
    int status;
    if (what == 0) status = source ? s.b.assign(host, r.start, r.n) : s.b.assign(from.b, r.start, r.n);
    else if (what == 1) status = source ? s.b.append(host, r.start, r.n) : s.b.append(from.b, r.start, r.n);
    else status = source ? s.b.set(at, host, r.start, r.n) : s.b.set(at, from.b, r.start, r.n);
    TRUE(status == (r.good && fits ? 0 : -1));
    if (status) return;
    const std::vector<T> added = converted<T>(part(from.model, r));
    if (what == 0) s.model = added;
    else if (what == 1) s.model.insert(s.model.end(), added.begin(), added.end());
    else std::copy(added.begin(), added.end(), s.model.begin() + static_cast<std::ptrdiff_t>(at));
}

template <typename T, typename U>
void read(const slot<T> &s, slot<U> &to) {
    const range r(s.model.size());
    const std::size_t at = below(to.model.size() + 1);
    if (chance(2)) {
        std::vector<U> target(r.good ? r.n : 0);
        TRUE(s.b.get(r.start, target.data(), 0, r.n) == (r.good ? 0 : -1));
        if (r.good) TRUE(target == converted<U>(part(s.model, r)));
        return;
    }
    const bool good = r.good && at + r.n <= to.model.size();
    const std::vector<U> values = good ? converted<U>(part(s.model, r)) : std::vector<U>();
    TRUE(s.b.get(r.start, to.b, at, r.n) == (good ? 0 : -1));
    std::copy(values.begin(), values.end(), to.model.begin() + static_cast<std::ptrdiff_t>(at));
}

template <typename T>
void resize(slot<T> &s) {
    const std::size_t before = s.model.size(), n = below(chance(8) ? 3000 : 60);
    const T value = static_cast<T>(below(100));
    switch (below(6)) {
    case 0:
        TRUE(s.b.free() == 0);
        s.model.clear();
        break;
    case 1: TRUE(s.b.reserve(n, value) == 0 && s.b.capacity() >= n); break;
    case 2:
        TRUE(s.b.resize(n) == 0);
        s.model.resize(n, value);
        if (n > before) TRUE(s.b.set(before, s.model.data(), before, n - before) == 0);
        break;
    case 3: TRUE(s.b.move(any_place()) == 0); break;
    case 4: TRUE(s.b.resize(SIZE_MAX / 2 / sizeof(T) + below(3), value) == -1 && s.b.reserve(SIZE_MAX - below(3)) == -1); break;
    default:
        TRUE(s.b.resize(n, value) == 0);
        s.model.resize(n, value);
    }
}

template <typename T>
void reach(slots<T> &all, slot<T> &s) {
    const T value = static_cast<T>(below(100));
    switch (below(4)) {
    case 0: {
        all.kept.push_back({s.b.get_host_accessible(), s.model});
        TRUE(s.b.synchronize() == 0 && (all.kept.back().elements == nullptr) == s.model.empty());
        break;
    }
    case 1: {
        std::shared_ptr<T> &own = s.b.pointer();
        TRUE(own.get() == s.b.data());
        if (!on_host(s)) break;
        if (!s.model.empty()) own.get()[0] = s.model[0] = value;
        all.kept.push_back({own, s.model});
        break;
    }
    case 2: {
        auto view = s.b.read_write();
        for (std::size_t i = 0; i < view.size(); i++) {
            TRUE(view[i] == s.model[i]);
            view[i] = s.model[i] = value;
        }
        if (chance(2)) view.release();
        break;
    }
    default: {
        if (s.b.shape().rank() != 1) break;
        const hamr::buffer<T> square = s.b.reshape(s.model.size() % 2 ? hamr::extents(-1, 1) : hamr::extents(2, s.model.size() / 2));
        TRUE(square.data() == s.b.data());
        if (chance(2)) TRUE(s.b.assign(square) == 0 && s.b.shape() == square.shape() && s.b.resize(s.model.size()) == 0);
    }
    }
    if (all.kept.size() > 6) all.kept.erase(all.kept.begin() + static_cast<std::ptrdiff_t>(below(all.kept.size())));
}

// Elements with steps between them, and a buffer that becomes them, perhaps the one that has them.
template <typename T, typename U>
void views(slot<T> &s, slot<U> &to) {
    const steps which(s.model.size(), below);
    hamr::buffer<T> view = stepped(s.b, which);
    const std::vector<T> model = stepped(s.model, which);
    TRUE(contents(view) == model && view.size() == which.n);
    const T value = static_cast<T>(below(100));
    const std::size_t from = below(which.n + 1);
    switch (below(5)) {
    case 0: write_to(view, which, s.model, value, from); break;
    case 1: read_from(view, model, any_place(), value); break;
    case 2:
        TRUE(to.b.assign(view) == 0);
        to.model = converted<U>(model);
        break;
    case 3: {
        const std::vector<U> added = converted<U>(std::vector<T>(model.begin() + static_cast<std::ptrdiff_t>(from), model.end()));
        TRUE(to.b.append(view, from, which.n - from) == 0);
        to.model.insert(to.model.end(), added.begin(), added.end());
        break;
    }
    default: to.b.~buffer(), new (&to.b) hamr::buffer<U>(any_place(), view), to.model = converted<U>(model);
    }
}

static void change_streams() {
    if (devices && chance(3)) {
        std::vector<hamr::stream> &list = streams[device];
        if (list.size() > 2) list.erase(list.begin()); // buffers that name it turn to the default stream
        list.push_back(hamr::stream::create(device));
    }
    with_any([](auto &s) {
        if (chance(3)) TRUE(s.b.set_transfer(any_mode()) == 0);
        else TRUE(s.b.set_stream(any_stream(s.b.get_owner()), any_mode()) == 0);
    });
}

static void step() {
    device = static_cast<int>(below(devices ? 2 : 1));
    const hamr::activate_device there(devices ? device : -1);
    const std::size_t what = below(11), which = below(std::tuple_size_v<types>);
    if (what == 0) return change_streams();
    visit(which, [&](auto &all) {
        auto &s = all.any();
        switch (what) {
        case 1: make(s); break;
        case 2: with_any([&](auto &from) { copy(s, from); }); break;
        case 3: move(s, all.any()); break;
        case 4: resize(s); break;
        case 5: reach(all, s); break;
        case 6: with_any([&](auto &to) { read(s, to); }); break;
        case 7: with_any([&](auto &to) { views(s, to); }); break;
        case 8: pass_as_tensor(s.b, chance(2)); break;
        default: with_any([&](auto &from) { change(s, from); });
        }
    });
}

int main(int count, char **arguments) {
    TRUE(count >= 3);
    const unsigned seed = static_cast<unsigned>(std::stoul(arguments[1]));
    if (count > 3) {
        devices = true;
        for (A each : {A::cuda, A::cuda_async, A::cuda_uva, A::cuda_host, A::cuda_vmm}) places.push_back(each);
    }
    std::ostringstream messages; // of what is refused
    std::streambuf *before = std::cerr.rdbuf(messages.rdbuf());
    random_bits.seed(seed);
    auto owner = std::make_unique<types>();
    world = owner.get();
    for (int i = 0; i < std::stoi(arguments[2]); i++) {
        if (std::getenv("MODEL_TRACE")) fprintf(stderr, "step %d\n", i);
        step();
        std::apply([](auto &...all) { (check(all), ...); }, *world);
        messages.str("");
    }
    owner.reset();
    for (auto &list : streams) list.clear();
    std::cerr.rdbuf(before);
    TRUE(ended == given);
    TRUE(live_everywhere() == 0);
    if (count > 3) look_at_the_driver(arguments[3]);
    puts("the model holds");
    return 0;
}
