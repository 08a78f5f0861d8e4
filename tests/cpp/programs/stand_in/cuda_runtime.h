// As much of CUDA's header as hamr_cuda_launch.h uses, of a device with few blocks.
#ifndef CUDA_RUNTIME_H
#define CUDA_RUNTIME_H

#define __device__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

static dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0), blockDim, gridDim;

typedef struct CUstream_st *cudaStream_t;

enum cudaError_t { cudaSuccess, cudaErrorInvalidDevice };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock, cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY,
                      cudaDevAttrMaxGridDimZ, cudaDevAttrWarpSize };

static inline const char *cudaGetErrorString(cudaError_t) { return "no such device"; }

static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device) {
    static const int values[] = {1024, 6, 4, 2, 32};
    *value = values[which];
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

#endif
