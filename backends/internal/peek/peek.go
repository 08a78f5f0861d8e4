// Package peek reads memory that may not be mapped. The handle of a stream may be another runtime's, and libraries
// jump through the words that they find there.
package peek

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Word returns the word at an address, and whether there is memory. believed says that this cannot be found out, such
// as where a sandbox forbids the call. Then a handle is taken for what the caller says.
func Word(at uintptr) (word uintptr, readable, believed bool) {
	place := new(uintptr)
	size := int(unsafe.Sizeof(*place))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(place)), Len: uint64(size)}}
	n, err := unix.ProcessVMReadv(unix.Getpid(), local, []unix.RemoteIovec{{Base: at, Len: size}}, 0)
	if err != nil && !errors.Is(err, unix.EFAULT) {
		return 0, false, true
	}
	return *place, err == nil && n == size, false
}
