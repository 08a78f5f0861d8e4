! hamr for Fortran: memory that any device and any array library can share.
!
!     use hamr
!     type(hamr_buffer) :: field
!     real(real64), pointer :: u(:, :)
!     call hamr_allocate(field, HAMR_FLOAT64, [nx, ny], value=0)
!     call hamr_data(field, u)
!     ...
!     call hamr_release(field)
!
! Compiled together with hamr_fortran.c, which finds the library; see docs/fortran.md. Fortran 2018.
!
! As with allocate, stat is set to HAMR_OK or to what is wrong, and hamr_last_error() then has the words;
! without stat an error ends the program with them. After an error all is as it was, but for pointers, which are
! disassociated. A buffer has the sizes of Fortran's array in reverse order for C and Python: u(i, j) is
! [j - 1][i - 1] there, at the same address.
module hamr
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_double_complex, c_f_pointer, c_float, c_float_complex, &
        c_int8_t, c_int16_t, c_int32_t, c_int64_t, c_null_ptr, c_ptr
    implicit none
    private :: c_bool, c_char, c_double, c_double_complex, c_f_pointer, c_float, c_float_complex
    private :: c_int8_t, c_int16_t, c_int32_t, c_int64_t, c_null_ptr, c_ptr

    ! The kind of integers without one: another one by -fdefault-integer-8, with which the module is compiled, too.
    integer, parameter, private :: hamr_integers(2) = [c_int32_t, c_int64_t]
    integer, parameter :: hamr_integer = hamr_integers(merge(2, 1, kind(0) == c_int64_t))
    integer(c_int32_t), bind(C, name="hamr_fortran_integer_bytes") :: hamr_integer_bytes = hamr_integer ! for hamr_fortran.c

    ! The numbers of hamr.h, which never change. What stat is set to.
    integer(hamr_integer), parameter :: HAMR_OK = 0, HAMR_ERROR_VALUE = 1, HAMR_ERROR_TYPE = 2, HAMR_ERROR_INDEX = 3, &
        HAMR_ERROR_MEMORY = 4, HAMR_ERROR_UNAVAILABLE = 5, HAMR_ERROR_DEVICE = 6, HAMR_ERROR_RELEASED = 7, &
        HAMR_ERROR_FORKED = 8, HAMR_ERROR_INTERNAL = 9, HAMR_ERROR_IN_USE = 10, HAMR_ERROR_RANGE = 11, &
        HAMR_ERROR_LIBRARY = 64
    ! Elements that Fortran has numbers of: logical(c_bool), integer, real, complex.
    integer(hamr_integer), parameter :: HAMR_BOOL = 1, HAMR_INT8 = 2, HAMR_INT16 = 3, HAMR_INT32 = 4, HAMR_INT64 = 5, &
        HAMR_FLOAT32 = 11, HAMR_FLOAT64 = 12, HAMR_COMPLEX64 = 13, HAMR_COMPLEX128 = 14
    ! Where memory is from.
    integer(hamr_integer), parameter :: HAMR_ALLOCATOR_CPP = 0, HAMR_ALLOCATOR_MALLOC = 1, HAMR_ALLOCATOR_CUDA = 2, &
        HAMR_ALLOCATOR_CUDA_ASYNC = 3, HAMR_ALLOCATOR_CUDA_UVA = 4, HAMR_ALLOCATOR_CUDA_HOST = 5, &
        HAMR_ALLOCATOR_HIP = 6, HAMR_ALLOCATOR_HIP_UVA = 7, HAMR_ALLOCATOR_OPENMP = 8, HAMR_ALLOCATOR_SHARED = 9, &
        HAMR_ALLOCATOR_CUDA_VMM = 10, HAMR_ALLOCATOR_OPENCL_DEVICE = 11, HAMR_ALLOCATOR_OPENCL_SVM = 12, &
        HAMR_ALLOCATOR_HIP_ASYNC = 13, HAMR_ALLOCATOR_HIP_HOST = 14, HAMR_ALLOCATOR_SYCL_DEVICE = 15, &
        HAMR_ALLOCATOR_SYCL_SHARED = 16, HAMR_ALLOCATOR_SYCL_HOST = 17, HAMR_UNKNOWN_ALLOCATOR = -1
    ! Where code runs.
    integer(hamr_integer), parameter :: HAMR_HOST = 0, HAMR_CUDA = 1, HAMR_HIP = 2, HAMR_OPENMP = 3, HAMR_OPENCL = 4, &
        HAMR_SYCL = 5, HAMR_CURRENT_DEVICE = -1
    ! What it does with elements.
    integer(hamr_integer), parameter :: HAMR_READ = 0, HAMR_WRITE = 1, HAMR_READ_WRITE = 2, HAMR_PLAIN = 3

    ! A growable container of elements, in C a hamr_buffer *. A copy of the variable is the same buffer, which
    ! is released once.
    type, bind(C) :: hamr_buffer
        type(c_ptr) :: pointer = c_null_ptr
    end type hamr_buffer

    ! Elements that code has for its own, in C a hamr_handle *.
    type, bind(C) :: hamr_handle
        type(c_ptr) :: pointer = c_null_ptr
    end type hamr_handle

    ! New memory, of malloc's if no allocator is named. value is a number that all elements hold; else they hold anything.
    interface hamr_allocate
        subroutine hamr_fortran_allocate_int32(buffer, element, shape, allocator, device, value, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int32_t
            type(hamr_buffer), intent(inout) :: buffer
            integer(hamr_integer), intent(in) :: element
            integer(c_int32_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(in), optional :: allocator, device
            type(*), intent(in), optional :: value(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_allocate_int32
        subroutine hamr_fortran_allocate_int64(buffer, element, shape, allocator, device, value, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int64_t
            type(hamr_buffer), intent(inout) :: buffer
            integer(hamr_integer), intent(in) :: element
            integer(c_int64_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(in), optional :: allocator, device
            type(*), intent(in), optional :: value(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_allocate_int64
    end interface hamr_allocate

    ! Shares an array that exists, of any rank, also with gaps between its elements. It has the attribute target, and outlives
    ! the buffer and all that is made of it. Of a derived type the buffer has the bytes, of HAMR_INT8, in a dimension
    ! more that comes first.
    interface hamr_adopt
        subroutine hamr_fortran_adopt(buffer, array, stat) bind(C)
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(inout) :: buffer
            type(*), intent(in), target :: array(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_adopt
    end interface hamr_adopt

    ! The same by its address, as of memory of a device.
    interface hamr_adopt_address
        subroutine hamr_fortran_adopt_address_int32(buffer, address, element, shape, allocator, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int32_t, c_ptr
            type(hamr_buffer), intent(inout) :: buffer
            type(c_ptr), intent(in) :: address
            integer(hamr_integer), intent(in) :: element
            integer(c_int32_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(in), optional :: allocator, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_adopt_address_int32
        subroutine hamr_fortran_adopt_address_int64(buffer, address, element, shape, allocator, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_ptr, c_int64_t
            type(hamr_buffer), intent(inout) :: buffer
            type(c_ptr), intent(in) :: address
            integer(hamr_integer), intent(in) :: element
            integer(c_int64_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(in), optional :: allocator, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_adopt_address_int64
    end interface hamr_adopt_address

    ! Lets a pointer of the buffer's rank and type point to the elements, in memory that the host reaches. It is valid until the
    ! buffer is changed, moved or released.
    interface hamr_data
        subroutine hamr_fortran_data_bool(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_bool
            type(hamr_buffer), intent(in) :: buffer
            logical(c_bool), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_bool
        subroutine hamr_fortran_data_int8(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int8_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int8_t), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_int8
        subroutine hamr_fortran_data_int16(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int16_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int16_t), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_int16
        subroutine hamr_fortran_data_int32(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int32_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int32_t), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_int32
        subroutine hamr_fortran_data_int64(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int64_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int64_t), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_int64
        subroutine hamr_fortran_data_real32(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_float
            type(hamr_buffer), intent(in) :: buffer
            real(c_float), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_real32
        subroutine hamr_fortran_data_real64(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_double
            type(hamr_buffer), intent(in) :: buffer
            real(c_double), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_real64
        subroutine hamr_fortran_data_complex32(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_float_complex
            type(hamr_buffer), intent(in) :: buffer
            complex(c_float_complex), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_complex32
        subroutine hamr_fortran_data_complex64(buffer, pointer, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_double_complex
            type(hamr_buffer), intent(in) :: buffer
            complex(c_double_complex), pointer, intent(out) :: pointer(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_data_complex64
    end interface hamr_data

    ! The same for code that says what it does with the elements, HAMR_READ_WRITE if it does not, and where it runs, on the host
    ! if it does not, wherever the elements are. Until the handle is released they are its own, and what it writes
    ! is the buffer's then.
    interface hamr_access
        subroutine hamr_fortran_access_bool(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_bool
            type(hamr_buffer), intent(in) :: buffer
            logical(c_bool), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_bool
        subroutine hamr_fortran_access_int8(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_int8_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int8_t), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_int8
        subroutine hamr_fortran_access_int16(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_int16_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int16_t), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_int16
        subroutine hamr_fortran_access_int32(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_int32_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int32_t), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_int32
        subroutine hamr_fortran_access_int64(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_int64_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int64_t), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_int64
        subroutine hamr_fortran_access_real32(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_float
            type(hamr_buffer), intent(in) :: buffer
            real(c_float), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_real32
        subroutine hamr_fortran_access_real64(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_double
            type(hamr_buffer), intent(in) :: buffer
            real(c_double), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_real64
        subroutine hamr_fortran_access_complex32(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_float_complex
            type(hamr_buffer), intent(in) :: buffer
            complex(c_float_complex), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_complex32
        subroutine hamr_fortran_access_complex64(buffer, pointer, handle, mode, space, device, stat) bind(C)
            import :: hamr_integer, hamr_buffer, hamr_handle, c_double_complex
            type(hamr_buffer), intent(in) :: buffer
            complex(c_double_complex), pointer, intent(out) :: pointer(..)
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(in), optional :: mode, space, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_access_complex64
    end interface hamr_access

    ! Gives a buffer or a handle back. One that holds nothing is no error. Where memory runs out for what a handle
    ! wrote, it is still there, to be tried again or abandoned.
    interface hamr_release
        subroutine hamr_fortran_release_buffer(buffer, stat) bind(C)
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(inout) :: buffer
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_release_buffer
        subroutine hamr_fortran_release_handle(handle, stat) bind(C)
            import :: hamr_integer, hamr_handle
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_release_handle
    end interface hamr_release

    ! Another shape. Elements stay in their order; where there are more, the new ones hold anything.
    interface hamr_resize
        subroutine hamr_fortran_resize_int32(buffer, shape, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int32_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int32_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_resize_int32
        subroutine hamr_fortran_resize_int64(buffer, shape, stat) bind(C)
            import :: hamr_integer, hamr_buffer, c_int64_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int64_t), intent(in) :: shape(:)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fortran_resize_int64
    end interface hamr_resize

    interface
        ! Gives a handle back without what it wrote to a temporary.
        subroutine hamr_abandon(handle, stat) bind(C, name="hamr_fortran_abandon")
            import :: hamr_integer, hamr_handle
            type(hamr_handle), intent(inout) :: handle
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_abandon

        ! Takes the elements to memory of another allocator or device. Nothing if they are there.
        subroutine hamr_move(buffer, allocator, device, stat) bind(C, name="hamr_fortran_move")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer), intent(in) :: allocator
            integer(hamr_integer), intent(in), optional :: device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_move

        ! All elements hold a number, which is converted.
        subroutine hamr_fill(buffer, value, stat) bind(C, name="hamr_fortran_fill")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            type(*), intent(in) :: value(..)
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_fill

        ! Becomes the contents and the shape of another buffer, where it is and with elements of its own type.
        subroutine hamr_assign(buffer, other, stat) bind(C, name="hamr_fortran_assign")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer, other
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_assign

        ! Two buffers exchange all that they have.
        subroutine hamr_swap(buffer, other, stat) bind(C, name="hamr_fortran_swap")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer, other
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_swap

        ! A new buffer of the same elements, in memory as the first one's if no allocator is named.
        subroutine hamr_copy(buffer, made, allocator, device, stat) bind(C, name="hamr_fortran_copy")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            type(hamr_buffer), intent(inout) :: made
            integer(hamr_integer), intent(in), optional :: allocator, device
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_copy

        ! Waits for all work on the elements.
        subroutine hamr_synchronize(buffer, stat) bind(C, name="hamr_fortran_synchronize")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_synchronize

        ! A DLManagedTensorVersioned * that keeps the memory, after the work on it. Whoever takes it calls its deleter.
        subroutine hamr_to_dlpack(buffer, tensor, stat) bind(C, name="hamr_fortran_to_dlpack")
            import :: hamr_integer, hamr_buffer, c_ptr
            type(hamr_buffer), intent(in) :: buffer
            type(c_ptr), intent(out) :: tensor
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_to_dlpack

        ! Takes such a tensor over, save after an error.
        subroutine hamr_from_dlpack(made, tensor, stat) bind(C, name="hamr_fortran_from_dlpack")
            import :: hamr_integer, hamr_buffer, c_ptr
            type(hamr_buffer), intent(inout) :: made
            type(c_ptr), intent(in) :: tensor
            integer(hamr_integer), intent(out), optional :: stat
        end subroutine hamr_from_dlpack

        ! Where the first element is, in the address space of its device; null of what is no buffer.
        function hamr_address(buffer) bind(C, name="hamr_fortran_address")
            import :: hamr_buffer, c_ptr
            type(hamr_buffer), intent(in) :: buffer
            type(c_ptr) :: hamr_address
        end function hamr_address

        ! How many elements; 0 of what is no buffer.
        function hamr_size(buffer) bind(C, name="hamr_fortran_size")
            import :: hamr_buffer, c_int64_t
            type(hamr_buffer), intent(in) :: buffer
            integer(c_int64_t) :: hamr_size
        end function hamr_size

        ! -1 of what is no buffer.
        function hamr_rank(buffer) bind(C, name="hamr_fortran_rank")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer) :: hamr_rank
        end function hamr_rank

        ! The size of a dimension, counted from 1; -1 where there is none.
        function hamr_extent(buffer, dimension) bind(C, name="hamr_fortran_extent")
            import :: hamr_integer, hamr_buffer, c_int64_t
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer), intent(in) :: dimension
            integer(c_int64_t) :: hamr_extent
        end function hamr_extent

        ! HAMR_FLOAT64 and so on; 0 of what Fortran's numbers are not.
        function hamr_element(buffer) bind(C, name="hamr_fortran_element")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer) :: hamr_element
        end function hamr_element

        ! HAMR_UNKNOWN_ALLOCATOR of what is no buffer.
        function hamr_allocator(buffer) bind(C, name="hamr_fortran_allocator")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer) :: hamr_allocator
        end function hamr_allocator

        ! Which owns the memory; -1: the host.
        function hamr_device(buffer) bind(C, name="hamr_fortran_device")
            import :: hamr_integer, hamr_buffer
            type(hamr_buffer), intent(in) :: buffer
            integer(hamr_integer) :: hamr_device
        end function hamr_device

        ! For hamr_last_error, which makes Fortran's text of it.
        function hamr_error_words(length) bind(C, name="hamr_fortran_error_words")
            import :: c_ptr, c_int64_t
            integer(c_int64_t), intent(out) :: length
            type(c_ptr) :: hamr_error_words
        end function hamr_error_words
    end interface
contains

    ! The words for the calling thread's last error.
    function hamr_last_error() result(words)
        character(:), allocatable :: words
        character(kind=c_char), pointer :: letters(:)
        integer(c_int64_t) :: length, i
        type(c_ptr) :: text
        text = hamr_error_words(length)
        call c_f_pointer(text, letters, [length])
        allocate(character(length) :: words)
        do i = 1, length
            words(i:i) = letters(i)
        end do
    end function hamr_last_error

    ! For hamr_fortran.c, where nobody asks for stat.
    subroutine hamr_stop() bind(C, name="hamr_fortran_stop")
        error stop "hamr: " // hamr_last_error()
    end subroutine hamr_stop

end module hamr
