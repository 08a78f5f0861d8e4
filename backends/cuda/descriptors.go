package cuda

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func closeDescriptor(descriptor int) error { return unix.Close(descriptor) }

// closeOnExec keeps a program that is started meanwhile from inheriting what the driver has opened.
func closeOnExec(descriptor int) error {
	_, err := unix.FcntlInt(uintptr(descriptor), unix.F_SETFD, unix.FD_CLOEXEC)
	return err
}

// checkDescriptor refuses numbers that nothing is open at.
func checkDescriptor(descriptor int) error {
	if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0); err != nil {
		return fmt.Errorf("descriptor %d: %w", descriptor, err)
	}
	return nil
}
