// Elements that are no numbers: objects, which are constructed, copied and destroyed; structs, pointers and long double.
#include "hamr_buffer.h"

#include "checks.hpp"

#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

template <typename T>
using B = hamr::buffer<T>;

// An object that knows itself, so that one that was copied by its bytes, or ended twice, is found; one of them fails.
struct tracked {
    static int live, left;
    const tracked *self = this;
    int value;

    tracked() : tracked(7) {}
    tracked(int of) : value(of) { begin(); }
    tracked(const tracked &other) : value(other.checked()) { begin(); }
    tracked(tracked &&other) noexcept : value(std::exchange(other.value, -1)) { live++; }
    tracked &operator=(const tracked &other) {
        TRUE(self == this);
        value = other.checked();
        return *this;
    }
    ~tracked() {
        TRUE(self == this);
        self = nullptr;
        live--;
    }
    explicit operator double() const { return checked(); }
    int checked() const {
        TRUE(self == this);
        return value;
    }

private:
    static void begin() {
        if (left-- == 0) throw std::runtime_error("no more of them");
        live++;
    }
};
int tracked::live = 0, tracked::left = -1;

static std::vector<std::string> texts(const B<std::string> &b) { return std::vector<std::string>(b.data(), b.data() + b.size()); }
using words = std::vector<std::string>;

static const std::string LONG(100, 'x');

