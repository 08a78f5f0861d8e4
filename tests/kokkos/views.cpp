// Kokkos views of memory that hamr has: nothing is copied, and nothing is freed here.
#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace {

template <class T>
using View = Kokkos::View<T **, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

// hamr's strides are in bytes, Kokkos's in elements.
template <class T>
View<T> view_of(void *data, const size_t *shape, const ptrdiff_t *strides) {
    const auto step = [&](int i) { return static_cast<size_t>(strides[i]) / sizeof(T); };
    return View<T>(static_cast<T *>(data), Kokkos::LayoutStride(shape[0], step(0), shape[1], step(1)));
}

using Rows = Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>;

// Makes each element v*2 + its row.
template <class T>
void change(void *data, const size_t *shape, const ptrdiff_t *strides) {
    const auto v = view_of<T>(data, shape, strides);
    Kokkos::parallel_for(Rows(0, shape[0]), KOKKOS_LAMBDA(const size_t i) {
        for (size_t j = 0; j < v.extent(1); ++j) v(i, j) = static_cast<T>(v(i, j) + v(i, j) + T(i));
    });
    Kokkos::fence();
}

// Kokkos's own memory, there and back.
template <class T>
void turn_round(void *data, const size_t *shape, const ptrdiff_t *strides) {
    const auto v = view_of<T>(data, shape, strides);
    Kokkos::View<T **, Kokkos::LayoutRight, Kokkos::HostSpace> own("own", shape[0], shape[1]);
    Kokkos::deep_copy(own, v);
    for (size_t i = 0; i < shape[0]; ++i)
        for (size_t j = 0; j < shape[1]; ++j) v(i, j) = own(shape[0] - 1 - i, j);
}

} // namespace

#define VIEWS_OF(T, name)                                                                                                              \
    extern "C" void change_##name(void *d, const size_t *n, const ptrdiff_t *s) { change<T>(d, n, s); }                                \
    extern "C" void turn_round_##name(void *d, const size_t *n, const ptrdiff_t *s) { turn_round<T>(d, n, s); }

VIEWS_OF(int8_t, int8)
VIEWS_OF(uint16_t, uint16)
VIEWS_OF(int32_t, int32)
VIEWS_OF(int64_t, int64)
VIEWS_OF(float, float32)
VIEWS_OF(double, float64)
VIEWS_OF(Kokkos::complex<double>, complex128)

extern "C" void start(void) { Kokkos::initialize(); }
extern "C" void end(void) { Kokkos::finalize(); }
extern "C" int version(void) { return KOKKOS_VERSION; }
