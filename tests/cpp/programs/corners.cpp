// What codes do now and then: values that cannot be copied, elements that overlap, read-only structs, errors that are thrown.
#include <hamr_buffer.h>
#include <hamr_buffer_util.h>

#include <array>
#include <complex>

#include "checks.hpp"

using A = hamr::buffer_allocator;

enum class color : short { red = 1, green = 2 };

struct padded {
    char c;
    double d;
};

static void elements_that_overlap() {
    const std::string letters[5] = {"a", "b", "c", "d", "e"};
    hamr::buffer<std::string> text(A::malloc, 5, letters);
    TRUE(text.get(0, text.data(), 1, 4) == 0 && text[1] == "a" && text[4] == "d");
    TRUE(text.get(1, text.data(), 0, 4) == 0 && text[0] == "a" && text[3] == "d");
}

static void fills() {
    hamr::buffer<padded> structs(A::malloc, 3, padded{'a', 1});
    structs[1] = {'b', 2};
    hamr::buffer<padded> others = structs.read_only();
    SAYS("read-only", others.fill({'z', 9}));
    TRUE(structs[0].c == 'a' && structs.fill(structs[1]) == 0 && structs[0].c == 'b' && structs[2].d == 2);
    hamr::buffer<std::string> text(A::malloc, 2, "a");
    text[1] = "long enough to be elsewhere";
    TRUE(text.fill(text[1]) == 0 && text[0] == text[1]);
}

static void values_that_cannot_be_copied() {
    THROWS(hamr::error, "cannot be copied", hamr::buffer<std::unique_ptr<int>> made(A::malloc, 3, std::make_unique<int>(7)));
    hamr::buffer<std::unique_ptr<int>> numbers(A::malloc, 1);
    numbers[0] = std::make_unique<int>(5);
    SAYS("cannot be copied", numbers.resize(2, nullptr));
    TRUE(numbers.size() == 1 && numbers.reserve(50) == 0 && numbers.shrink_to_fit() == 0 && numbers.capacity() == 1 && *numbers[0] == 5);
}

static void enumerations() {
    const hamr::buffer<color> colors(A::malloc, 3, color::green);
    const hamr::buffer<int> numbers(colors);
    TRUE(numbers[2] == 2);
    TRUE(hamr::buffer<color>(A::cpp, numbers)[1] == color::green);
}

/// Calls without a namespace find std::data() as well, where the elements are of namespace std.
static void tuples() {
    hamr::buffer<std::complex<double>> numbers(A::malloc, 2);
    hamr::buffer<std::string> text(A::malloc, 2);
    const auto &unchanged = text;
    auto [p] = data(numbers);
    auto [q] = data(unchanged);
    TRUE(p == numbers.data() && q == text.data());
    TRUE(std::get<2>(std::tuple_cat(data(text, numbers), data(text))) == text.data());
}

static void objects_on_the_host() {
    hamr::buffer<std::string> text(A::malloc, 3, "x");
    TRUE(text.append({"y"}) == 0);
    auto [owner, p] = hamr::get_host_accessible(text);
    TRUE(owner && p[3] == "y");
    THROWS(hamr::error, "not enabled on devices", text.get_cuda_accessible());
}

static void functions_that_throw() {
    const hamr::throw_errors here;
    const double two[2] = {1, 2};
    THROWS(hamr::failure, "memory", hamr::malloc_allocator<double>::allocate(std::size_t(1) << 58));
    THROWS(hamr::failure, "NULL", hamr::copy_to_host_from_host(static_cast<double *>(nullptr), two, 2));
}

static void what_shrinks() {
    hamr::buffer<double> field(A::malloc, 5, 1);
    TRUE(field.reserve(100) == 0);
    field.get_stream() = hamr::stream();
    const std::shared_ptr<double> &kept = field.pointer();
    TRUE(field.shrink_to_fit() == 0 && field.capacity() == 5 && kept && kept.get() == field.data());
}

