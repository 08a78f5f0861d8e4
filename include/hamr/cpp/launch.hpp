/// How many threads a kernel is launched with. For compilers of CUDA and of HIP.
#ifndef HAMR_CPP_LAUNCH_HPP
#define HAMR_CPP_LAUNCH_HPP

#if defined(__CUDACC__) || defined(__HIPCC__)

#include <cstddef>
#include <limits>
#include <string>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define HAMR_RUNTIME(name) cuda##name
#define HAMR_ATTRIBUTE(name) cudaDevAttr##name
#define HAMR_ATTRIBUTE_TYPE cudaDeviceAttr
#define HAMR_RUNTIME_NAME "cuda"
#else
#include <hip/hip_runtime.h>
#define HAMR_RUNTIME(name) hip##name
#define HAMR_ATTRIBUTE(name) hipDeviceAttribute##name
#define HAMR_ATTRIBUTE_TYPE hipDeviceAttribute_t
#define HAMR_RUNTIME_NAME "hip"
#endif

#include "device.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// The element of the calling thread of a kernel.
inline __device__ unsigned long thread_id_to_array_index() {
    return threadIdx.x + static_cast<unsigned long>(blockDim.x) *
                             (blockIdx.x + static_cast<unsigned long>(gridDim.x) *
                                               (blockIdx.y + static_cast<unsigned long>(gridDim.y) * blockIdx.z));
}

/// Whether there is such an element: the last block may have threads to spare.
inline __device__ int index_is_valid(unsigned long index, unsigned long n) { return index < n; }

namespace detail {

inline int launch_attribute(HAMR_ATTRIBUTE_TYPE which, int device) {
    int value = 0;
    const HAMR_RUNTIME(Error_t) status = HAMR_RUNTIME(DeviceGetAttribute)(&value, which, device);
    if (status != HAMR_RUNTIME(Success))
        fail(HAMR_ERROR_DEVICE, "get_launch_props", HAMR_RUNTIME(GetErrorString)(status));
    return value;
}

} // namespace detail

/// Sets the most blocks in each of three dimensions, the threads of a warp, and the warps of a block, for a
/// device; -1 is the calling thread's.
inline int get_launch_props(int device, int *block_grid_max, int &warp_size, int &warps_per_block_max) {
    return detail::status_of([&] {
        if (device < 0) device = detail::active_device(HAMR_RUNTIME_NAME, "get_launch_props");
        block_grid_max[0] = detail::launch_attribute(HAMR_ATTRIBUTE(MaxGridDimX), device);
        block_grid_max[1] = detail::launch_attribute(HAMR_ATTRIBUTE(MaxGridDimY), device);
        block_grid_max[2] = detail::launch_attribute(HAMR_ATTRIBUTE(MaxGridDimZ), device);
        warp_size = detail::launch_attribute(HAMR_ATTRIBUTE(WarpSize), device);
        warps_per_block_max = detail::launch_attribute(HAMR_ATTRIBUTE(MaxThreadsPerBlock), device) / warp_size;
    });
}

/// Sets the blocks, in as many dimensions as they need, and the threads of each block, so that each of n
/// elements has a thread with the index that thread_id_to_array_index() returns.
inline int partition_thread_blocks(std::size_t n, int warps_per_block, int warp_size, const int *block_grid_max,
                                   dim3 &block_grid, int &n_blocks, dim3 &thread_grid) {
    return detail::status_of([&] {
        if (warps_per_block < 1 || warp_size < 1)
            detail::fail(HAMR_ERROR_VALUE, "partition_thread_blocks",
                         "warps_per_block is " + std::to_string(warps_per_block) + " of " + std::to_string(warp_size) +
                             " threads: accepted are 1 and more");
        const std::size_t threads = static_cast<std::size_t>(warps_per_block) * static_cast<std::size_t>(warp_size);
        const std::size_t blocks = n / threads + (n % threads ? 1 : 0);
        const std::size_t x = static_cast<std::size_t>(block_grid_max[0]),
                          y = static_cast<std::size_t>(block_grid_max[1]);
        const std::size_t z = static_cast<std::size_t>(block_grid_max[2]);
        const std::size_t rows = blocks / x + (blocks % x ? 1 : 0), layers = rows / y + (rows % y ? 1 : 0);
        if (layers > z || blocks > static_cast<std::size_t>(std::numeric_limits<int>::max()))
            detail::fail(HAMR_ERROR_VALUE, "partition_thread_blocks",
                         std::to_string(n) + " elements need more blocks than the device has");
        const auto size = [](std::size_t wanted, std::size_t most) {
            return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
        };
        block_grid = dim3(size(blocks, x), size(rows, y), size(layers, z));
        thread_grid = dim3(static_cast<unsigned>(threads));
        n_blocks = static_cast<int>(blocks);
    });
}

/// The same for a device, -1 being the calling thread's.
inline int partition_thread_blocks(int device, std::size_t n, int warps_per_block, dim3 &block_grid, int &n_blocks,
                                   dim3 &thread_grid) {
    int most[3] = {1, 1, 1}, warp_size = 0, warps_most = 0;
    if (get_launch_props(device, most, warp_size, warps_most)) return -1;
    if (warps_per_block > warps_most) {
        return detail::status_of([=] {
            detail::fail(HAMR_ERROR_VALUE, "partition_thread_blocks",
                         "warps_per_block is " + std::to_string(warps_per_block) + ": the device has up to " +
                             std::to_string(warps_most));
        });
    }
    return partition_thread_blocks(n, warps_per_block, warp_size, most, block_grid, n_blocks, thread_grid);
}

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#undef HAMR_RUNTIME
#undef HAMR_ATTRIBUTE
#undef HAMR_ATTRIBUTE_TYPE
#undef HAMR_RUNTIME_NAME

#endif
#endif
