/// A header of LBL's HAMR by its name: hamr.hpp has what is in it, for CUDA's compiler.
#ifndef HAMR_CUDA_LAUNCH_H
#define HAMR_CUDA_LAUNCH_H

#ifdef __CUDACC__
#include "hamr_config.h"
#else
#error "hamr_cuda_launch.h is for nvcc, or clang that compiles CUDA"
#endif

#endif
