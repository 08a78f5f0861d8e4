/// The header that all of LBL's HAMR includes, by its name. With CUDA's compiler, or where the program
/// is compiled with -DHAMR_ENABLE_CUDA, it says so and includes CUDA's runtime, as that did; likewise HIP.
#ifndef HAMR_CONFIG_H
#define HAMR_CONFIG_H

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iostream>

#ifdef __CUDACC__
#ifndef HAMR_ENABLE_CUDA
#define HAMR_ENABLE_CUDA
#endif
#endif
#ifdef HAMR_ENABLE_CUDA
#include <cuda_runtime.h>
#endif
#if defined(__HIPCC__) && !defined(HAMR_ENABLE_HIP)
#define HAMR_ENABLE_HIP
#endif
#ifndef HAMR_EXPORT
#define HAMR_EXPORT
#endif
#ifndef HAMR_PRIVATE
#define HAMR_PRIVATE
#endif

#include "hamr.hpp"

#endif