static void strings(A place) {
    const std::string given[] = {"a", LONG, "c", "d"};
    const hamr::stream s;
    B<std::string> empty(place), none(place, s, M::sync), three(place, 3), of(place, 2, LONG), from(place, 4, given);
    TRUE(empty.empty() && !empty.data() && !empty.get_host_accessible() && none.get_transfer_mode() == M::sync && empty.get_allocator() == place);
    TRUE(texts(three) == words({"", "", ""}) && texts(of) == words({LONG, LONG}) && texts(from) == words({"a", LONG, "c", "d"}) && from.get_owner() == -1);
    TRUE(texts(B<std::string>(place, 2, "word")) == words({"word", "word"})); // one value, not characters
    TRUE(texts(B<std::string>(place, s, 2, "word")) == words({"word", "word"}) && texts(B<std::string>(place, s, M::sync, 1, given + 1)) == words({LONG}));
    TRUE(B<std::string>(place, s, 5).size() == 5 && B<std::string>(place, s, M::sync, 6).size() == 6 && from.shape() == hamr::extents(4));

    B<std::string> copy(from), moved(std::move(copy)), there(A::cpp, moved), assigned(place);
    TRUE(copy.empty() && texts(moved) == texts(from) && texts(there) == texts(from) && there.get_allocator() == A::cpp);
    assigned = from;
    assigned = std::move(there);
    TRUE(there.empty() && texts(assigned) == texts(from) && assigned.get_allocator() == place && there.get_allocator() == A::cpp);
    TRUE(there.append(given, 1) == 0 && texts(there) == words({"a"}));
    B<std::string> &itself = there;
    there = std::move(itself);
    std::swap(there, of);
    TRUE(there.size() == 2 && of.size() == 1);
    B<std::string> kept(A::same, s, M::async, std::move(of));
    TRUE(texts(kept) == words({"a"}) && of.empty());

    TRUE(from.resize(2) == 0 && from.resize(3) == 0 && from.resize(5, "v") == 0 && texts(from) == words({"a", LONG, "", "v", "v"}));
    TRUE(from.reserve(100) == 0 && from.capacity() >= 100 && from.size() == 5);
    const std::string *where = from.data();
    TRUE(from.resize(100, from.data()[1]) == 0 && from.data() == where && from.data()[99] == LONG && from.resize(2) == 0 && from.capacity() >= 100);
    TRUE(from.append(from) == 0 && from.append(from, 1, 1) == 0 && from.append(given, 2, 2) == 0 && texts(from) == words({"a", LONG, "a", LONG, LONG, "c", "d"}));
    for (int i = 0; i < 8; i++) TRUE(from.append(from.data() + 6, 1) == 0); // its own elements, across growth
    TRUE(from.size() == 15 && from.data()[14] == "d" && from.assign(from, 5, 2) == 0 && texts(from) == words({"c", "d"}));
    TRUE(from.assign(given, 1, 3) == 0 && from.assign(moved) == 0 && from.set(1, given, 0, 2) == 0 && texts(from) == words({"a", "a", LONG, "d"}));
    TRUE(from.set(1, from, 0, 3) == 0 && texts(from) == words({"a", "a", "a", LONG}) && from.set(0, from, 1, 3) == 0 && texts(from) == words({"a", "a", LONG, LONG}));
    std::string read[3];
    B<std::string> to(place, 4);
    TRUE(from.get(1, read, 1, 2) == 0 && read[0].empty() && read[2] == LONG && from.get(to) == 0 && texts(to) == texts(from) && to.get(0, from, 3, 1) == 0);
    TRUE(to.set(from) == 0 && to.data()[3] == "a");

    SAYS("hamr::buffer::set: n is 2 from element 3 on: the buffer has 4", to.set(3, given, 0, 2));
    SAYS("the buffer has 4", to.get(3, read, 0, 2));
    SAYS("the source has 4", to.assign(from, 3, 2));
    SAYS("the source has 4", to.append(from, ~std::size_t(0), 2));
    SAYS("NULL", to.append(static_cast<const std::string *>(nullptr), 2));
    SAYS("63 bits", to.resize(~std::size_t(0)));
    SAYS("up to 2**63 bytes", to.reserve(~std::size_t(0) / 8));
    SAYS("transfer is 9", to.set_transfer(static_cast<M>(9)));
    TRUE(texts(to) == words({"a", "a", LONG, "a"}));

    auto [shared, first] = hamr::get_host_accessible(to);
    TRUE(first == to.data() && to.host_accessible() && !to.cuda_accessible() && hamr::synchronize(to, from) == 0);
    TRUE(to.resize(1) == 0 && to.append(given, 2) == 0 && first[1] == "a" && first[2] == LONG && to.data() != first); // sharers have what they had
    std::shared_ptr<std::string> &follows = to.pointer(), held = follows;
    TRUE(std::as_const(to).pointer() == follows && to.append(from) == 0 && follows.get() == to.data() && held.get() != to.data() && *held == "a");
    TRUE(to.move(A::cpp) == 0 && to.get_allocator() == A::cpp && to.size() == 7 && to.move(A::malloc) == 0 && to.data()[2] == LONG);
    TRUE(to.print() == 0 && to.free() == 0 && to.empty() && !to.capacity() && *held == "a" && to.resize(1, "b") == 0 && texts(to) == words({"b"}));
    to.get_stream() = hamr::stream();
    TRUE(!to.get_stream() && to.set_stream(s, M::sync) == 0 && to.get_transfer_mode() == M::sync && to.set_transfer_asynchronous() == 0);
    auto [made, values] = hamr::make_buffer<std::string>(place, 2, "z");
    TRUE(values[1] == "z" && made.data() == values && std::get<0>(hamr::data(made)) == values);
}

