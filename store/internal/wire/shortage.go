package wire

import (
	"errors"
	"fmt"
	"sync"

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

// manyDescriptors is what a process has room for that uses a store, without a wait.
const manyDescriptors = 1024

var roomForMany sync.Once

// MakeRoom has the kernel make this process's table of descriptors large, meanwhile and once. Else a process of several
// threads waits each time that the table doubles: 9 to 16 ms with Linux 6.18, and twice for 137 objects.
func MakeRoom() {
	go roomForMany.Do(func() {
		last := min(manyDescriptors, int(FilesLimit())) - 1
		for standard := range 3 { // what forked children have in any case
			if far, err := unix.FcntlInt(uintptr(standard), unix.F_DUPFD_CLOEXEC, last); err == nil {
				_ = unix.Close(far)
				return
			}
		}
	})
}

// ErrShort says that a packet has come without its descriptors, as the process can open no more.
var ErrShort = errors.New("a packet without its descriptors")
