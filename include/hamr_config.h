/// The header that all of LBL's HAMR includes, by its name: hamr.hpp, and the macros of HAMR's build, as a
/// build with this compiler has them. -DHAMR_ENABLE_CUDA, or =1, defines one that is not; =0 removes one.
#ifndef HAMR_CONFIG_H
#define HAMR_CONFIG_H

#ifdef SWIG // which reads this to know the macros
#define HAMR_EXPORT
#define HAMR_PRIVATE
#define HAMR_ENABLE_PYTHON
#else

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iostream>

#define HAMR_EXPORT __attribute__((visibility("default")))
#define HAMR_PRIVATE __attribute__((visibility("hidden")))

// Whether a macro is 0, and not 1, empty, or not defined.
#define HAMR_REMOVED(name) HAMR_REMOVED_IF(name)
#define HAMR_REMOVED_IF(value) HAMR_REMOVED_##value
#define HAMR_REMOVED_0 1
#define HAMR_REMOVED_1 0
#define HAMR_REMOVED_ 0

#if defined(HAMR_ENABLE_CUDA) && HAMR_REMOVED(HAMR_ENABLE_CUDA)
#undef HAMR_ENABLE_CUDA
#elif !defined(HAMR_ENABLE_CUDA) && (defined(__CUDACC__) || defined(_NVHPC_CUDA))
#define HAMR_ENABLE_CUDA
#endif

// Which of the compilers of CUDA it is.
#if defined(HAMR_NVCC_CUDA) && HAMR_REMOVED(HAMR_NVCC_CUDA)
#undef HAMR_NVCC_CUDA
#elif !defined(HAMR_NVCC_CUDA) && defined(HAMR_ENABLE_CUDA) && defined(__NVCC__)
#define HAMR_NVCC_CUDA
#endif
#if defined(HAMR_NVHPC_CUDA) && HAMR_REMOVED(HAMR_NVHPC_CUDA)
#undef HAMR_NVHPC_CUDA
#elif !defined(HAMR_NVHPC_CUDA) && defined(HAMR_ENABLE_CUDA) && defined(__NVCOMPILER) && !defined(__NVCC__)
#define HAMR_NVHPC_CUDA
#endif
#if defined(HAMR_CLANG_CUDA) && HAMR_REMOVED(HAMR_CLANG_CUDA)
#undef HAMR_CLANG_CUDA
#elif !defined(HAMR_CLANG_CUDA) && defined(HAMR_ENABLE_CUDA) && defined(__clang__) && defined(__CUDA__) && \
    !defined(__NVCC__)
#define HAMR_CLANG_CUDA
#endif

#if defined(HAMR_ENABLE_HIP) && HAMR_REMOVED(HAMR_ENABLE_HIP)
#undef HAMR_ENABLE_HIP
#elif !defined(HAMR_ENABLE_HIP) && (defined(__HIPCC__) || defined(__HIP__))
#define HAMR_ENABLE_HIP
#endif

#if defined(HAMR_ENABLE_OPENMP) && HAMR_REMOVED(HAMR_ENABLE_OPENMP)
#undef HAMR_ENABLE_OPENMP
#elif !defined(HAMR_ENABLE_OPENMP) && defined(_OPENMP)
#define HAMR_ENABLE_OPENMP
#endif

// What follows `#pragma omp target teams` before a loop.
#ifndef HAMR_OPENMP_LOOP
#ifdef __NVCOMPILER
#define HAMR_OPENMP_LOOP loop
#else
#define HAMR_OPENMP_LOOP distribute parallel for
#endif
#endif

// Objects live in the memory of malloc and cpp, not on devices.
#if defined(HAMR_ENABLE_OBJECTS) && HAMR_REMOVED(HAMR_ENABLE_OBJECTS)
#undef HAMR_ENABLE_OBJECTS
#elif !defined(HAMR_ENABLE_OBJECTS) && !defined(HAMR_ENABLE_CUDA) && !defined(HAMR_ENABLE_HIP) && \
    !defined(HAMR_ENABLE_OPENMP)
#define HAMR_ENABLE_OBJECTS
#endif

#if defined(HAMR_ENABLE_PAGE_LOCKED_MEMORY) && HAMR_REMOVED(HAMR_ENABLE_PAGE_LOCKED_MEMORY)
#undef HAMR_ENABLE_PAGE_LOCKED_MEMORY
#elif !defined(HAMR_ENABLE_PAGE_LOCKED_MEMORY) && defined(HAMR_ENABLE_CUDA)
#define HAMR_ENABLE_PAGE_LOCKED_MEMORY
#endif

#if defined(HAMR_ENABLE_PYTHON) && HAMR_REMOVED(HAMR_ENABLE_PYTHON)
#undef HAMR_ENABLE_PYTHON
#elif !defined(HAMR_ENABLE_PYTHON)
#if __has_include(<Python.h>)
#define HAMR_ENABLE_PYTHON
#endif
#endif

// All is in headers, and the environment's HAMR_VERBOSE is always read.
#if defined(HAMR_SEPARATE_IMPL) && HAMR_REMOVED(HAMR_SEPARATE_IMPL)
#undef HAMR_SEPARATE_IMPL
#endif
#if defined(HAMR_VERBOSE) && HAMR_REMOVED(HAMR_VERBOSE)
#undef HAMR_VERBOSE
#endif

#ifdef HAMR_ENABLE_CUDA
#include <cuda_runtime.h>
#endif
#ifdef HAMR_ENABLE_HIP
#include <hip/hip_runtime.h>
#endif

#include "hamr.hpp"

#endif
#endif
