package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// DescriptorsError says that this process cannot open more descriptors. Nothing else has changed: the session goes on.
type DescriptorsError struct{ Limit uint64 }

func (e *DescriptorsError) Error() string {
	return fmt.Sprintf("this process has no file descriptor left for what the store sends: "+
		"RLIMIT_NOFILE (ulimit -n) is %d", e.Limit)
}

// Unwrap returns the system's error.
func (e *DescriptorsError) Unwrap() error { return unix.EMFILE }

func NoDescriptors() error { return &DescriptorsError{FilesLimit()} }

// RanOut reports whether an error is for want of descriptors.
func RanOut(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

func FilesLimit() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return min(limit.Cur, 1<<40) // there may be no limit
}

// ErrShort says that a packet has come without its descriptors, as the process can open no more.
var ErrShort = errors.New("a packet without its descriptors")
