//go:build cgo

// Package host serves memory of the C library's heap, of C++'s operator new[], and
// memory that processes share, so that C, C++ and Python code can own and free it.
// Its blocks are C memory: Go's collector neither moves nor frees them.
package host

import (
	"fmt"
	"sync"

	"hamr/backends"
)

// Backend is backends.Backend for the allocators Malloc, CPP and Shared. It has no
// streams: everything is complete at return, and stream arguments are ignored.
// Malloc's and CPP's blocks are aligned to 64 bytes, Shared's to pages. Memory
// belongs to the caller until Free. Safe for concurrent use.
type Backend struct {
	c     heap
	cpp   func() (heap, error)
	spare spares

	medium, large largeSpares
	mappings      mappings
}

// New returns the backend. C++'s operators are looked for when CPP is first
// asked for.
func New() backends.Backend {
	return &Backend{
		c:      cHeap{},
		medium: largeSpares{count: mostMedium, usual: mediumLimit, rest: usualRest},
		large:  largeSpares{count: mostLarge, usual: func() int { return largeLimit() - mediumLimit() }, rest: usualRest},
		cpp: sync.OnceValues(func() (heap, error) {
			found, err := processOperators()
			if err != nil {
				return nil, err
			}
			return found, nil
		}),
	}
}

// Name returns "host".
func (*Backend) Name() string { return "host" }

// Probe returns nil: every process has a C library. A missing C++ runtime shows
// when CPP is asked for.
func (*Backend) Probe() error { return nil }

// DeviceCount returns zero: the host's number is backends.HostDevice.
func (*Backend) DeviceCount() (int, error) { return 0, nil }

func (b *Backend) heapOf(a backends.Allocator) (heap, error) {
	switch a {
	case backends.Malloc:
		return b.c, nil
	case backends.CPP:
		return b.cpp()
	}
	return nil, fmt.Errorf("the host backend does not serve allocator %s", a)
}

func checkDevice(device int) error {
	if device != backends.HostDevice {
		return fmt.Errorf("the host backend has no device %d: host memory is on device %d", device, backends.HostDevice)
	}
	return nil
}

// Allocate returns C memory that belongs to the caller.
func (b *Backend) Allocate(r backends.Request) (backends.Address, error) {
	if err := checkDevice(r.Device); err != nil {
		return 0, err
	}
	if r.Allocator == backends.Shared {
		return allocateShared(r.Size)
	}
	h, err := b.heapOf(r.Allocator)
	if err != nil {
		return 0, err
	}
	if r.Allocator == backends.Malloc && r.Size <= largestSpare {
		if at := b.spare.take(r.Size); at != 0 {
			if r.Zero {
				clear(bytesAt(at, r.Size))
			}
			return at, nil
		}
		r.Size = roundUp(r.Size)
	}
	if s := b.sparesOf(r.Size); s != nil && r.Allocator == backends.Malloc && !r.Zero { // fresh pages are zero
		if at := s.take(r.Size); at != 0 {
			return at, nil
		}
	}
	at := h.allocate(r.Size, r.Zero)
	if at == 0 && b.drainLarge() {
		at = h.allocate(r.Size, r.Zero)
	}
	if at == 0 {
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size}
	}
	if r.Size >= smallestHuge {
		advise(block{at: at, size: r.Size}, adviceHuge)
	}
	return at, nil
}

// sparesOf returns the list in which blocks of Malloc of a size wait for reuse, or nil for smaller ones.
func (b *Backend) sparesOf(size int) *largeSpares {
	switch {
	case size >= smallestLarge:
		return &b.large
	case size >= smallestMedium:
		return &b.medium
	}
	return nil
}

// drainLarge reports whether any block of these was kept.
func (b *Backend) drainLarge() bool {
	medium := b.medium.drain(b.c.free)
	return b.large.drain(b.c.free) || medium
}

// Free gives memory back to the runtime that it came from.
func (b *Backend) Free(at backends.Region, size int, _ backends.Stream) error {
	if err := checkDevice(at.Device); err != nil {
		return err
	}
	if at.Allocator == backends.Shared {
		freeShared(at.Address)
		return nil
	}
	h, err := b.heapOf(at.Allocator)
	if err != nil {
		return err
	}
	if at.Allocator == backends.Malloc {
		if 0 < size && size <= largestSpare && b.spare.put(size, at.Address) {
			return nil
		}
		if s := b.sparesOf(size); s != nil {
			s.put(block{at: at.Address, size: usable(at.Address, size)}, b.c.free)
			return nil
		}
	}
	h.free(at.Address)
	return nil
}

// Trim returns the blocks that wait for reuse to the C library.
func (b *Backend) Trim() error {
	b.drainLarge()
	b.spare.drain(b.c.free)
	return nil
}

// Copy moves bytes between two places in host memory, which may overlap.
func (*Backend) Copy(dst, src backends.Region, size int, _ backends.Stream) (backends.Progress, error) {
	if err := checkDevice(dst.Device); err != nil {
		return backends.Complete, err
	}
	if err := checkDevice(src.Device); err != nil {
		return backends.Complete, err
	}
	move(bytesAt(dst.Address, size), bytesAt(src.Address, size))
	return backends.Complete, nil
}

// Fill repeats pattern count times from dst on.
func (*Backend) Fill(dst backends.Region, pattern []byte, count int, _ backends.Stream) error {
	if err := checkDevice(dst.Device); err != nil {
		return err
	}
	repeat(bytesAt(dst.Address, len(pattern)*count), pattern)
	return nil
}
