// A program as LBL's HAMR has them, with its header names alone: pipelines of buffers by value, of
// mixed types, through functions that ask where they work.
#include <hamr_buffer.h>
#include <hamr_buffer_allocator.h>
#include <hamr_buffer_pointer.h>
#include <hamr_buffer_transfer.h>
#include <hamr_buffer_util.h>
#include <hamr_config.h>
#include <hamr_cuda_device.h>
#include <hamr_device.h>
#include <hamr_stream.h>

#include <iostream>
#include <memory>

using hamr::buffer;
using allocator = hamr::buffer_allocator;

template <typename T, typename U>
buffer<T> add(const buffer<T> &a1, const buffer<U> &a2)
{
    size_t n_vals = a1.size();
    auto [spa1, pa1] = hamr::get_device_accessible(a1);
    auto [spa2, pa2] = hamr::get_device_accessible(a2);
    buffer<T> ao(hamr::get_device_allocator(), n_vals, T(0));
    T *pao = ao.data();
    for (size_t i = 0; i < n_vals; ++i)
        pao[i] = static_cast<T>(pa1[i] + pa2[i]);
    return ao;
}

template <typename T, typename U>
buffer<T> multiply_scalar(buffer<T> in, const U &val)
{
    std::shared_ptr<const T> spin = in.get_host_accessible();
    const T *pin = spin.get();
    buffer<T> out(allocator::cpp, in.size());
    std::shared_ptr<T> &spout = out.pointer();
    T *pout = spout.get();
    for (size_t i = 0; i < in.size(); ++i)
        pout[i] = static_cast<T>(val * pin[i]);
    return out;
}

template <typename T>
hamr::p_buffer<T> initialize(allocator alloc, size_t n_vals, const T &val)
{
    hamr::stream strm;
    auto out = std::make_shared<buffer<T>>(alloc, strm, hamr::buffer_transfer::async, n_vals);
    hamr::ref_to(out).resize(n_vals / 2);
    std::unique_ptr<T[]> vals(new T[n_vals]);
    for (size_t i = 0; i < n_vals; ++i)
        vals[i] = val;
    out->set(0, vals.get(), 0, n_vals / 2);
    out->append(vals.get(), n_vals / 2, n_vals - n_vals / 2);
    return out;
}

template <typename T>
int compare(const hamr::const_p_buffer<T> &b, size_t n_vals, double expected)
{
    auto [spb, pb] = hamr::get_host_accessible(hamr::ref_to(b));
    b->synchronize();
    double total = 0;
    for (size_t i = 0; i < b->size(); ++i)
        total += static_cast<double>(pb[i]);
    if (b->size() == n_vals && total == expected)
        return 0;
    std::cerr << "ERROR: " << b->size() << " elements of sum " << total << ", expected " << expected << std::endl;
    return -1;
}

int main(int, char **)
{
    size_t n_vals = 10000;
    int dev = -1;
    if (hamr::get_active_device(dev) || hamr::set_active_device(dev) || hamr::get_active_cuda_device(dev) || hamr::get_host_identifier(dev))
        return 1;
    hamr::p_buffer<float> a0 = initialize(allocator::malloc, n_vals, 1.0f);
    buffer<double> a1(allocator::malloc, n_vals, 2);
    buffer<int> a2(buffer<int>::allocator::cpp, hamr::stream(), buffer<int>::transfer::sync, n_vals, 3);

    buffer<double> a3 = multiply_scalar(add(add(a1, *a0), a2), 2.0f); // 12
    auto a4 = std::make_shared<buffer<float>>(hamr::get_host_allocator(), a3);
    buffer<long long> a5(allocator::malloc);
    a5 = *a4;
    a5.append(a2);
    a5.set(n_vals, a2, 0, n_vals);
    auto [a6, p6] = hamr::make_buffer<short>(allocator::malloc, 2 * n_vals, short(0));
    if (a5.get(a6) || p6[0] != 12 || p6[2 * n_vals - 1] != 3 || hamr::synchronize(a5, a6, a3))
        return 1;

    double *mine = static_cast<double *>(malloc(n_vals * sizeof(double)));
    for (size_t i = 0; i < n_vals; ++i)
        mine[i] = 0.5;
    buffer<double> a7(allocator::malloc, n_vals, -1, mine, [](double *ptr) { free(ptr); });
    buffer<double> a8(allocator::malloc, n_vals, -1, std::shared_ptr<double>(mine, [](double *) {}));
    a8.set(add(a7, *a4)); // into mine
    a8 = multiply_scalar(a8, 0.5); // as well, since cpp is not its allocator

    std::cerr << hamr::get_allocator_name(a7.get_allocator()) << " " << a7.host_accessible() << " " << a7.get_owner() << std::endl;
    double n = static_cast<double>(n_vals);
    if (compare<float>(hamr::const_ptr(a4), n_vals, 12 * n) || compare<short>(std::make_shared<buffer<short>>(a6), 2 * n_vals, 15 * n) ||
        compare<double>(std::make_shared<const buffer<double>>(a7), n_vals, 6.25 * n) || compare<double>(std::make_shared<buffer<double>>(a8), n_vals, 6.25 * n))
        return 1;
    std::cout << "the sums are right" << std::endl;
    return 0;
}
