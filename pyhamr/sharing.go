package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// Share returns what other processes open elements by whose work is over: whether they are a copy,
// whether they are for reading only, the frame in hexadecimal, and its descriptors, which are the
// caller's. The elements start at address in memory that a token stands for; copying is Go's Copying, protect has
// receivers read only; of is
// the token of what OpenShared has opened, or of a store's object, that they are of, else 0.
//
//hamr:blocking
func Share(memory, address uint64, element, allocator, device int, shape, strides string, fixed bool, copying int, protect bool, of uint64, stored bool) (string, error) {
	return bridge.Share(memory, backends.Address(address), element, backends.Allocator(allocator), device, shape, strides, fixed, copying, protect, of, stored)
}

// OpenShared opens elements by a frame in hexadecimal and its descriptors, which stay the caller's. The
// reply is a token for EndShared, the address of the first element, allocator, device, 1 if they are for reading
// only, a descriptor that a forked child is to close or -1, and type; shape and strides follow behind a
// semicolon each.
//
//hamr:blocking
func OpenShared(frame, descriptors string) (string, error) {
	return bridge.OpenShared(frame, descriptors)
}

// EndShared gives opened elements back; a device's soon.
//
//hamr:blocking
func EndShared(token uint64) int {
	bridge.EndShared(token)
	return 0
}

// Settle ends what was let go of, of the store or opened, and has not ended.
//
//hamr:blocking
func Settle() int {
	bridge.Settle()
	return 0
}
