/* The function of the guide's example for OpenMP, and one that keeps threads busy. */

#include <stddef.h>

#ifndef WITHOUT_TARGET
void add(float *out, const float *a, const float *b, size_t n)
{
#pragma omp target teams distribute parallel for is_device_ptr(out, a, b)
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}
#endif

long sum(long n)
{
    long total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(2)
    for (long i = 0; i < n; i++)
        total += i;
    return total;
}
