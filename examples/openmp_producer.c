/* A library that knows nothing of hamr: it fills memory of its own on all cores.
 *     cc -O2 -fopenmp -shared -fPIC -o libproducer.so openmp_producer.c */
#include <stdlib.h>

/* The squares of 0 ... n-1, in memory that release() frees; NULL if there is none. */
double *produce(size_t n) {
    double *values = malloc(n * sizeof *values);
    if (!values) return NULL;
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) values[i] = (double)i * (double)i;
    return values;
}

void release(double *values) { free(values); }
