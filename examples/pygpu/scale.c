/* What ctypes_library.py calls: multiplies host memory, and shows what a pointer is. */
#include <stdint.h>

void scale(double *elements, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++) elements[i] *= factor;
}

int64_t address_of(const void *pointer) { return (int64_t)(intptr_t)pointer; }
