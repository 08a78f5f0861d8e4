// In place of HIP's header, as much of it as hamr uses: the stand-in for CUDA's under its names.
#ifndef HIP_RUNTIME_H
#define HIP_RUNTIME_H

#include "../cuda_runtime.h"

typedef struct ihipStream_t *hipStream_t;

typedef cudaError_t hipError_t;
typedef cudaDeviceAttr hipDeviceAttribute_t;
static const hipError_t hipSuccess = cudaSuccess;
static const hipDeviceAttribute_t hipDeviceAttributeMaxThreadsPerBlock = cudaDevAttrMaxThreadsPerBlock;
static const hipDeviceAttribute_t hipDeviceAttributeMaxGridDimX = cudaDevAttrMaxGridDimX;
static const hipDeviceAttribute_t hipDeviceAttributeMaxGridDimY = cudaDevAttrMaxGridDimY;
static const hipDeviceAttribute_t hipDeviceAttributeMaxGridDimZ = cudaDevAttrMaxGridDimZ;
static const hipDeviceAttribute_t hipDeviceAttributeWarpSize = cudaDevAttrWarpSize;

static inline const char *hipGetErrorString(hipError_t status) { return cudaGetErrorString(status); }

static inline hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t which, int device) {
    return cudaDeviceGetAttribute(value, which, device);
}

#endif
