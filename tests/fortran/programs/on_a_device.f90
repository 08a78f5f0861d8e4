! Elements in a device's memory, as the host has them; prints "on a device" at its end.
program on_a_device
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    use hamr
    implicit none
    type(hamr_buffer) :: field
    type(hamr_handle) :: handle
    real(real64), pointer :: u(:, :), there(:, :)
    integer :: stat

    call hamr_allocate(field, HAMR_FLOAT64, [3, 2], HAMR_ALLOCATOR_CUDA, 0, value=1)
    call check(hamr_device(field) == 0, "it is on the device")
    call hamr_data(field, u, stat)
    call check(stat == HAMR_ERROR_VALUE .and. .not. associated(u), "the host has no pointer")
    call check(index(hamr_last_error(), "does not reach memory of cuda") > 0, "in words")

    call hamr_access(field, u, handle, HAMR_READ_WRITE)
    call check(is_contiguous(u) .and. all(u == 1), "a temporary")
    u(3, 1) = 5
    call hamr_release(handle)
    call hamr_access(field, there, handle, HAMR_READ, HAMR_CUDA, 0)
    call check(c_associated(c_loc(there), hamr_address(field)), "in place for the device")
    call check(all(shape(there) == [3, 2]), "with its shape")
    call hamr_release(handle)

    call hamr_move(field, HAMR_ALLOCATOR_MALLOC)
    call hamr_data(field, u)
    call check(is_contiguous(u) .and. u(3, 1) == 5 .and. sum(u) == 10, "on the host")
    call hamr_move(field, HAMR_ALLOCATOR_CUDA, 0)
    call hamr_synchronize(field)
    call hamr_access(field, u, handle, HAMR_READ)
    call check(u(3, 1) == 5, "and back")
    call hamr_release(handle)
    call hamr_release(field)
    print '(a)', "on a device"

contains

    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what
        if (condition) return
        print '(a)', "not so: " // what // "; hamr says: " // hamr_last_error()
        error stop
    end subroutine check

end program on_a_device
