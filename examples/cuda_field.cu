// A CUDA kernel fills a field, and CuPy, in the Python that the program embeds, has it where it is.
//
//     headers=$(python3 -c 'import hamr; print(hamr.get_include())')
//     nvcc -std=c++17 -c $(python3-config --includes) -I"$headers" cuda_field.cu
//     c++ -o cuda_field cuda_field.o $(python3-config --ldflags --embed) -L/usr/local/cuda/lib64 -lcudart -ldl
#include <Python.h>

#include <hamr.hpp>
#include <hamr/cpp/python.hpp>
#include <hamr_cuda_launch.h>

#include <cstdio>

static const char *const analysis = R"(
import cupy

def analyse(field, address):
    values = cupy.asarray(field)  # the memory that the kernel wrote
    print("the same memory:", values.data.ptr == address == field.data())
    print("maximum:", float(values.max()))
    values *= 2
    cupy.cuda.get_current_stream().synchronize()  # the kernels to come are on another stream
)";

__global__ static void fill(float *values, std::size_t n) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (hamr::index_is_valid(i, n)) values[i] = static_cast<float>(i % 100);
}

__global__ static void add(float *values, std::size_t n, float more) {
    const unsigned long i = hamr::thread_id_to_array_index();
    if (hamr::index_is_valid(i, n)) values[i] += more;
}

// 0, or -1 after a message of Python's.
static int analyse(const hamr::buffer<float> &field) {
    PyObject *shared = hamr::to_python(field), *result = nullptr;
    if (shared) {
        PyObject *module = PyImport_AddModule("__main__"); // borrowed
        const auto address = reinterpret_cast<unsigned long long>(field.data());
        result = PyObject_CallMethod(module, "analyse", "OK", shared, address);
    }
    if (!result) PyErr_Print();
    Py_XDECREF(shared);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int main() {
    const std::size_t n = 100000;
    const hamr::stream stream = hamr::stream::create();
    hamr::buffer<float> field(hamr::buffer_allocator::cuda_async, stream, hamr::buffer_transfer::async, n);
    dim3 grid, block;
    int blocks = 0;
    if (hamr::partition_thread_blocks(-1, n, 8, grid, blocks, block)) return 1;
    fill<<<grid, block, 0, stream>>>(field.data(), n);
    if (cudaGetLastError() != cudaSuccess) return 1;
    Py_Initialize();
    int failed = PyRun_SimpleString(analysis);
    if (!failed) failed = analyse(field); // CuPy's stream waits for the buffer's
    add<<<grid, block, 0, stream>>>(field.data(), n, 1);
    if (cudaGetLastError() != cudaSuccess) failed = 1;
    double sum = 0;
    const std::shared_ptr<const float> values = field.get_host_accessible();
    field.synchronize();
    for (std::size_t i = 0; i < n; i++) sum += static_cast<double>(values.get()[i]);
    Py_FinalizeEx();
    std::printf("sum after Python's end: %.0f\n", sum);
    return failed ? 1 : 0;
}
