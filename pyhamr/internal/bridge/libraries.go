package bridge

import (
	"fmt"
	"math"
	"strconv"

	"hamr/backends"
	"hamr/gobuffer"
)

func numberedLibrary(library int) (gobuffer.Library, error) {
	if library < 0 || library > math.MaxUint8 {
		return 0, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "library", Value: strconv.Itoa(library),
			Accepted: "that of cupy, torch and numba"}
	}
	return gobuffer.Library(library), nil
}

// AllocateFor returns memory for a library, see gobuffer.
func AllocateFor(library, device, size int, s backends.Stream) (at backends.Address, err error) {
	defer Guard(&err)
	l, err := numberedLibrary(library)
	if err != nil {
		return 0, err
	}
	return Runtime.Grant(l, device, size, s, tagOfThread())
}

// AllocateForAtOnce is AllocateFor where that waits for nobody; else it returns zero.
func AllocateForAtOnce(library, device, size int, s backends.Stream) (at backends.Address) {
	defer func() {
		if recover() != nil {
			at = 0
		}
	}()
	l, err := numberedLibrary(library)
	if err != nil {
		return 0
	}
	return Runtime.GrantAtOnce(l, device, size, s, tagOfThread())
}

// FreeFor takes memory back from a library.
func FreeFor(at backends.Address) (err error) {
	defer Guard(&err)
	if !partFreed(at) && !Runtime.FreeFor(at) {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "address", Value: fmt.Sprintf("%#x", uintptr(at)),
			Accepted: "memory that a library has from hamr"}
	}
	return nil
}

// UseFor makes a library's memory wait, once it is freed, for another stream, too.
func UseFor(at backends.Address, s backends.Stream) (err error) {
	defer Guard(&err)
	return Runtime.UseFor(at, s)
}

// KeepStream tells that a library's stream does not end before DropStream.
func KeepStream(device int, s backends.Stream) (err error) {
	defer Guard(&err)
	if err := Runtime.KeepStream(device, s); err != nil {
		return err
	}
	GrantedStream(device, s, true)
	return nil
}

// DropStream tells that a library's stream may end; false while some library has memory of it.
func DropStream(device int, s backends.Stream) (dropped bool, err error) {
	defer Guard(&err)
	GrantedStream(device, s, false)
	if dropped, err = Runtime.DropStream(device, s); err == nil && !dropped {
		GrantedStream(device, s, true)
	}
	return dropped, err
}

// What CuPy and torch free C keeps for them, while KeepFreed says that somebody uses that, on streams that stay.
// Package capi sets these.
var (
	// GrantedAgain is how often it was handed out since the start.
	GrantedAgain = func() int64 { return 0 }
	// KeepFreed says how many more, or fewer, use it.
	KeepFreed = func(by int) {}
	// GrantedStream says whether a stream stays.
	GrantedStream = func(device int, s backends.Stream, stays bool) {}
	// CuPyMisses is the address of a C function that tells whether CuPy's hook had memory.
	CuPyMisses uintptr
)
