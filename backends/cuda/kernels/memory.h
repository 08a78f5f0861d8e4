// What the kernels need to be both device and host code: words, bits, and the
// way to memory.
#pragma once

#ifdef HAMR_KERNELS_ON_HOST
#include <cstring>
#define HAMR_DEVICE inline
#define HAMR_UNROLL
#define HAMR_SHARED
// Gives the host's address of size bytes of device memory.
extern "C" void *hamr_device_pointer(unsigned long long address, unsigned long long size);
#else
#define HAMR_DEVICE __device__ __forceinline__
#define HAMR_UNROLL _Pragma("unroll")
#define HAMR_SHARED __shared__
#endif

// What is PTX is said in C++ where there is none.
#if defined(HAMR_KERNELS_ON_HOST) || defined(__HIP__)
#define HAMR_WITHOUT_PTX
#endif

namespace hamr {

typedef unsigned long long wide;
typedef long long signed_wide;

struct alignas(16) double_wide {
    wide low, high;
};

template <unsigned Bytes> struct word_of;
template <> struct word_of<1> { typedef unsigned char type; };
template <> struct word_of<2> { typedef unsigned short type; };
template <> struct word_of<4> { typedef unsigned type; };
template <> struct word_of<8> { typedef wide type; };
template <> struct word_of<16> { typedef double_wide type; };

// The address must be a multiple of the word's size.
template <typename Word> HAMR_DEVICE Word *at(wide address)
{
#ifdef HAMR_KERNELS_ON_HOST
    return static_cast<Word *>(hamr_device_pointer(address, sizeof(Word)));
#elif defined(__HIP__)
    return reinterpret_cast<Word *>(address);
#else
    // Says that no address is in shared or local memory, which a plain cast
    // would leave to be found out at every access.
    return static_cast<Word *>(__cvta_global_to_generic(address));
#endif
}

#ifdef HAMR_KERNELS_ON_HOST
template <typename To, typename From> inline To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits would be lost");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline float single_of(unsigned bits) { return same_bits<float>(bits); }
inline unsigned bits_of(float value) { return same_bits<unsigned>(value); }
inline double double_of(wide bits) { return same_bits<double>(bits); }
inline wide bits_of(double value) { return same_bits<wide>(value); }
inline unsigned high_product(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<wide>(a) * b >> 32); }
#else
HAMR_DEVICE float single_of(unsigned bits) { return __uint_as_float(bits); }
HAMR_DEVICE unsigned bits_of(float value) { return __float_as_uint(value); }
HAMR_DEVICE double double_of(wide bits) { return __longlong_as_double(static_cast<signed_wide>(bits)); }
HAMR_DEVICE wide bits_of(double value) { return static_cast<wide>(__double_as_longlong(value)); }
HAMR_DEVICE unsigned high_product(unsigned a, unsigned b) { return __umulhi(a, b); }
#endif

} // namespace hamr
