package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// AllocateFor returns the address of memory of a CUDA device for a library, whose number is one of
// gobuffer's. Work on the stream uses it first and last.
//
//hamr:blocking
func AllocateFor(library, device, size int, stream uint64) (uint64, error) {
	at, err := bridge.AllocateFor(library, device, size, backends.Stream(stream))
	return uint64(at), err
}

// FreeFor takes that memory back, without waiting for anybody.
func FreeFor(address uint64) (int, error) {
	return 0, bridge.FreeFor(backends.Address(address))
}

// KeepStream tells that a stream does not end before DropStream.
func KeepStream(device int, stream uint64) (int, error) {
	return 0, bridge.KeepStream(device, backends.Stream(stream))
}

// DropStream tells that a stream that KeepStream was told of may end, and reports whether no library has
// memory of it any more. With Python's lock no library allocates meanwhile by a hook of Python's.
func DropStream(device int, stream uint64) (bool, error) {
	return bridge.DropStream(device, backends.Stream(stream))
}

// KeepFreed says how many more, or fewer, use the hooks of CuPy and of all of torch: while there are any, what these
// free is kept for what they allocate next on the same stream. It returns the address of a C function, int (int by),
// that adds to how often the hook had no memory for the calling thread.
func KeepFreed(by int) (uint64, error) {
	bridge.KeepFreed(by)
	return uint64(bridge.CuPyMisses), nil
}
