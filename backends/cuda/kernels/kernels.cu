// The kernels of the cuda backend, and of hip, whose runtime compiles them. compile.py
// turns them into kernels.ptx. With HAMR_KERNELS_ON_HOST a C++ compiler makes host
// functions of them, for tests without a GPU.
#include "blocks.h"
#include "convert.h"
#include "convert_line.h"
#include "copy.h"
#include "fill.h"
#include "transpose.h"

#ifdef HAMR_KERNELS_ON_HOST

// Called once for each thread of the grid; blocks have 256 threads, or any number
// where the kernel does not transpose.
typedef void host_run(const void *argument, unsigned long long thread, unsigned long long threads);

template <typename Argument, void (*Body)(const Argument &, unsigned, unsigned)>
static void run(const void *argument, unsigned long long thread, unsigned long long threads)
{
    Body(*static_cast<const Argument *>(argument), static_cast<unsigned>(thread), static_cast<unsigned>(threads));
}

extern "C" {
struct hamr_host_kernel {
    const char *name;
    unsigned long argument_size;
    host_run *run;
};
extern const hamr_host_kernel hamr_host_kernels[];
const hamr_host_kernel hamr_host_kernels[] = {
    {"hamr_convert", sizeof(hamr::convert_argument), run<hamr::convert_argument, hamr::convert_array>},
    {"hamr_convert_line", sizeof(hamr::line_argument), run<hamr::line_argument, hamr::convert_line>},
    {"hamr_transpose", sizeof(hamr::transpose_argument), run<hamr::transpose_argument, hamr::transpose_array>},
    {"hamr_fill", sizeof(hamr::fill_argument), run<hamr::fill_argument, hamr::fill_memory>},
    {"hamr_copy", sizeof(hamr::copy_argument), run<hamr::copy_argument, hamr::copy_runs>},
    {"hamr_check_blocks", sizeof(hamr::check_argument), run<hamr::check_argument, hamr::check_indices>},
    {"hamr_settle_blocks", sizeof(hamr::check_argument), run<hamr::check_argument, hamr::settle_blocks>},
    {"hamr_copy_blocks", sizeof(hamr::blocks_argument), run<hamr::blocks_argument, hamr::copy_blocks>},
    {"hamr_copy_indexed", sizeof(hamr::blocks_argument), run<hamr::blocks_argument, hamr::copy_indexed>},
    {nullptr, 0, nullptr},
};
}

#else

// The least number of blocks on a multiprocessor bounds the registers of a thread,
// as far as none is spilled.
extern "C" __global__ void __launch_bounds__(256, 4) hamr_convert(const hamr::convert_argument argument)
{
    hamr::convert_array(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256, 6) hamr_convert_line(const hamr::line_argument argument)
{
    hamr::convert_line(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_transpose(const hamr::transpose_argument argument)
{
    hamr::transpose_array(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_fill(const hamr::fill_argument argument)
{
    hamr::fill_memory(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_copy(const hamr::copy_argument argument)
{
    hamr::copy_runs(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_check_blocks(const hamr::check_argument argument)
{
    hamr::check_indices(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_settle_blocks(const hamr::check_argument argument)
{
    hamr::settle_blocks(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(256) hamr_copy_blocks(const hamr::blocks_argument argument)
{
    hamr::copy_blocks(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void __launch_bounds__(1024) hamr_copy_indexed(const hamr::blocks_argument argument)
{
    hamr::copy_indexed(argument, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

#endif
