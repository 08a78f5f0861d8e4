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
		return 0, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "library", Value: strconv.Itoa(library), Accepted: "that of cupy, torch and numba"}
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
	return Runtime.Grant(l, device, size, s)
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
	return Runtime.GrantAtOnce(l, device, size, s)
}

// FreeFor takes memory back from a library.
func FreeFor(at backends.Address) (err error) {
	defer Guard(&err)
	if !Runtime.FreeFor(at) {
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
	return Runtime.KeepStream(device, s)
}

// DropStream tells that a library's stream may end; false while some library has memory of it.
func DropStream(device int, s backends.Stream) (dropped bool, err error) {
	defer Guard(&err)
	return Runtime.DropStream(device, s)
}
