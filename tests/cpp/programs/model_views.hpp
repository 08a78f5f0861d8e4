// Of the random walk: elements with steps between them, which a buffer shares with another, and tensors of DLPack.
#include <hamr.hpp>

#include <algorithm>
#include <vector>

#include "checks.hpp"

// Some of n elements, forwards or backwards.
struct steps {
    std::int64_t start = 0, step = 1;
    std::size_t n = 0;

    template <typename F>
    steps(std::size_t of, F &&below) {
        step = static_cast<std::int64_t>(1 + below(3));
        if (of == 0) return;
        start = static_cast<std::int64_t>(below(of));
        n = below((of - static_cast<std::size_t>(start) - 1) / static_cast<std::size_t>(step) + 2);
        if (n == 0 || below(2)) return;
        start += static_cast<std::int64_t>(n - 1) * step;
        step = -step;
    }

    std::size_t at(std::size_t i) const { return static_cast<std::size_t>(start + static_cast<std::int64_t>(i) * step); }
};

template <typename T>
hamr::buffer<T> stepped(hamr::buffer<T> &of, const steps &which) {
    const std::int64_t size = sizeof(T), n = static_cast<std::int64_t>(which.n), stride = which.step * size;
    hamr_buffer *made = nullptr;
    hamr::detail::check(hamr_view(of.native(), &made, which.n ? which.start * size : 0, 0, 1, &n, &stride), "stepped");
    return hamr::buffer<T>(made);
}

template <typename T>
std::vector<T> stepped(const std::vector<T> &of, const steps &which) {
    std::vector<T> made;
    for (std::size_t i = 0; i < which.n; i++) made.push_back(of[which.at(i)]);
    return made;
}

template <typename T>
std::vector<T> contents(const hamr::buffer<T> &of) {
    std::vector<T> made(of.size());
    TRUE(of.get(0, made.data(), 0, made.size()) == 0);
    return made;
}

// What is written to the view is the buffer's; what the view becomes otherwise is not.
template <typename T>
void write_to(hamr::buffer<T> &view, const steps &which, std::vector<T> &model, T value, std::size_t from) {
    const std::vector<T> values(which.n - from, value);
    TRUE(view.set(from, values.data(), 0, values.size()) == 0);
    for (std::size_t i = from; i < which.n; i++) model[which.at(i)] = value;
    TRUE(view.set(from, values.data(), 0, values.size() + 1) == -1);
    TRUE(contents(view) == stepped(model, which));
}

// Reached, copied, moved and grown, it has the same elements elsewhere.
template <typename T>
void read_from(const hamr::buffer<T> &view, const std::vector<T> &model, hamr::buffer_allocator other, T value) {
    const std::shared_ptr<const T> there = view.get_host_accessible();
    TRUE(view.synchronize() == 0 && std::equal(model.begin(), model.end(), there.get()));
    hamr::buffer<T> moved(view.reshape(view.shape()));
    TRUE(moved.move(other) == 0 && contents(moved) == model);
    hamr::buffer<T> grown(view.reshape(view.shape()));
    const std::vector<T> more(3, value);
    TRUE(grown.append(more.data(), 1, 2) == 0 && grown.append(view) == 0);
    std::vector<T> expected(model);
    expected.insert(expected.end(), more.begin(), more.begin() + 2);
    expected.insert(expected.end(), model.begin(), model.end());
    TRUE(contents(grown) == expected);
    TRUE(contents(view) == model);
}

// The same elements, in place, by way of a tensor: of the version that has flags, or the one before.
template <typename T>
void pass_as_tensor(hamr::buffer<T> &b, bool versioned) {
    const void *const before = b.data();
    const std::size_t n = b.size();
    hamr_buffer *made = nullptr;
    if (versioned) {
        DLManagedTensorVersioned *tensor = nullptr;
        hamr::detail::check(hamr_to_dlpack(b.native(), nullptr, &tensor), "to_dlpack");
        hamr::detail::check(hamr_from_dlpack(tensor, nullptr, &made), "from_dlpack");
    } else {
        DLManagedTensor *tensor = nullptr;
        hamr::detail::check(hamr_to_old_dlpack(b.native(), nullptr, &tensor), "to_old_dlpack");
        hamr::detail::check(hamr_from_old_dlpack(tensor, nullptr, &made), "from_old_dlpack");
    }
    hamr::buffer<T> passed(made);
    TRUE(passed.size() == n && (n == 0 || passed.data() == before));
    b.~buffer();
    new (&b) hamr::buffer<T>(std::move(passed));
}
