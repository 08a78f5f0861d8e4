// Pipelines of buffers by value through kernels, as codes written for LBL's HAMR have them: mixed
// types, the default stream and streams of their own, each device, peers.
#include <hamr_buffer.h>
#include <hamr_buffer_allocator.h>
#include <hamr_buffer_util.h>
#include <hamr_cuda_device.h>
#include <hamr_cuda_launch.h>
#include <hamr_device.h>
#include <hamr_stream.h>

#include <memory>
#include <vector>

#include "require.cuh"

using hamr::buffer;
using allocator = hamr::buffer_allocator;
using transfer = hamr::buffer_transfer;

template <typename T, typename U>
__global__ void add_kernel(T *result, const T *a, const U *b, size_t n) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (!hamr::index_is_valid(i, n)) return;
    result[i] = a[i] + static_cast<T>(b[i]);
}

template <typename T>
__global__ void scale_kernel(T *values, T by, size_t n) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (!hamr::index_is_valid(i, n)) return;
    values[i] *= by;
}

struct launch {
    dim3 grid, block;
    int blocks = 0;
    explicit launch(size_t n) {
        int device = -1;
        require(hamr::get_active_cuda_device(device) == 0, "the active device");
        require(hamr::partition_thread_blocks(device, n, 8, grid, blocks, block) == 0, "the partition");
    }
};

template <typename T, typename U>
buffer<T> add(allocator alloc, const hamr::stream &stream, transfer mode, const buffer<T> &a, const buffer<U> &b) {
    auto [spa, pa, spb, pb] = hamr::get_cuda_accessible(a, b);
    const size_t n = a.size();
    buffer<T> result(alloc, stream, mode, n);
    // What the device waits for it is told by the buffers' streams; these are of another.
    a.synchronize();
    b.synchronize();
    const launch at(n);
    add_kernel<<<at.grid, at.block, 0, stream>>>(result.data(), pa, pb, n);
    require(cudaGetLastError(), "the launch");
    return result;
}

template <typename T>
buffer<T> scale(const hamr::stream &stream, buffer<T> in, T by) {
    const launch at(in.size());
    scale_kernel<<<at.grid, at.block, 0, stream>>>(in.data(), by, in.size());
    require(cudaGetLastError(), "the launch");
    return in;
}

template <typename T>
double sum(const buffer<T> &of) {
    const std::shared_ptr<const T> values = of.get_host_accessible();
    of.synchronize();
    double total = 0;
    for (size_t i = 0; i < of.size(); i++) total += static_cast<double>(values.get()[i]);
    return total;
}

static void pipeline(const hamr::stream &stream, transfer mode, allocator alloc) {
    const size_t n = 100003; // more than one block, and none full at the end
    buffer<float> ones(alloc, stream, mode, n, 1.f);
    const buffer<int> twos(allocator::malloc, n, 2);
    std::vector<double> list(n, 3.0);
    const buffer<double> threes(alloc, stream, mode, n, list.data());
    buffer<float> six = add(alloc, stream, mode, add(alloc, stream, mode, ones, twos), threes);
    buffer<float> twelve = scale(stream, std::move(six), 2.f);
    require(sum(twelve) == 12.0 * n, "the sum of the pipeline");
    buffer<double> host(allocator::malloc, twelve);
    require(sum(host) == 12.0 * n, "the sum of the copy");
    require(hamr::cuda_accessible(alloc) == 1 && twelve.cuda_accessible(), "what CUDA reaches");
}

int main() {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "the count of devices");
    for (int device = 0; device < devices; device++) {
        const hamr::activate_cuda_device there(device);
        int active = -1;
        require(hamr::get_active_cuda_device(active) == 0 && active == device, "the active device");
        for (allocator alloc : {allocator::cuda, allocator::cuda_async, allocator::cuda_uva}) {
            pipeline(hamr::stream(), transfer::sync, alloc);
            cudaStream_t own;
            require(cudaStreamCreate(&own), "a stream");
            pipeline(hamr::stream(own), transfer::async, alloc);
            pipeline(own, transfer::sync_host, alloc);
            require(cudaStreamSynchronize(own), "the stream");
            require(cudaStreamDestroy(own), "the stream's end");
        }
    }
    // A buffer of one device is used on the next one.
    buffer<float> first(allocator::cuda, 1000, 5.f);
    for (int device = 1; device < devices; device++) {
        const hamr::activate_cuda_device there(device);
        hamr::access_cuda_peer peer;
        peer.enable(device, 0, true);
        buffer<float> moved = scale(hamr::stream(), buffer<float>(allocator::cuda, first), 2.f);
        require(moved.get_owner() == device && sum(moved) == 10000.0, "what another device has made of it");
    }
    std::cout << devices << " devices" << std::endl;
    std::cout << "the sums are right" << std::endl;
    return 0;
}