/// A tensor that no buffer of such elements can be is still the caller's.
static void tensors_of_other_elements() {
    hamr::buffer<int> numbers(A::malloc, 2, 5);
    DLManagedTensorVersioned *tensor = numbers.to_dlpack();
    THROWS(hamr::error, "the elements are int32: accepted is float32", hamr::from_dlpack<float>(tensor));
    TRUE(hamr::from_dlpack<int>(tensor)[1] == 5);
    hamr::buffer<padded> structs(A::malloc, 3, padded{'a', 1});
    tensor = structs.to_dlpack();
    THROWS(hamr::error, "one row of elements of 80 bytes", hamr::from_dlpack<std::array<padded, 5>>(tensor));
    TRUE(hamr::from_dlpack<padded>(tensor)[2].c == 'a');
    THROWS(hamr::error, "NULL", hamr::from_dlpack<float>(nullptr));
}

/// A reference that a class keeps, also while the buffer has no elements.
template <typename T>
static void pointers_that_follow(const T &value) {
    hamr::buffer<T> one(A::malloc), other(A::malloc, 3, value);
    const std::shared_ptr<T> &kept = one.pointer(), &its = other.pointer();
    const auto follows = [&] { TRUE(kept.get() == one.data() && its.get() == other.data()); };
    TRUE(one.resize(10, value) == 0 && kept);
    follows();
    TRUE(one.free() == 0 && one.append(&value, 1) == 0 && kept);
    follows();
    one = std::move(other);
    follows();
    TRUE(other.assign(&value, 1) == 0 && its);
    follows();
    one.swap(other);
    follows();
    const hamr::buffer<T> gone(std::move(one));
    follows();
    TRUE(gone.size() == 1 && one.resize(2, value) == 0 && kept);
    follows();
}

/// One size in braces, where no number is meant.
static void shapes_of_one_size() {
    double memory[6] = {1, 2, 3, 4, 5, 6};
    const std::size_t five = 5;
    int ended = 0;
    {
        const hamr::buffer<double> shared = hamr::adopt(memory, {5}), owned = hamr::adopt(memory, {five}, [&](double *) { ended++; });
        TRUE(shared.shape() == hamr::extents(5) && owned.size() == 5 && shared[4] == 5 && owned.data() == memory);
        TRUE(hamr::adopt(memory, {2, 3}).shape() == hamr::extents(2, 3) && hamr::adopt(memory, {2, five - 2}).shape() == hamr::extents(2, 3));
        TRUE(hamr::adopt(memory, {}).shape() == hamr::extents() && hamr::adopt(memory, {2, 3}).reshape({6}).shape() == hamr::extents(6));
        hamr::adoption steps;
        steps.strides = {16};
        TRUE(hamr::adopt(memory, {3}, steps).read()[2] == 5);
    }
    TRUE(ended == 1 && hamr::extents{7} == hamr::extents(7));
    THROWS(hamr::error, "fit in 63 bits", hamr::extents({~std::size_t(0)}));
}

/// What a class has that holds buffers, without a swap of its own.
template <typename T>
struct holder {
    hamr::buffer<T> field;
};

template <typename T>
static void swaps(A place, const T &value, const hamr::stream &one, const hamr::stream &two) {
    using M = hamr::buffer_transfer;
    holder<T> a{hamr::buffer<T>(place, one, M::async, 2, value)}, b{hamr::buffer<T>(place, two, M::sync, 3, value)};
    std::swap(a, b);
    TRUE(a.field.size() == 3 && b.field.size() == 2);
    TRUE(a.field.get_stream() == one && b.field.get_stream() == two); // as moves of buffers leave them
    TRUE(a.field.get_transfer_mode() == M::async && b.field.get_transfer_mode() == M::sync);
    swap(a.field, b.field);
    TRUE(a.field.size() == 2 && a.field.get_stream() == two && b.field.get_stream() == one);
    const holder<T> moved(std::move(a));
    TRUE(moved.field.size() == 2 && moved.field.get_stream() == two && a.field.size() == 0 && a.field.get_stream() == two);
    TRUE(a.field.append(&value, 1) == 0 && a.field.size() == 1 && a.field.get_stream() == two && a.field.get_transfer_mode() == M::sync);
    a.field.get_stream() = one; // and moved before the library is told
    const holder<T> again(std::move(a));
    TRUE(again.field.get_stream() == one && a.field.get_stream() == one && a.field.resize(2) == 0 && a.field.get_stream() == one);
}

