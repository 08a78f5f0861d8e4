// Kernels over buffers of structs, on streams that a buffer hands on by reference and that end before their buffers, 100 times: in
// each transfer mode, on the default, the per-thread and streams of the program's, on each device.
#include <hamr_buffer.h>
#include <hamr_buffer_util.h>
#include <hamr_cuda_device.h>
#include <hamr_cuda_launch.h>
#include <hamr_stream.h>

#include <memory>
#include <tuple>
#include <vector>

#include "require.cuh"

using hamr::buffer;
using allocator = hamr::buffer_allocator;
using transfer = hamr::buffer_transfer;

struct particle {
    float3 at, velocity;
    double mass;
};

__global__ void push(particle *result, const particle *particles, float dt, size_t n) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (!hamr::index_is_valid(i, n)) return;
    result[i] = particles[i];
    result[i].at.x += dt * particles[i].velocity.x;
}

template <typename T>
__global__ void add(T *result, const T *values, size_t n) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (hamr::index_is_valid(i, n)) result[i] += values[i];
}

struct launch {
    dim3 grid, block;
    int blocks = 0;
    explicit launch(size_t n) {
        require(hamr::partition_thread_blocks(-1, n, 8, grid, blocks, block) == 0, "the partition");
    }
};

// A class of a client's, which hands the buffer's stream on.
struct cloud {
    buffer<particle> all;
    const hamr::stream &stream() const { return all.get_stream(); }
    hamr::stream &stream() { return all.get_stream(); }
};

static cloud pushed(const cloud &from, allocator alloc, transfer mode) {
    const size_t n = from.all.size();
    cloud result{buffer<particle>(alloc, from.stream(), mode, n)};
    auto [shared, particles] = hamr::get_cuda_accessible(from.all);
    from.all.synchronize();
    auto [to] = hamr::data(result.all);
    const launch at(n);
    push<<<at.grid, at.block, 0, result.stream()>>>(to, particles, 0.5f, n);
    require(cudaGetLastError(), "the launch");
    return result;
}

static void structs(allocator alloc, transfer mode, const hamr::stream &stream, size_t n) {
    const particle one{{1, 2, 3}, {4, 5, 6}, 7};
    cloud first{buffer<particle>(alloc, n, one)};
    first.stream() = stream; // which takes effect
    cloud last = pushed(pushed(first, allocator::cuda, mode), allocator::cuda_async, mode);
    // A per-thread stream is replaced: see docs/rationale/order.md.
    require(stream == cudaStreamPerThread || last.stream() == stream, "the stream");
    require(last.all.append(&one, 1) == 0, "the append");
    const std::shared_ptr<const particle> values = last.all.get_host_accessible();
    require(last.all.synchronize() == 0 && cudaStreamSynchronize(last.stream()) == cudaSuccess, "the work");
    require(last.all.size() == n + 1 && values.get()[0].at.x == 5 && values.get()[n - 1].at.x == 5, "the push");
    require(values.get()[n].at.x == 1 && values.get()[n - 1].mass == 7 && values.get()[n - 1].at.z == 3, "the particles");
}

static void ended(allocator alloc, transfer mode, size_t n, bool waited) {
    cudaStream_t own = nullptr;
    require(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "a stream");
    auto a = std::make_unique<buffer<float>>(alloc, own, mode, n, 1.f);
    auto b = std::make_unique<buffer<float>>(allocator::cuda, own, mode, n, 2.f);
    std::shared_ptr<const float> values = a->get_cuda_accessible();
    a->synchronize();
    const launch at(n);
    add<<<at.grid, at.block, 0, b->get_stream()>>>(b->data(), values.get(), n);
    require(cudaGetLastError(), "the launch");
    buffer<float> host(allocator::malloc, own, transfer::sync, *b);
    const bool right = host.data()[0] == 3 && host.data()[n - 1] == 3;
    if (waited) require(cudaStreamSynchronize(own), "the stream");
    require(cudaStreamDestroy(own), "the stream's end");
    a.reset();
    b.reset();
    values.reset();
    require(right && host.free() == 0, "the sum");
    require(cudaGetLastError(), "what the buffers' ends did");
}

int main() {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "the count of devices");
    for (int device = 0; device < devices; device++) {
        const hamr::activate_cuda_device there(device);
        cudaStream_t own;
        require(cudaStreamCreate(&own), "a stream");
        for (allocator alloc : {allocator::malloc, allocator::cpp, allocator::cuda, allocator::cuda_async, allocator::cuda_uva, allocator::cuda_host}) {
            for (transfer mode : {transfer::async, transfer::sync_host, transfer::sync}) {
                for (const hamr::stream &stream : {hamr::stream(), hamr::stream(cudaStreamPerThread), hamr::stream(own)}) structs(alloc, mode, stream, 100003);
                if (alloc == allocator::cuda_async) continue; // whose memory goes before its stream
                for (int i = 0; i < 100; i++) ended(alloc, mode, i % 2 ? 16 : 1000, i % 3 == 0);
                for (bool waited : {false, true}) ended(alloc, mode, size_t(5000) * 5000, waited);
            }
        }
        require(cudaStreamDestroy(own), "the stream's end");
        require(cudaDeviceSynchronize(), "the device's work");
    }
    std::cout << "the sums are right" << std::endl;
    return 0;
}
