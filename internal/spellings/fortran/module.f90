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
        HAMR_ERROR_PAUSED = 12, &
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

    ! The procedures.
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
