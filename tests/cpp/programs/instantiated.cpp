// Explicit instantiations, as codes have them that were written for LBL's HAMR: of each kind of elements.
#include <hamr_buffer.h>
#include <hamr_buffer_impl.h>

#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "checks.hpp"

using A = hamr::buffer_allocator;

struct particle {
    float at[3];
    double mass;
};

struct named {
    std::string name;
    int value = 0;
};

struct without_default {
    explicit without_default(int given) : value(given) {}
    int value;
};

enum class color : short { red, green };

template class hamr::buffer<bool>;
template class hamr::buffer<char>;
template class hamr::buffer<int>;
template class hamr::buffer<float>;
template class hamr::buffer<double>;
template class hamr::buffer<long double>;
template class hamr::buffer<std::complex<double>>;
template class hamr::buffer<double *>;
template class hamr::buffer<color>;
template class hamr::buffer<particle>;
template class hamr::buffer<without_default>;
template class hamr::buffer<std::string>;
template class hamr::buffer<named>;
template class hamr::buffer<std::vector<int>>;
template class hamr::buffer<std::shared_ptr<named>>;
template class hamr::view<double>;
template class hamr::view<const particle>;

template <typename T>
static void used(const T &value) {
    hamr::buffer<T> made(A::malloc, 3, value);
    TRUE(made.resize(5, value) == 0 && made.size() == 5 && hamr::buffer<T>(made).size() == 5);
}

int main() {
    used(1.5);
    used(true);
    used(particle{{1, 2, 3}, 4});
    used(without_default(3));
    used(std::string("a"));
    used(std::make_shared<named>());
    hamr::buffer<double> numbers(A::malloc, 4, 1.0);
    TRUE(numbers.read_only().is_read_only() && numbers.reshape({2, 2}).shape() == hamr::extents(2, 2) && numbers.read()[3] == 1);
    TRUE(hamr::buffer<particle>(A::cpp, 2).read_write().size() == 2 && numbers.native() && std::as_const(numbers).native());
    puts("all instantiated");
    return 0;
}
