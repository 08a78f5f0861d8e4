// A field that all cores fill, smooth and add up where it is.
//
//     headers=$(python3 -c 'import hamr; print(hamr.get_include())')
//     c++ -std=c++17 -fopenmp -I"$headers" -o openmp_field openmp_field.cpp -ldl
//     HAMR_PYTHON=$(command -v python3) ./openmp_field
#include <hamr.hpp>

#include <cstdio>

// What two neighbours and an element have on average. Threads share a view, each with elements of its own.
static void smooth(const hamr::buffer<double> &from, hamr::buffer<double> &to) {
    const auto before = from.read();
    const auto after = to.write();
    const std::size_t last = from.size() - 1;
#pragma omp parallel for
    for (std::size_t i = 0; i <= last; i++) after[i] = (before[i ? i - 1 : 0] + before[i] + before[i < last ? i + 1 : last]) / 3;
}

// Of the elements wherever they are: what has to be brought to the host is there when this returns.
static double total(const hamr::buffer<double> &field) {
    const std::shared_ptr<const double> there = field.get_host_accessible();
    field.synchronize();
    const double *values = there.get();
    const std::size_t n = field.size();
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (std::size_t i = 0; i < n; i++) sum += values[i];
    return sum;
}

int main() {
    const std::size_t n = 100000;
    hamr::buffer<double> field(hamr::buffer_allocator::malloc, n, 0), next(field);
    {
        const auto values = field.write();
#pragma omp parallel for
        for (std::size_t i = 0; i < n; i++) values[i] = i % 2 ? 3 : 1;
    } // what was written is the field's
    for (int step = 0; step < 20; step++) {
        smooth(field, next);
        field.swap(next);
    }
    std::printf("sum %.3f, in the middle %.6f\n", total(field), field.read()[n / 2]);
    return 0;
}
