! Heat on a plate, in Fortran; analyse.py looks at the field between the steps, in place.
module heat
    use, intrinsic :: iso_c_binding, only: c_double, c_int, c_ptr
    use hamr
    implicit none
    private
    type(hamr_buffer) :: plate, spare

contains

    ! A cold plate of nx by ny cells with a hot spot. The result is 0, or what is wrong.
    function heat_start(nx, ny) result(stat) bind(C)
        integer(c_int), value :: nx, ny
        integer(c_int) :: stat
        real(c_double), pointer :: u(:, :)
        call hamr_allocate(plate, HAMR_FLOAT64, [nx, ny], value=0, stat=stat)
        if (stat == HAMR_OK) call hamr_allocate(spare, HAMR_FLOAT64, [nx, ny], value=0, stat=stat)
        if (stat == HAMR_OK) call hamr_data(plate, u, stat)
        if (stat == HAMR_OK) u(31:34, 21:24) = 100
    end function heat_start

    subroutine heat_step(steps, rate) bind(C)
        integer(c_int), value :: steps
        real(c_double), value :: rate
        real(c_double), pointer :: u(:, :), next(:, :)
        integer :: n
        call hamr_data(plate, u)
        call hamr_data(spare, next)
        do n = 1, steps
            next = u + rate * (cshift(u, 1, 1) + cshift(u, -1, 1) + cshift(u, 1, 2) + cshift(u, -1, 2) - 4 * u)
            u = next
        end do
    end subroutine heat_step

    ! The hottest cell's temperature and where it is.
    function heat_peak(i, j) result(peak) bind(C)
        integer(c_int), intent(out) :: i, j
        real(c_double) :: peak
        real(c_double), pointer :: u(:, :)
        integer :: place(2)
        call hamr_data(plate, u)
        place = maxloc(u)
        i = place(1)
        j = place(2)
        peak = u(i, j)
    end function heat_peak

    ! The plate for others, who keep its memory as long as they like: a DLManagedTensorVersioned *.
    function heat_tensor() result(tensor) bind(C)
        type(c_ptr) :: tensor
        call hamr_to_dlpack(plate, tensor)
    end function heat_tensor

    subroutine heat_end() bind(C)
        call hamr_release(plate)
        call hamr_release(spare)
    end subroutine heat_end

end module heat
