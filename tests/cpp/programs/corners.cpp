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

int main() {
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
