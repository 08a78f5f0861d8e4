"""What codes name that were written for LBL's HAMR: its headers, macros, and CMake's variables."""

#: hamr_<name>.h
_HEADERS = """
buffer buffer_allocator buffer_handle buffer_impl buffer_pointer buffer_transfer buffer_util
config copier_traits
cuda_copy cuda_copy_impl cuda_copy_async cuda_copy_async_impl cuda_device cuda_kernels cuda_launch
cuda_malloc_allocator cuda_malloc_allocator_impl
cuda_malloc_async_allocator cuda_malloc_async_allocator_impl
cuda_malloc_host_allocator cuda_malloc_host_allocator_impl
cuda_malloc_uva_allocator cuda_malloc_uva_allocator_impl
cuda_print cuda_print_impl
device env gil_state
hip_copy hip_copy_impl hip_device hip_kernels hip_launch
hip_malloc_allocator hip_malloc_allocator_impl hip_malloc_uva_allocator hip_print hip_print_impl
host_copy host_copy_impl
malloc_allocator malloc_allocator_impl new_allocator new_allocator_impl
openmp_allocator openmp_allocator_impl openmp_copy openmp_copy_impl openmp_device
openmp_print openmp_print_impl
python_deleter python_deleter_impl
stream stream_impl
"""
HEADERS = _HEADERS.split()

#: hamr_<name>.i, for SWIG.
INTERFACES = ["buffer", "buffer_allocator", "buffer_handle", "buffer_transfer", "py", "stream"]

#: Of hamr_config.h: whether it is as the compiler is, or always there, or there if it is asked for.
MACROS = {
    "HAMR_ENABLE_CUDA": "cuda",
    "HAMR_NVCC_CUDA": "nvcc",
    "HAMR_NVHPC_CUDA": "nvhpc",
    "HAMR_CLANG_CUDA": "clang",
    "HAMR_ENABLE_HIP": "hip",
    "HAMR_ENABLE_OPENMP": "openmp",
    "HAMR_ENABLE_OBJECTS": "host",
    "HAMR_ENABLE_PAGE_LOCKED_MEMORY": "cuda",
    "HAMR_ENABLE_PYTHON": "python",
    "HAMR_SEPARATE_IMPL": "asked",
    "HAMR_VERBOSE": "asked",
    "HAMR_OPENMP_LOOP": "always",
    "HAMR_EXPORT": "always",
    "HAMR_PRIVATE": "always",
}

#: Variables of find_package(hamr), and what they are where a project has C++ alone.
CMAKE = {
    **{name: "OFF" for name, kind in MACROS.items() if kind != "always"},
    "HAMR_ENABLE_OBJECTS": "ON",
    "HAMR_OPENMP_LOOP": "distribute parallel for",
    "HAMR_LIB_TYPE": "STATIC",
}

#: Functions and classes of namespace hamr, whose parameters other tests have.
FUNCTIONS = """
get_allocator_name host_accessible cuda_accessible hip_accessible openmp_accessible
assert_valid_allocator get_device_allocator get_host_allocator
get_host_accessible get_cuda_accessible get_hip_accessible get_openmp_accessible
get_device_accessible data pointer synchronize make_buffer
p_buffer const_p_buffer const_ptr ref_to
get_device_identifier get_host_identifier get_active_device set_active_device get_device
activate_device
get_cuda_device_identifier get_cuda_host_identifier get_active_cuda_device set_active_cuda_device
get_cuda_device activate_cuda_device access_cuda_peer
get_hip_device_identifier get_hip_host_identifier get_active_hip_device set_active_hip_device
get_hip_device activate_hip_device
get_openmp_device_identifier get_openmp_host_identifier get_active_openmp_device
set_active_openmp_device get_openmp_device activate_openmp_device
buffer buffer_allocator buffer_transfer stream
malloc_allocator new_allocator cuda_malloc_allocator cuda_malloc_async_allocator
cuda_malloc_host_allocator cuda_malloc_uva_allocator hip_malloc_allocator hip_malloc_uva_allocator
openmp_allocator
copy_to_host_from_host
copy_to_cuda_from_host copy_to_cuda_from_cuda copy_to_host_from_cuda
copy_to_hip_from_host copy_to_hip_from_hip copy_to_host_from_hip
copy_to_openmp_from_host copy_to_openmp_from_openmp copy_to_host_from_openmp
cuda_print hip_print openmp_print get_verbose
"""

#: What is done with objects of them, each of which compiles.
USES = """
buffer<double>::allocator::cuda_async
buffer<double>::transfer::sync_host
buffer<double>(alloc)
buffer<double>(alloc, strm)
buffer<double>(alloc, strm, sync)
buffer<double>(alloc, size_t(3))
buffer<double>(alloc, size_t(3), 1.)
buffer<double>(alloc, size_t(3), values)
buffer<double>(alloc, strm, size_t(3))
buffer<double>(alloc, strm, sync, size_t(3), 1.)
buffer<double>(alloc, strm, sync, size_t(3), values)
buffer<double>(alloc, size_t(3), -1, values, &free)
buffer<double>(alloc, strm, sync, size_t(3), -1, values, [](double *) {})
buffer<double>(alloc, strm, sync, size_t(3), -1, values)
buffer<double>(alloc, strm, sync, size_t(3), -1, values, 0)
buffer<double>(alloc, strm, sync, size_t(3), -1, shared)
buffer<double>(whole)
buffer<double>(alloc, whole)
buffer<double>(alloc, strm, sync, whole)
buffer<double>(alloc, strm, sync, std::move(other))
fixed = whole
fixed = std::move(other)
fixed.swap(other)
fixed.move(alloc) + fixed.reserve(3) + fixed.reserve(3, 1.) + fixed.resize(3) + fixed.resize(3, 1.)
fixed.free() + fixed.print() + fixed.synchronize()
fixed.size() + (fixed.get_owner() == -1)
fixed.assign(values, 0, 3) + fixed.assign(whole) + fixed.assign(whole, 0, 3)
fixed.append(values, 0, 3) + fixed.append(whole) + fixed.append(whole, 0, 3)
fixed.set(0, values, 0, 3) + fixed.set(0, whole, 0, 3) + fixed.set(whole)
fixed.get(0, values, 0, 3) + fixed.get(0, whole, 0, 3) + fixed.get(whole)
std::shared_ptr<const double>(fixed.get_host_accessible())
std::shared_ptr<const double>(fixed.get_cuda_accessible())
std::shared_ptr<const double>(fixed.get_hip_accessible())
std::shared_ptr<const double>(fixed.get_openmp_accessible())
std::shared_ptr<const double>(fixed.get_device_accessible())
fixed.host_accessible() + fixed.cuda_accessible() + fixed.hip_accessible()
fixed.openmp_accessible() + fixed.device_accessible()
fixed.data() == std::as_const(fixed).data()
fixed.pointer() == std::as_const(fixed).pointer()
fixed.get_allocator() == alloc
fixed.get_stream() = strm
fixed.set_stream(strm)
fixed.set_stream(strm, sync)
fixed.set_transfer_asynchronous()
fixed.set_transfer_sycnhronous()
fixed.set_transfer_sycnhronous_host()
fixed.get_transfer_mode() == sync
strm.synchronize() + bool(strm)
strm.print()
size_t(strm.get_stream())
peers.enable(0, 1, true)
peers.disable()
"""
