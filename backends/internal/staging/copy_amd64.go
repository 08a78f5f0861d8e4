package staging

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	blockBytes = 256
	lineBytes  = 64
)

//go:noescape
func copyBlocks(to, from unsafe.Pointer, blocks int)

// relax makes the processor wait for some hundred nanoseconds.
func relax()

// copyAround is copy for bytes that need not be in the caches afterwards. The slices are of one
// length.
func copyAround(to, from []byte) {
	if !cpu.X86.HasAVX2 || len(to) < 4*blockBytes {
		copy(to, from)
		return
	}
	head := int(-uintptr(unsafe.Pointer(&to[0])) & (lineBytes - 1))
	copy(to[:head], from[:head])
	to, from = to[head:], from[head:]
	blocks := len(to) / blockBytes
	copyBlocks(unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), blocks)
	copy(to[blocks*blockBytes:], from[blocks*blockBytes:])
}
