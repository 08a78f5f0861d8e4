// How kernels are partitioned, by a stand-in for CUDA's headers, or HIP's: no kernel runs here.
#include <hamr_cuda_launch.h>
#include <hamr_hip_launch.h>

#include "checks.hpp"

static std::size_t threads_of(dim3 grid, dim3 block) { return std::size_t(grid.x) * grid.y * grid.z * block.x; }

int main() {
    int most[3] = {0, 0, 0}, warp = 0, warps = 0, blocks = 0;
    dim3 grid, block;
    TRUE(hamr::get_launch_props(0, most, warp, warps) == 0 && most[0] == 6 && most[1] == 4 && most[2] == 2 && warp == 32 && warps == 32);
    TRUE(hamr::partition_thread_blocks(0, 1000, 4, grid, blocks, block) == 0 && block.x == 128 && blocks == 8);
    TRUE(grid.x == 6 && grid.y == 2 && grid.z == 1 && threads_of(grid, block) >= 1000);
    TRUE(hamr::partition_thread_blocks(0, 0, 1, grid, blocks, block) == 0 && blocks == 0 && threads_of(grid, block) == 32);
    TRUE(hamr::partition_thread_blocks(0, 48 * 32, 1, grid, blocks, block) == 0 && threads_of(grid, block) == 48 * 32);
    SAYS("more blocks than the device has", hamr::partition_thread_blocks(0, 48 * 32 + 1, 1, grid, blocks, block));
    SAYS("warps_per_block is 33", hamr::partition_thread_blocks(0, 1, 33, grid, blocks, block));
    SAYS("warps_per_block is 0", hamr::partition_thread_blocks(0, 1, 0, grid, blocks, block));
    SAYS("no such device", hamr::get_launch_props(7, most, warp, warps));

    // Each element has one thread.
    std::vector<int> seen(1000);
    gridDim = dim3(6, 2);
    blockDim = dim3(128);
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) {
                const unsigned long i = hamr::thread_id_to_array_index();
                if (hamr::index_is_valid(i, seen.size())) seen[i]++;
            }
    TRUE(seen == std::vector<int>(1000, 1));
    puts("all partitioned");
    return 0;
}
