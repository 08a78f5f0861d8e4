// A random walk over buffers of strings and of a struct, beside vectors that say what they hold: objects_model SEED STEPS.
#include <hamr.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "checks.hpp"

using A = hamr::buffer_allocator;

static std::mt19937 random_bits;
static std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_bits); }

struct pair_of {
    int first;
    double second;
    bool operator==(const pair_of &other) const { return first == other.first && second == other.second; }
};

template <typename T>
T any_value() {
    const int number = static_cast<int>(below(1000));
    if constexpr (std::is_same_v<T, pair_of>) return {number, number / 2.0};
    else return std::string(below(2) ? 3 : 40, 'a') + std::to_string(number);
}

template <typename T>
struct slot {
    hamr::buffer<T> b;
    std::vector<T> model;
    std::vector<std::pair<std::shared_ptr<const T>, std::vector<T>>> held; // what others have, which stays whatever the buffer does

    void check() const {
        TRUE(b.size() == model.size() && b.capacity() >= b.size());
        for (std::size_t i = 0; i < model.size(); i++) TRUE(b.data()[i] == model[i]);
        for (const auto &[shared, values] : held)
            for (std::size_t i = 0; i < values.size(); i++) TRUE(shared.get()[i] == values[i]);
    }
};

template <typename T>
static void walk(int steps) {
    std::vector<slot<T>> slots;
    for (int i = 0; i < 4; i++) slots.push_back({hamr::buffer<T>(i % 2 ? A::malloc : A::cpp), {}, {}});
    for (int step = 0; step < steps; step++) {
        slot<T> &one = slots[below(slots.size())], &other = slots[below(slots.size())];
        const std::size_t start = below(other.model.size() + 1), n = below(other.model.size() - start + 1), size = one.model.size() > 200 ? 3 : below(60);
        const std::vector<T> part(other.model.begin() + static_cast<std::ptrdiff_t>(start), other.model.begin() + static_cast<std::ptrdiff_t>(start + n));
        const T value = any_value<T>();
        switch (below(13)) {
        case 0:
            TRUE(one.b.append(other.b, start, n) == 0);
            one.model.insert(one.model.end(), part.begin(), part.end());
            break;
        case 1:
            TRUE(one.b.append(other.b.data(), start, n) == 0); // which may be its own memory
            one.model.insert(one.model.end(), part.begin(), part.end());
            break;
        case 2:
            TRUE(one.b.resize(size, value) == 0);
            one.model.resize(size, value);
            break;
        case 3: TRUE(one.b.reserve(size) == 0); break;
        case 4:
            TRUE(one.b.assign(other.b, start, n) == 0);
            one.model = part;
            break;
        case 5:
            if (n > one.model.size()) break;
            one.held.clear(); // who shares elements sees them written
            for (slot<T> &each : slots) each.held.clear();
            TRUE(one.b.set(one.model.size() - n, other.b, start, n) == 0);
            std::copy(part.begin(), part.end(), one.model.end() - static_cast<std::ptrdiff_t>(n));
            break;
        case 6:
            one.b = other.b;
            one.model = std::vector<T>(other.model);
            break;
        case 7:
            if (&one == &other) break;
            one.b = std::move(other.b);
            one.model = std::move(other.model);
            other.model.clear();
            break;
        case 8:
            one.b.swap(other.b);
            one.model.swap(other.model);
            break;
        case 9:
            TRUE(one.b.free() == 0);
            one.model.clear();
            break;
        case 10:
            one.held.emplace_back(one.b.get_host_accessible(), one.model);
            TRUE(one.b.pointer().get() == one.b.data());
            break;
        case 11: one.held.clear(); break;
        default: TRUE(one.b.move(below(2) ? A::malloc : A::shared) == 0);
        }
        one.check();
        other.check();
    }
}

int main(int, char **arguments) {
    random_bits.seed(static_cast<unsigned>(std::atoi(arguments[1])));
    walk<std::string>(std::atoi(arguments[2]));
    walk<pair_of>(std::atoi(arguments[2]));
    TRUE(live_everywhere() == 0);
    puts("the model holds");
    return 0;
}
