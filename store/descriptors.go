package store

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ranOut reports whether an error is for want of descriptors.
func ranOut(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
