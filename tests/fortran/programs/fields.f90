! What Python calls: arrays of NumPy's as Fortran adopts them, and Fortran's fields.
module fields
    use, intrinsic :: iso_c_binding
    use hamr
    implicit none
    type(hamr_buffer) :: adopted, made

contains

    ! The sum of NumPy's array of ny rows and nx columns, which is twice as large afterwards.
    function double_all(address, nx, ny) result(total) bind(C)
        type(c_ptr), value :: address
        integer(c_int), value :: nx, ny
        real(c_double) :: total
        real(c_double), pointer :: array(:, :), elements(:, :)
        call c_f_pointer(address, array, [nx, ny])
        call hamr_adopt(adopted, array)
        call hamr_data(adopted, elements)
        total = sum(elements)
        elements = 2 * elements
        call hamr_release(adopted)
    end function double_all

    function make_field(nx, ny) result(address) bind(C)
        integer(c_int), value :: nx, ny
        type(c_ptr) :: address
        real(c_double), pointer :: u(:, :)
        integer :: i, j
        call hamr_allocate(made, HAMR_FLOAT64, [nx, ny])
        call hamr_data(made, u)
        do j = 1, ny
            do i = 1, nx
                u(i, j) = 100 * i + j
            end do
        end do
        address = hamr_address(made)
    end function make_field

    function element(i, j) bind(C)
        integer(c_int), value :: i, j
        real(c_double) :: element
        real(c_double), pointer :: u(:, :)
        call hamr_data(made, u)
        element = u(i, j)
    end function element

    ! What is wrong with a value that the elements do not hold.
    function fail() result(stat) bind(C)
        integer(c_int) :: stat
        type(hamr_buffer) :: none
        call hamr_allocate(none, HAMR_INT8, [1000], value=1000, stat=stat)
    end function fail

    subroutine drop_field() bind(C)
        call hamr_release(made)
    end subroutine drop_field

end module fields