/// What a loop reads without a call.
static void sizes_that_follow() {
    hamr::buffer<double> b(A::malloc);
    const auto says = [](const hamr::buffer<double> &of, std::size_t n) {
        const hamr_info *info = hamr_info_of(of.native());
        TRUE(of.size() == n && static_cast<std::size_t>(info->size) == n && of.capacity() == static_cast<std::size_t>(info->capacity));
        TRUE(of.data() == hamr_data(of.native()) && of.is_contiguous() && of.end() - of.begin() == static_cast<std::ptrdiff_t>(n));
    };
    says(b, 0);
    TRUE(b.resize(3, 1) == 0);
    says(b, 3);
    hamr::buffer<double> sharer = b.reshape({3}), moved(std::move(b));
    says(moved, 3);
    TRUE(b.size() == 0 && b.data() == nullptr && b.capacity() == 0 && std::as_const(b).native());
    says(b, 0);
    TRUE(b.append({1, 2}) == 0);
    says(b, 2);
    TRUE(sharer.resize(1000, 2) == 0);
    says(sharer, 1000), says(moved, 3);
    TRUE(sharer[999] == 2 && moved[2] == 1);
    const std::int64_t four = 4, none = 0;
    TRUE(hamr_resize(sharer.native(), 1, &four, nullptr) == HAMR_OK); // by hamr.h
    says(sharer, 4);
    hamr::buffer<double> gone(std::move(sharer));
    TRUE(hamr_resize(sharer.native(), 1, &four, nullptr) == HAMR_OK);
    says(sharer, 4), says(gone, 4);
    TRUE(hamr_swap(sharer.native(), moved.native()) == HAMR_OK);
    says(sharer, 3), says(moved, 4);
    TRUE(hamr_resize(sharer.native(), 1, &none, nullptr) == HAMR_OK && sharer.free() == 0);
    says(sharer, 0);
    swap(gone, moved), gone = std::move(moved), moved = gone;
    says(moved, 4), says(gone, 4);
    TRUE(moved.move(A::cpp) == 0 && moved.reserve(90) == 0 && moved.assign({7}) == 0);
    says(moved, 1);
    TRUE(moved.shrink_to_fit() == 0);
    says(moved, 1);
    b = hamr::buffer<double>(A::malloc, {2, 3}, 1);
    says(b, 6);
    const auto column = b.transposed().row(1);
    TRUE(column.size() == 2 && !column.is_contiguous() && column.data() == b.data() + 1);
}

int main() {
    shapes_of_one_size();
    sizes_that_follow();
    int named[2];
    std::int32_t devices = 0;
    const bool there = hamr_device_count("cuda", &devices) == HAMR_OK && devices > 0; // else a stream is a name that nobody asks for
    for (A place : {A::malloc, A::cpp}) {
        const hamr::stream one = there ? hamr::stream::create() : hamr::stream::of(&named[0], "cuda");
        const hamr::stream two = there ? hamr::stream::create() : hamr::stream::of(&named[1], "cuda");
        swaps(place, 1.5, one, two);
        swaps(place, std::string("a"), one, two);
        swaps(place, padded{'a', 1}, one, two);
    }
    pointers_that_follow<double>(1);
    pointers_that_follow<std::string>("a");
    elements_that_overlap();
    fills();
    values_that_cannot_be_copied();
    enumerations();
    tuples();
    objects_on_the_host();
    tensors_of_other_elements();
    functions_that_throw();
    what_shrinks();
    TRUE(live_everywhere() == 0);
    puts("all corners");
    return 0;
}
