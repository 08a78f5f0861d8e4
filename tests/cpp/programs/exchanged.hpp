/// Functions that an extension offers, whatever binds them.
#include <hamr.hpp>

#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace exchanged {

inline std::int64_t deleted = 0; // by deleters

inline std::uintptr_t address(const hamr::buffer<float> &field) { return reinterpret_cast<std::uintptr_t>(field.data()); }

inline double total(const hamr::buffer<float> &field) {
    double sum = 0;
    auto [owner, values] = hamr::get_host_accessible(field);
    for (std::size_t i = 0; i < field.size(); i++) sum += static_cast<double>(values[i]);
    return sum;
}

inline double total_of_doubles(const hamr::buffer<double> &field) { return field.read()[0]; }

inline void scale(hamr::buffer<float> &field, float factor) {
    for (float &value : field.read_write()) value *= factor;
}

/// By value: the same memory.
inline hamr::buffer<float> pass(hamr::buffer<float> field) { return field.reshape(hamr::extents(field.shape())); }

inline hamr::buffer<float> make(std::size_t n, float value) { return hamr::buffer<float>(hamr::buffer_allocator::malloc, n, value); }

inline hamr::buffer<double> adopt(std::size_t n) {
    return hamr::buffer<double>(hamr::buffer_allocator::cpp, n, -1, new double[n](), [](double *values) {
        delete[] values;
        __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
    });
}

inline std::vector<hamr::buffer<float>> held; // beyond the call

inline void hold(hamr::buffer<float> field) { held.push_back(std::move(field)); }

/// The sum as each of many threads reads it at the same time, the core having heard of the elements or not.
inline std::vector<double> totals_in_threads(const hamr::buffer<float> &field, std::size_t count) {
    std::vector<double> totals(count);
    std::vector<std::thread> threads;
    for (double &sum : totals)
        threads.emplace_back([&] {
            std::vector<float> values(field.size());
            if (field.get(0, values.data(), 0, values.size())) return;
            for (float value : hamr::buffer<double>(field).read()) sum += value;
            for (float value : values) sum += value;
        });
    for (std::thread &each : threads) each.join();
    return totals;
}

/// On threads that Python never saw.
inline void drop() {
    std::thread([] { held.clear(); }).join();
}

inline std::size_t grow(hamr::buffer<float> &field) {
    field.resize(2 * field.size(), 7.0f);
    return field.size();
}

/// Programs that go through the elements from data() on.
inline double sum_plainly(const hamr::buffer<double> &field) {
    double sum = 0;
    for (std::size_t i = 0; i < field.size(); i++) sum += field.data()[i];
    return sum;
}
inline double sum_by_value(hamr::buffer<double> field) { return sum_plainly(field); }
inline void add_plainly(hamr::buffer<double> &field, double more) {
    for (std::size_t i = 0; i < field.size(); i++) field.data()[i] += more;
}

/// What hamr throws.
inline void throw_value() { hamr::buffer<float>(static_cast<hamr::buffer_allocator>(99), 3); }
inline void throw_memory() { hamr::buffer<float>(hamr::buffer_allocator::malloc, std::size_t(1) << 50); }
inline void throw_no_device() { hamr::buffer<float>(hamr::buffer_allocator::cuda, 3); }
inline void throw_other() { throw std::out_of_range("not hamr's"); }

struct model {
    hamr::buffer<double> field{hamr::buffer_allocator::malloc, 5, 1.0};
    const hamr::buffer<double> &constant() const { return field; }
    hamr::buffer<double> &changing() { return field; }
};

struct particle { // bytes to Python
    double mass;
    float x, y, z;
    int index;
};

inline double mass(const hamr::buffer<particle> &particles) {
    double sum = 0;
    for (const particle &each : particles.read()) sum += each.mass;
    return sum;
}

inline hamr::buffer<particle> make_particles(std::size_t n) { return hamr::buffer<particle>(hamr::buffer_allocator::malloc, n, {1.5, 2, 3, 4, 5}); }

} // namespace exchanged
