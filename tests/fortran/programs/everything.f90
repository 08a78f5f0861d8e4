! All that the module hamr does on the host; prints "all of it" at its end.
program everything
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use hamr
    implicit none
    type(hamr_buffer) :: field, other, third
    type(hamr_handle) :: handle
    integer :: stat

    call every_type()
    call ranks()
    call adopted()
    call accessed()
    call moved()
    call by_dlpack()
    call swapped()
    call of_a_derived_type()
    call refused()
    print '(a)', "all of it"

contains

    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what
        if (condition) return
        print '(a)', "not so: " // what // "; hamr says: " // hamr_last_error()
        error stop
    end subroutine check

    ! The call before it failed so, with these words.
    subroutine failed(status, words)
        integer, intent(in) :: status
        character(*), intent(in) :: words
        character(:), allocatable :: said
        said = hamr_last_error()
        call check(stat == status, "status " // words)
        call check(index(said, words) > 0, words)
    end subroutine failed

    subroutine every_type()
        logical(c_bool), pointer :: mask(:)
        integer(int8), pointer :: i1(:)
        integer(int16), pointer :: i2(:)
        integer(int32), pointer :: i4(:)
        integer(int64), pointer :: i8(:)
        real(real32), pointer :: r4(:)
        real(real64), pointer :: r8(:)
        complex(real32), pointer :: z4(:)
        complex(real64), pointer :: z8(:)

        call hamr_allocate(field, HAMR_BOOL, [2], value=.true._c_bool)
        call hamr_data(field, mask)
        call check(all(mask) .and. size(mask) == 2, "bool")
        call hamr_release(field)
        call hamr_allocate(field, HAMR_INT8, [2], value=-7_int8)
        call hamr_data(field, i1)
        call check(all(i1 == -7_int8), "int8")
        call hamr_access(field, i1, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_INT16, [2], value=-700_int16)
        call hamr_data(field, i2)
        call check(all(i2 == -700_int16), "int16")
        call hamr_access(field, i2, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_INT32, [2], value=-70000)
        call hamr_data(field, i4)
        call check(all(i4 == -70000), "int32")
        call hamr_access(field, i4, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_INT64, [2_int64], value=-7000000000_int64)
        call hamr_data(field, i8)
        call check(all(i8 == -7000000000_int64), "int64")
        call hamr_access(field, i8, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_FLOAT32, [2], value=1.5)
        call hamr_data(field, r4)
        call check(all(r4 == 1.5), "real32")
        call hamr_access(field, r4, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_FLOAT64, [2], value=3) ! numbers are converted
        call hamr_data(field, r8)
        call check(all(r8 == 3), "real64")
        call hamr_release(field)
        call hamr_allocate(field, HAMR_COMPLEX64, [2], value=(1., 2.))
        call hamr_data(field, z4)
        call check(all(z4 == (1., 2.)), "complex of real32")
        call hamr_access(field, z4, handle)
        call hamr_release(handle)
        call hamr_release(field)
        call hamr_allocate(field, HAMR_COMPLEX128, [2], value=(1._real64, 2._real64))
        call hamr_data(field, z8)
        call check(all(z8 == (1._real64, 2._real64)), "complex of real64")
        call hamr_access(field, z8, handle)
        call hamr_release(handle)
        call hamr_release(field)
    end subroutine every_type

    ! The first index is the fastest, from 1 on, and the sizes are those that were asked for.
    subroutine ranks()
        real(real64), pointer :: r0, r2(:, :), r3(:, :, :), r4(:, :, :, :), line(:)
        integer(int32), pointer :: r7(:, :, :, :, :, :, :)
        integer :: i
        call hamr_allocate(field, HAMR_FLOAT64, [integer ::], value=4)
        call hamr_data(field, r0)
        call check(r0 == 4 .and. hamr_rank(field) == 0 .and. hamr_size(field) == 1, "rank 0")
        call hamr_release(field)

        call hamr_allocate(field, HAMR_FLOAT64, [3, 2])
        call hamr_data(field, r2)
        r2 = reshape([(real(i, real64), i=1, 6)], [3, 2])
        call check(all(shape(r2) == [3, 2]) .and. all(lbound(r2) == 1) .and. is_contiguous(r2), "rank 2")
        call check(c_associated(c_loc(r2), hamr_address(field)), "the address")
        call hamr_resize(field, [6])
        call hamr_data(field, line)
        call check(all(line == [1, 2, 3, 4, 5, 6]), "in Fortran's order")
        call hamr_resize(field, [3_int64, 4_int64])
        call hamr_data(field, r2)
        call check(all(shape(r2) == [3, 4]) .and. r2(3, 2) == 6, "grown by two columns")
        call check(hamr_extent(field, 1) == 3 .and. hamr_extent(field, 2) == 4 .and. hamr_extent(field, 3) == -1, "extents")
        call check(hamr_element(field) == HAMR_FLOAT64, "its element type")
        call hamr_release(field)

        call hamr_allocate(field, HAMR_FLOAT64, [2, 3, 4], value=1)
        call hamr_access(field, r3, handle, HAMR_READ_WRITE)
        r3(2, 1, 4) = 5
        call hamr_release(handle)
        call hamr_data(field, r3)
        call check(sum(r3) == 23 + 5 .and. all(shape(r3) == [2, 3, 4]), "rank 3")
        call hamr_release(field)
        call hamr_allocate(field, HAMR_FLOAT64, [2, 0, 3, 4])
        call hamr_data(field, r4)
        call check(associated(r4) .eqv. .true. .or. size(r4) == 0, "without elements")
        call check(all(shape(r4) == [2, 0, 3, 4]), "rank 4 without elements")
        call hamr_release(field)
        call hamr_allocate(field, HAMR_INT32, [1, 2, 1, 2, 1, 2, 3], value=1)
        call hamr_data(field, r7)
        call check(sum(r7) == 24 .and. size(r7, 7) == 3, "rank 7")
        call hamr_release(field)
    end subroutine ranks

    subroutine adopted()
        integer(int32), target :: grid(4, 6)
        integer(int32), pointer :: part(:, :), line(:)
        integer :: i
        grid = reshape([(int(i, int32), i=1, 24)], [4, 6])
        call hamr_adopt(field, grid)
        call check(c_associated(hamr_address(field), c_loc(grid)), "in place")
        call hamr_data(field, part)
        part(2, 3) = -1
        call check(grid(2, 3) == -1, "writes are seen")
        call hamr_release(field)

        call hamr_adopt(field, grid(4:1:-2, ::3))
        call hamr_data(field, part)
        call check(all(shape(part) == [2, 2]) .and. all(part == grid(4:1:-2, ::3)), "a section")
        part(2, 2) = -2
        call check(grid(2, 4) == -2, "writes to a section")
        call hamr_release(field)

        call hamr_adopt_address(field, c_loc(grid), HAMR_INT32, [24])
        call hamr_data(field, line)
        call check(line(7) == grid(3, 2), "by its address")
        call hamr_release(field)
        call hamr_adopt_address(field, c_loc(grid), HAMR_INT32, [4_int64, 6_int64], HAMR_ALLOCATOR_MALLOC)
        call hamr_data(field, part)
        call check(associated(part, grid), "the same array")
        call hamr_release(field)
        call check(grid(1, 1) == 1, "the array is still the caller's")
    end subroutine adopted

    subroutine accessed()
        real(real32), pointer :: mine(:), again(:)
        type(hamr_handle) :: second
        call hamr_allocate(field, HAMR_FLOAT32, [5], value=2)
        call hamr_access(field, mine, handle, HAMR_READ_WRITE, HAMR_HOST, HAMR_CURRENT_DEVICE)
        mine(5) = 8
        call hamr_access(field, again, second, HAMR_WRITE, stat=stat)
        call failed(HAMR_ERROR_IN_USE, "")
        call check(.not. associated(again), "no pointer")
        call hamr_fill(field, 1, stat)
        call failed(HAMR_ERROR_IN_USE, "")
        call hamr_abandon(handle)
        call hamr_release(handle) ! holds nothing
        call hamr_fill(field, 1)
        call hamr_data(field, mine)
        call check(all(mine == 1), "filled")
        call hamr_release(field)
    end subroutine accessed

    subroutine moved()
        real(real64), pointer :: u(:, :), v(:, :)
        call hamr_allocate(field, HAMR_FLOAT64, [3, 2], HAMR_ALLOCATOR_SHARED, value=2)
        call check(hamr_allocator(field) == HAMR_ALLOCATOR_SHARED .and. hamr_device(field) == -1, "shared")
        call hamr_move(field, HAMR_ALLOCATOR_MALLOC)
        call check(hamr_allocator(field) == HAMR_ALLOCATOR_MALLOC, "moved")
        call hamr_synchronize(field)
        call hamr_data(field, u)
        call check(all(shape(u) == [3, 2]) .and. all(u == 2), "the same elements")
        call hamr_copy(field, other)
        call hamr_copy(field, third, HAMR_ALLOCATOR_SHARED)
        call hamr_data(other, v)
        v(3, 1) = 9
        call check(u(3, 1) == 2 .and. hamr_allocator(third) == HAMR_ALLOCATOR_SHARED, "a copy")
        call hamr_assign(third, other)
        call hamr_data(third, v)
        call check(v(3, 1) == 9 .and. hamr_allocator(third) == HAMR_ALLOCATOR_SHARED, "assigned")
        call hamr_release(third)
        call hamr_release(other)
        call hamr_release(field)
    end subroutine moved

    subroutine by_dlpack()
        type(c_ptr) :: tensor
        real(real64), pointer :: u(:, :), v(:, :)
        call hamr_allocate(field, HAMR_FLOAT64, [3, 2], value=2)
        call hamr_data(field, u)
        call hamr_to_dlpack(field, tensor)
        call hamr_from_dlpack(other, tensor)
        call hamr_data(other, v)
        call check(associated(v, u), "the same memory")
        call hamr_release(field)
        call check(all(v == 2), "it stays")
        call hamr_release(other)
    end subroutine by_dlpack

    subroutine swapped()
        real(real64), pointer :: u(:)
        real(real32), pointer :: v(:, :)
        call hamr_allocate(field, HAMR_FLOAT64, [3], value=1)
        call hamr_allocate(other, HAMR_FLOAT32, [2, 4], value=2)
        call hamr_swap(field, other)
        call hamr_data(other, u)
        call hamr_data(field, v)
        call check(all(u == 1) .and. all(v == 2) .and. hamr_extent(field, 2) == 4, "each has the other's")
        call hamr_swap(field, field, stat)
        call check(stat == HAMR_OK, "with itself")
        call hamr_release(field)
        call hamr_release(other)
    end subroutine swapped

    subroutine of_a_derived_type()
        type :: particle
            real(real64) :: x(3)
            integer(int32) :: kind
        end type particle
        type(particle), target :: many(4, 2)
        integer(int8), pointer :: bytes(:, :, :)
        type(particle), pointer :: seen(:)
        many%kind = 7
        call hamr_adopt(field, many)
        call check(hamr_rank(field) == 3 .and. hamr_element(field) == HAMR_INT8, "bytes")
        call check(hamr_extent(field, 1) == storage_size(many) / 8 .and. hamr_extent(field, 2) == 4, "of each one first")
        call hamr_data(field, bytes)
        call check(bytes(25, 4, 2) == 7, "in place")
        call c_f_pointer(hamr_address(field), seen, [8])
        seen(8)%x = 5
        call check(all(many(4, 2)%x == 5), "with their type again")
        call hamr_release(field)
        call hamr_adopt(field, many(1:4:3, 2))
        call hamr_data(field, bytes, stat)
        call failed(HAMR_ERROR_TYPE, "rank 2")
        call check(hamr_extent(field, 2) == 2, "a section")
        call hamr_release(field)
    end subroutine of_a_derived_type

    subroutine refused()
        real(real64), pointer :: u(:, :)
        real(real32), pointer :: single(:, :)
        real(real64), pointer :: flat(:)
        type(hamr_buffer) :: same
        logical, target :: words(3)
        call hamr_allocate(field, HAMR_FLOAT64, [3, -2], stat=stat)
        call failed(HAMR_ERROR_VALUE, "must not be negative")
        call check(index(hamr_last_error(), "shape (3, -2)") > 0, "sizes in Fortran's order: " // hamr_last_error())
        call hamr_allocate(field, HAMR_FLOAT64, [-1, 22, 333], stat=stat)
        call check(index(hamr_last_error(), "shape (-1, 22, 333)") > 0, "more sizes in Fortran's order: " // hamr_last_error())
        call check(hamr_size(field) == 0 .and. hamr_rank(field) == -1, "no buffer")
        call hamr_allocate(field, 99, [3], stat=stat)
        call failed(HAMR_ERROR_TYPE, "99")
        call hamr_allocate(field, HAMR_INT8, [3], value=1000, stat=stat)
        call failed(HAMR_ERROR_RANGE, "1000")
        call check(.not. c_associated(field%pointer), "nothing is left")
        call hamr_adopt(field, words, stat)
        call failed(HAMR_ERROR_TYPE, "logical(c_bool)")
        call hamr_data(field, u, stat)
        call failed(HAMR_ERROR_VALUE, "")
        call check(len(hamr_last_error()) > 0, "words")

        call hamr_allocate(field, HAMR_FLOAT64, [3, 2], value=1)
        call hamr_allocate(field, HAMR_FLOAT64, [3, 2], stat=stat)
        call failed(HAMR_ERROR_VALUE, "release it first")
        call hamr_data(field, single, stat)
        call failed(HAMR_ERROR_TYPE, "the pointer is of float32 and rank 2, the elements are of float64 and rank 2")
        call check(.not. associated(single), "no pointer")
        call hamr_access(field, flat, handle, stat=stat)
        call failed(HAMR_ERROR_TYPE, "rank 1")
        call check(.not. c_associated(handle%pointer), "no handle")
        call hamr_move(field, 99, stat=stat)
        call failed(HAMR_ERROR_VALUE, "99")
        call hamr_data(field, u)
        call check(all(u == 1), "as it was")
        call hamr_resize(field, [2], stat)
        call check(stat == HAMR_OK .and. len(hamr_last_error()) >= 0, "stat after success")
        same = field
        call hamr_release(field)
        call hamr_release(field) ! holds nothing
        call hamr_release(same, stat)
        call failed(HAMR_ERROR_RELEASED, "")
    end subroutine refused

end program everything
