# hamr.h and hamr/python.h for Cython: "cimport hamr", with hamr.get_include() among the include_dirs.
#
#     cimport hamr
#     cdef hamr.hamr_buffer *field
#     hamr.hamr_from_python(argument, &field)

from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "hamr/python.h":
    ctypedef int32_t hamr_status
    ctypedef struct hamr_buffer
    ctypedef struct hamr_handle
    ctypedef void (*hamr_deleter)(void *data, void *context) noexcept nogil

    ctypedef struct hamr_place:
        int32_t allocator
        int32_t device
        void *stream
        int32_t transfer
        int32_t reserved

    ctypedef struct hamr_info:
        int64_t size
        int64_t bytes
        int64_t capacity
        const int64_t *shape
        const int64_t *strides
        void *stream
        int32_t ndim
        int32_t element
        int32_t allocator
        int32_t device
        int32_t transfer
        uint32_t flags
        void *address

    enum:
        HAMR_OK
        HAMR_ASYNC
        HAMR_SYNC_HOST
        HAMR_SYNC
        HAMR_READ
        HAMR_WRITE
        HAMR_READ_WRITE
        HAMR_PLAIN
        HAMR_STRIDED
        HAMR_CURRENT_DEVICE
        HAMR_ADOPT_READ_ONLY
        HAMR_ADOPT_TAKE
        HAMR_INFO_READ_ONLY
        HAMR_INFO_ADDRESS
        HAMR_HOST
        HAMR_CUDA
        HAMR_HIP
        HAMR_ALLOCATOR_MALLOC
        HAMR_ALLOCATOR_CPP
        HAMR_ALLOCATOR_CUDA
        HAMR_BOOL
        HAMR_INT8
        HAMR_INT16
        HAMR_INT32
        HAMR_INT64
        HAMR_UINT8
        HAMR_UINT16
        HAMR_UINT32
        HAMR_UINT64
        HAMR_FLOAT16
        HAMR_FLOAT32
        HAMR_FLOAT64
        HAMR_COMPLEX64
        HAMR_COMPLEX128
        HAMR_BFLOAT16

    # With the GIL. Exceptions are Python's.
    object hamr_to_python(const hamr_buffer *buffer)
    int hamr_from_python(object given, hamr_buffer **made) except -1
    object hamr_raise()  # hamr's last error, as an exception

    # With or without the GIL, as all of hamr.h. What is not 0 is an error, for hamr_raise().
    hamr_status hamr_create(hamr_buffer **made, int32_t element, int32_t ndim, const int64_t *shape, const hamr_place *place, const void *value) nogil
    hamr_status hamr_adopt(hamr_buffer **made, void *data, int32_t element, int32_t ndim, const int64_t *shape, const int64_t *strides,
                           const hamr_place *place, uint32_t flags, hamr_deleter deleter, void *context) nogil
    hamr_status hamr_release(hamr_buffer *buffer) nogil
    hamr_status hamr_view(const hamr_buffer *buffer, hamr_buffer **made, int64_t offset, int32_t element, int32_t ndim, const int64_t *shape,
                          const int64_t *strides) nogil
    hamr_status hamr_copy(const hamr_buffer *buffer, hamr_buffer **made, int32_t element, const hamr_place *place) nogil
    hamr_status hamr_access(hamr_buffer *buffer, int32_t space, int32_t device, int32_t mode, hamr_handle **made) nogil
    hamr_status hamr_release_handle(hamr_handle *handle) nogil
    hamr_status hamr_abandon_handle(hamr_handle *handle) nogil
    hamr_status hamr_synchronize(const hamr_buffer *buffer) nogil
    const hamr_info *hamr_info_of(const hamr_buffer *buffer) nogil
    const hamr_info *hamr_handle_info(const hamr_handle *handle) nogil
    void *hamr_data(const hamr_buffer *buffer) nogil
    int64_t hamr_size(const hamr_buffer *buffer) nogil
    void *hamr_handle_data(const hamr_handle *handle) nogil
    const char *hamr_last_error() nogil