static void lifetimes(A place) {
    const int numbers[] = {1, 2, 3, 4, 5};
    TRUE(tracked::live == 0);
    {
        B<tracked> b(place, 3), c(place, 5, numbers), d(c); // converted from int
        TRUE(sum(b) == 21 && sum(c) == 15 && sum(d) == 15 && tracked::live == 13);
        for (int i = 0; i < 100; i++) TRUE(b.append(c, 1, 2) == 0 && b.append(numbers, 1) == 0);
        TRUE(b.size() == 303 && tracked::live == 313 && b.resize(2) == 0 && tracked::live == 12);
        B<double> as_numbers(A::malloc, c);
        B<tracked> again(as_numbers.get_allocator(), B<int>(as_numbers));
        TRUE(sum(as_numbers) == 15 && sum(again) == 15 && as_numbers.append(again, 4, 1) == 0 && as_numbers.set(0, b, 0, 2) == 0 && sum(as_numbers) == 31);
        TRUE(as_numbers.assign(again) == 0 && again.get(as_numbers) == 0 && again.set(B<int>(A::cpp, 5, 2)) == 0 && sum(again) == 10);

        const tracked three(3);
        for (int left = 0; left < 7; left++) { // whichever of them fails, nothing has changed
            const int before = tracked::live;
            SAYS("no more of them", (tracked::left = left, c.append(d, 0, 5) ? -1 : c.append(d, 0, 5)));
            tracked::left = -1;
            TRUE(c.size() == (left < 5 ? 5 : 10) && c.resize(5) == 0 && sum(c) == 15 && tracked::live == before);
            c.reserve(0);
            SAYS("no more of them", (tracked::left = left % 5, c.assign(numbers, 5)));
            SAYS("no more of them", (tracked::left = left, c.resize(20, three)));
            THROWS(std::runtime_error, "no more of them", (tracked::left = left % 5, B<tracked>(c)));
            THROWS(std::runtime_error, "no more of them", (tracked::left = left % 5, B<tracked>(place, 5)));
            tracked::left = -1;
            TRUE(sum(c) == 15 && tracked::live == before);
        }
    }
    TRUE(tracked::live == 0);

    int ended = 0;
    {
        auto *mine = new tracked[2];
        B<tracked> adopted(place, 2, -1, mine, [&](tracked *p) { ended++, delete[] p; });
        TRUE(adopted.data() == mine && adopted.append(numbers, 2) == 0 && adopted.data() != mine && ended == 1 && sum(adopted) == 17);
        B<tracked> taken(A::cpp, 2, -1, new tracked[2]), lent(A::malloc, 2, -1, adopted.data(), 0), kept(place, 4, -1, adopted.pointer());
        auto *raw = static_cast<tracked *>(malloc(sizeof(tracked)));
        new (raw) tracked(5);
        B<tracked> freed(A::malloc, 1, -1, raw);
        TRUE(sum(taken) == 14 && lent.data() == adopted.data() && kept.data() == lent.data() && sum(freed) == 5 && lent.free() == 0);
        adopted.free();
        TRUE(sum(kept) == 17);
        THROWS(hamr::error, "give a deleter", B<tracked>(A::shared, 1, -1, raw));
    }
    TRUE(tracked::live == 0 && ended == 1);
}

struct no_default {
    explicit no_default(std::string given) : text(std::move(given)) {}
    std::string text;
};

struct tree { // as of metadata
    std::map<std::string, tree> children;
    int value = 0;
};

struct node { // of which buffers have more
    int value = 1;
    B<node> children;
    std::vector<B<node>> groups;

    int sum() const {
        int found = value;
        for (std::size_t i = 0; i < children.size(); i++) found += children.data()[i].sum();
        for (const auto &group : groups)
            for (std::size_t i = 0; i < group.size(); i++) found += group.data()[i].sum();
        return found;
    }
};

