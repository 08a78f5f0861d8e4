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
