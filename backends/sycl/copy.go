package sycl

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"runtime"
	"unsafe"

	"hamr/backends"
)

const largestChunk = 4 << 20 // bytes of a copy through the host

// Copy enqueues a copy. Between two devices the copy is over when it returns, unless the host reaches the
// source, whose pointer then serves.
func (b *Backend) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	on := dst
	if on.Allocator.Backend() != name {
		on = src
	}
	q, err := b.queueOn("Copy", on.Device, s)
	if err != nil {
		return backends.Complete, err
	}
	if src.Allocator.Backend() == name && src.Device != on.Device && !onHost(src.Allocator) {
		from, err := b.device("Copy", src.Device)
		if err != nil {
			return backends.Complete, err
		}
		return backends.Complete, b.copyThroughHost(dst, q, from, src.Address, size)
	}
	err = b.inOrder(q, b.library.Copy, q.handle(), uintptr(dst.Address), uintptr(src.Address), uintptr(size))
	return backends.Reading | backends.Writing, err
}

// copyThroughHost runs after what is on q, and beside what comes later.
func (b *Backend) copyThroughHost(dst backends.Region, q *queue, from *device, src backends.Address, size int) error {
	if err := b.finish(q); err != nil {
		return err
	}
	if onHost(dst.Allocator) {
		return b.copyNow(from, dst.Address, src, size)
	}
	chunk := make([]byte, min(size, largestChunk))
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(chunk))
	defer pin.Unpin()
	here := backends.Address(unsafe.Pointer(unsafe.SliceData(chunk)))
	for done := 0; done < size; done += len(chunk) {
		n := min(len(chunk), size-done)
		if err := b.copyNow(from, here, src+backends.Address(done), n); err != nil {
			return err
		}
		if err := b.copyNow(q.device, dst.Address+backends.Address(done), here, n); err != nil {
			return err
		}
	}
	return nil
}

// copyNow is over when it returns.
func (b *Backend) copyNow(d *device, dst, src backends.Address, size int) error {
	event, err := b.made(b.library.Copy, d.aside.handle(), uintptr(dst), uintptr(src), uintptr(size))
	if err != nil {
		return err
	}
	defer b.release(event)
	return b.waitFor(event)
}

// Fill enqueues a fill or, of patterns that SYCL knows none of, copies of what is there already.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	q, err := b.queueOn("Fill", dst.Device, s)
	if err != nil {
		return err
	}
	return b.fill(q, dst.Address, pattern, len(pattern)*count)
}

func (b *Backend) fill(q *queue, at backends.Address, pattern []byte, size int) error {
	pattern = shortest(pattern)
	if fills(at, pattern) {
		return b.fillWith(q, at, pattern, size/len(pattern))
	}
	// The first one byte by byte, which needs no memory that is read late.
	for i, value := range pattern {
		if err := b.fillWith(q, at+backends.Address(i), []byte{value}, 1); err != nil {
			return err
		}
	}
	for filled := len(pattern); filled < size; filled *= 2 {
		err := b.inOrder(q, b.library.Copy, q.handle(), uintptr(at)+uintptr(filled), uintptr(at),
			uintptr(min(filled, size-filled)))
		if err != nil {
			return err
		}
	}
	return nil
}

// fillWith is for patterns that SYCL has a type for.
func (b *Backend) fillWith(q *queue, at backends.Address, pattern []byte, count int) error {
	function, value := b.library.Fill8, uintptr(0)
	switch len(pattern) {
	case 1:
		value = uintptr(pattern[0])
	case 2:
		function, value = b.library.Fill16, uintptr(binary.NativeEndian.Uint16(pattern))
	case 4:
		function, value = b.library.Fill32, uintptr(binary.NativeEndian.Uint32(pattern))
	case 8:
		function, value = b.library.Fill64, uintptr(binary.NativeEndian.Uint64(pattern))
	default:
		image := onHeap([2]uint64{})
		for i := range image {
			image[i] = binary.NativeEndian.Uint64(pattern[8*i:])
		}
		// It reads the value before it returns.
		return b.inOrder(q, b.library.Fill128, q.handle(), uintptr(at), uintptr(unsafe.Pointer(image)), uintptr(count))
	}
	return b.inOrder(q, function, q.handle(), uintptr(at), value, uintptr(count))
}

// shortest is what a pattern repeats, or the pattern.
func shortest(pattern []byte) []byte {
	for len(pattern)%2 == 0 && bytes.Equal(pattern[:len(pattern)/2], pattern[len(pattern)/2:]) {
		pattern = pattern[:len(pattern)/2]
	}
	if bytes.Count(pattern, pattern[:1]) == len(pattern) {
		return pattern[:1]
	}
	return pattern
}

// fills reports whether SYCL fills with a pattern at an address: it has types of powers of two, at
// multiples of these.
func fills(at backends.Address, pattern []byte) bool {
	return bits.OnesCount(uint(len(pattern))) == 1 && int(at)%len(pattern) == 0
}