static void other_objects() {
    auto number = std::make_shared<int>(5);
    B<std::shared_ptr<int>> pointers(A::malloc, 3, number);
    TRUE(number.use_count() == 4 && pointers.resize(1) == 0 && number.use_count() == 2 && pointers.append(&number, 1) == 0 && **pointers.data() == 5);
    pointers.free();
    TRUE(number.use_count() == 1);

    B<std::unique_ptr<int>> owners(A::cpp, 2); // which cannot be copied
    owners.data()[1] = std::make_unique<int>(3);
    B<std::unique_ptr<int>> moved(std::move(owners)), there(A::malloc);
    TRUE(moved.resize(100) == 0 && *moved.data()[1] == 3);
    there = std::move(moved);
    TRUE(*there.data()[1] == 3 && there.get_allocator() == A::malloc && moved.empty());
    auto shared = there.get_host_accessible();
    SAYS("cannot be copied", there.resize(1000));
    TRUE(there.size() == 100 && *shared.get()[1] == 3);

    B<no_default> n(A::malloc, 2, no_default("x"));
    TRUE(n.resize(3, no_default("y")) == 0 && n.data()[2].text == "y" && n.resize(1) == 0);
    SAYS("no default constructor", n.resize(2));
    TRUE(n.append(B<std::string>(A::cpp, 1, "z")) == 0 && n.data()[1].text == "z" && n.print() == 0); // by an explicit constructor
    B<tree> trees(A::malloc, 1);
    trees.data()->children["a"].value = 4;
    const B<tree> same(trees);
    TRUE(trees.resize(40, same.data()[0]) == 0 && trees.data()[39].children["a"].value == 4);
    node root, leaf;
    TRUE(root.children.resize(3) == 0 && root.children.data()[1].children.append(&leaf, 1) == 0);
    root.groups.push_back(root.children);
    const node root_copy(root);
    TRUE(root.children.append(&root_copy, 1) == 0 && root_copy.sum() == 9 && root.sum() == 18);
    std::vector<B<std::string>> many;
    for (int i = 0; i < 9; i++) many.emplace_back(A::malloc, 2, std::to_string(i));
    TRUE(many[8].data()[1] == "8" && many[0].data()[0] == "0");

    for (A a : {A::cuda, A::cuda_async, A::cuda_uva, A::hip, A::openmp}) {
        THROWS(hamr::error, "objects are not enabled on devices", B<std::string>(a, 3));
        THROWS(hamr::error, "objects are not enabled on devices", B<std::string>(a, trees.size(), "x"));
        SAYS("objects are not enabled on devices", many[0].move(a));
    }
    THROWS(hamr::error, "hamr::buffer::get_cuda_accessible: objects are not enabled", many[0].get_cuda_accessible());
    THROWS(hamr::error, "99", B<std::string>(static_cast<A>(99), 4));
    THROWS(hamr::error, "one dimension", B<std::string>(A::malloc, {2, 3}));
    TRUE(texts(many[0]) == words({"0", "0"}));
}

#ifndef __CUDACC__ // whose headers have one
struct float3 {
    float x, y, z;
};
#endif

struct particle {
    double mass;
    float3 at;
    int index;
    explicit operator double() const { return mass; }
};

static void structs(A place) {
    const particle given[] = {{1, {2, 3, 4}, 5}, {6, {7, 8, 9}, 10}, {11, {12, 13, 14}, 15}};
    B<particle> empty(place), b(place, 3, given), of(place, 100000, given[1]), uninitialised(place, 7);
    TRUE(empty.empty() && uninitialised.size() == 7 && uninitialised.shape() == hamr::extents(7) && b.strides()[0] == sizeof(particle));
    const std::vector<double> all = values(of);
    TRUE(all.front() == 6 && all.back() == 6 && sum(b) == 18 && hamr_info_of(b.native())->bytes == 3 * sizeof(particle));
    TRUE(b.append(b, 1, 1) == 0 && b.append(given, 2, 1) == 0 && b.append(b) == 0 && b.size() == 10 && sum(b) == 70 && b.capacity() >= 10);
    TRUE(b.resize(2) == 0 && b.resize(4, given[2]) == 0 && b.reserve(1000) == 0 && b.capacity() >= 1000 && sum(b) == 29 && b.resize(5, given[0]) == 0 && sum(b) == 30);
    TRUE(b.set(1, given, 2, 1) == 0 && b.set(0, b, 1, 1) == 0 && b.assign(of, 5, 2) == 0 && sum(b) == 12 && b.assign(given, 3) == 0 && b.assign(b) == 0);
    particle read[2];
    TRUE(b.get(1, read, 0, 2) == 0 && read[1].index == 15 && read[0].at.z == 9 && b.get(of) == 0 && of.get(0, b, 1, 2) == 0 && sum(b) == 8);
    B<particle> copy(b), moved(std::move(copy)), there(A::malloc, moved);
    empty = moved;
    TRUE(sum(empty) == 8 && sum(there) == 8 && copy.empty() && empty.get_allocator() == place && empty.move(A::cpp) == 0 && sum(empty) == 8);
    const auto host = b.get_host_accessible();
    TRUE(b.synchronize() == 0 && host.get()[2].at.y == 8);
    {
        auto view = b.read_write();
        static_assert(std::is_same_v<decltype(view[0]), particle &>);
        TRUE(view.size() == 3 && view.end() - view.begin() == 3 && view.extents() == hamr::extents(3));
        view[2].mass = 100;
    }
    TRUE(sum(b) == 102 && b.print() == 0 && b.pointer().get() == b.data());
    TRUE(B<double>(A::malloc, b).data()[2] == 100); // by an explicit conversion, on the host
    SAYS("hamr::buffer::set", b.set(2, given, 0, 2));
    SAYS("the source has 3", b.append(b, 2, 2));
    SAYS("the source has 3", b.assign(b, 4, 0));
    SAYS("up to 2**63 bytes", b.resize(~std::size_t(0) / 16));
    THROWS(hamr::error, "one dimension", B<particle>(place, {2, 3}));
    TRUE(sum(b) == 102);

    {
        particle mine[3] = {given[0], given[1], given[2]};
        B<particle> adopted = hamr::adopt(mine, hamr::extents(3));
        TRUE(adopted.size() == 3 && adopted.data() == mine && sum(adopted) == 18);
        THROWS(hamr::error, "one dimension", hamr::adopt(mine, {1, 3}));
    }
    hamr_buffer *bytes = nullptr;
    const std::int64_t n = 2 * static_cast<std::int64_t>(sizeof(float3)), odd = 13;
    OK(hamr_create(&bytes, HAMR_UINT8, 1, &n, nullptr, nullptr));
    TRUE(B<float3>(bytes).size() == 2);
    OK(hamr_create(&bytes, HAMR_UINT8, 1, &odd, nullptr, nullptr));
    THROWS(hamr::error, "13 bytes: accepted is one row of elements of 12 bytes", B<float3>{bytes});
    OK(hamr_release(bytes));
}

