// What SWIG reads of hamr's allocators: buffer_allocator_malloc and the others, and who uses their memory.
%{
#include "hamr_buffer_allocator.h"
%}

namespace hamr {

enum class buffer_allocator : int {
    same = -2,
    none = -1,
    cpp = 0,
    malloc = 1,
    cuda = 2,
    cuda_async = 3,
    cuda_uva = 4,
    cuda_host = 5,
    hip = 6,
    hip_uva = 7,
    openmp = 8,
    shared = 9,
    cuda_vmm = 10,
    opencl_device = 11,
    opencl_svm = 12,
    hip_async = 13,
    hip_host = 14,
    sycl_device = 15,
    sycl_shared = 16,
    sycl_host = 17
};

const char *get_allocator_name(buffer_allocator allocator);
int host_accessible(buffer_allocator allocator);
int cuda_accessible(buffer_allocator allocator);
int hip_accessible(buffer_allocator allocator);
int openmp_accessible(buffer_allocator allocator);
buffer_allocator get_device_allocator();
buffer_allocator get_host_allocator();

} // namespace hamr
