! An error that nobody asks for ends the program, with its words.
program stops
    use hamr
    implicit none
    type(hamr_buffer) :: field
    call hamr_allocate(field, HAMR_FLOAT64, [-3])
    print '(a)', "it went on"
end program stops