static void pointers_and_long_doubles(A place) {
    int first = 1, second = 2;
    int *const given[] = {&first, &second};
    B<int *> b(place, 2, given), none(place, 3, nullptr);
    TRUE(b.append(none) == 0 && b.size() == 5);
    const auto host = b.get_host_accessible();
    TRUE(b.synchronize() == 0 && *host.get()[1] == 2 && !host.get()[4] && b.resize(7, &first) == 0 && b.print() == 0);
    B<const char *> names(place, 2, "name");
    TRUE(names.size() == 2 && std::string(names.get_host_accessible().get()[1]) == "name");
    B<long double> precise(place, 3, 1.25L), converted(place, B<float>(A::malloc, 2, 0.5f));
    TRUE(sum(precise) == 3.75 && sum(converted) == 1 && sum(B<float>(precise)) == 3.75 && precise.append(B<int>(A::cpp, 2, 4)) == 0);
    B<double> numbers(A::malloc, precise);
    TRUE(sum(numbers) == 11.75 && numbers.set(1, precise, 3, 1) == 0 && numbers.append(precise, 0, 1) == 0 && values(numbers) == list({1.25, 4, 1.25, 4, 4, 1.25}));
    TRUE(precise.get(numbers) == -1 || numbers.size() == 6); // five of six elements
    const long double more[] = {7.5L};
    TRUE(numbers.set(0, more, 0, 1) == 0 && precise.set(0, more, 0, 1) == 0 && precise.get(0, numbers, 5, 1) == 0 && values(numbers)[5] == 7.5);
    const B<long double> text(place, 1, 2.5L);
    TRUE(text.print() == 0);
}

int main(int count, char **arguments) {
    (void)arguments;
    const std::vector<A> device{A::cuda, A::cuda_async, A::cuda_uva, A::cuda_host}, host{A::malloc, A::cpp, A::shared};
    if (count > 1) TRUE(hamr::set_active_device(0) == 0); // which loads the driver
    for (A place : host) {
        strings(place);
        lifetimes(place);
    }
    other_objects();
    if (count > 1) strings(A::cuda_host);
    for (A place : count > 1 ? device : host) {
        structs(place);
        pointers_and_long_doubles(place);
    }
    TRUE(live_everywhere() == 0);
    puts("all elements");
    return 0;
}
