package sycl

import (
	"encoding/binary"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/queues"
)

// Copy enqueues a copy. Between two devices the copy is over when it returns, unless the host reaches the
// source, whose pointer then serves.
func (b *Backend) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	on := dst
	if on.Allocator.Backend() != name {
		on = src
	}
	q, err := b.queues.On("Copy", on.Device, s)
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
	err = b.inOrder(q, b.library.Copy, q.Handle(), uintptr(dst.Address), uintptr(src.Address), uintptr(size))
	return backends.Reading | backends.Writing, err
}

// copyThroughHost runs after the work on q, and at the same time as its later work.
func (b *Backend) copyThroughHost(dst backends.Region, q *queues.Queue, from *device, src backends.Address,
	size int) error {
	if err := b.queues.Finish(q); err != nil {
		return err
	}
	if onHost(dst.Allocator) {
		return b.copyNow(from, dst.Address, src, size)
	}
	to := b.devices[q.Device]
	return queues.ThroughHost(size, func(host backends.Address, offset, n int) error {
		return b.copyNow(from, host, src+backends.Address(offset), n)
	}, func(host backends.Address, offset, n int) error {
		return b.copyNow(to, dst.Address+backends.Address(offset), host, n)
	})
}

// copyNow is over when it returns.
func (b *Backend) copyNow(d *device, dst, src backends.Address, size int) error {
	event, err := b.made(b.library.Copy, d.aside.Handle(), uintptr(dst), uintptr(src), uintptr(size))
	if err != nil {
		return err
	}
	defer b.release(event)
	return driver{b}.WaitFor(event)
}

// Fill enqueues a fill. For patterns that SYCL does not fill with, it enqueues copies that double what is there.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	q, err := b.queues.On("Fill", dst.Device, s)
	if err != nil {
		return err
	}
	return b.fill(q, dst.Address, pattern, len(pattern)*count)
}

func (b *Backend) fill(q *queues.Queue, at backends.Address, pattern []byte, size int) error {
	pattern = queues.Shortest(pattern)
	if queues.Fills(at, pattern) {
		return b.fillWith(q, at, pattern, size/len(pattern))
	}
	// The first pattern is filled byte by byte, so that no host memory is read late.
	for i, value := range pattern {
		if err := b.fillWith(q, at+backends.Address(i), []byte{value}, 1); err != nil {
			return err
		}
	}
	for filled := len(pattern); filled < size; filled *= 2 {
		err := b.inOrder(q, b.library.Copy, q.Handle(), uintptr(at)+uintptr(filled), uintptr(at),
			uintptr(min(filled, size-filled)))
		if err != nil {
			return err
		}
	}
	return nil
}

// fillWith is for patterns that SYCL has a type for.
func (b *Backend) fillWith(q *queues.Queue, at backends.Address, pattern []byte, count int) error {
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
		image := dl.OnHeap([2]uint64{})
		for i := range image {
			image[i] = binary.NativeEndian.Uint64(pattern[8*i:])
		}
		// It reads the value before it returns.
		return b.inOrder(q, b.library.Fill128, q.Handle(), uintptr(at), uintptr(unsafe.Pointer(image)), uintptr(count))
	}
	return b.inOrder(q, function, q.Handle(), uintptr(at), value, uintptr(count))
}
