package queues

import (
	"bytes"
	"math/bits"
	"runtime"
	"unsafe"

	"hamr/backends"
)

// largestChunk is how many bytes of a copy go through the host at a time.
const largestChunk = 4 << 20

// ThroughHost copies between two devices by way of host memory. Each part is copied to the host by load, and from there
// by store, whose copies are over when they return.
func ThroughHost(size int, load, store func(host backends.Address, offset, size int) error) error {
	chunk := make([]byte, min(size, largestChunk))
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(chunk))
	defer pin.Unpin()
	host := backends.Address(unsafe.Pointer(unsafe.SliceData(chunk)))
	for done := 0; done < size; done += len(chunk) {
		n := min(len(chunk), size-done)
		if err := load(host, done, n); err != nil {
			return err
		}
		if err := store(host, done, n); err != nil {
			return err
		}
	}
	return nil
}

// Shortest returns the shortest half, quarter and so on that a pattern repeats, or one byte if all are the same.
func Shortest(pattern []byte) []byte {
	for len(pattern)%2 == 0 && bytes.Equal(pattern[:len(pattern)/2], pattern[len(pattern)/2:]) {
		pattern = pattern[:len(pattern)/2]
	}
	if bytes.Count(pattern, pattern[:1]) == len(pattern) {
		return pattern[:1]
	}
	return pattern
}

// Fills reports whether the runtimes fill with a pattern at an address: they take powers of two at multiples of these.
// That a driver takes others is no promise.
func Fills(at backends.Address, pattern []byte) bool {
	return bits.OnesCount(uint(len(pattern))) == 1 && int(at)%len(pattern) == 0
}
