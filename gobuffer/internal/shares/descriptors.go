package shares

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// Descriptor is memory that a file descriptor is of, where it is mapped at Start, Size bytes.
type Descriptor struct {
	Number   int
	Start    backends.Address
	Size     int
	ReadOnly bool // it is not to be mapped for writing
}

// Duplicate returns another descriptor of the same file, which is closed on exec.
func Duplicate(descriptor int) (int, error) {
	number, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("duplicating descriptor %d: %w", descriptor, err)
	}
	return number, nil
}

// Close closes descriptors.
func Close(list []int) (err error) {
	for _, descriptor := range list {
		err = errors.Join(err, unix.Close(descriptor))
	}
	return err
}

// Unavailable is the error for memory that other processes cannot have in place.
func Unavailable(why string) error {
	return &backends.UnavailableError{Backend: "sharing", Reason: why}
}
