package opencl

import (
	"bytes"
	"runtime"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/queues"
)

const largestSeed = 64 << 10 // bytes of a pattern, repeated, that a device is sent

// Copy enqueues a copy. Between two devices, which have no context in common, the copy is over
// when it returns, unless one pointer serves both.
func (b *Backend) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	on := dst
	if on.Allocator.Backend() != name {
		on = src
	}
	q, d, err := b.queueOn("Copy", on.Device, s)
	if err != nil {
		return backends.Complete, err
	}
	if src.Allocator.Backend() == name && src.Device != d.number {
		from, err := b.device("Copy", src.Device)
		if err != nil {
			return backends.Complete, err
		}
		if !from.onHost(src.Allocator) {
			return backends.Complete, b.copyThroughHost(d, dst, q, from, src.Address, size)
		}
	}
	err = b.inOrder(q, func() error { return b.copy(d, q, dst.Address, src.Address, size, 0, nil) })
	return backends.Reading | backends.Writing, err
}

// copy enqueues a copy on a queue of d, and has it done at return if wait says so.
func (b *Backend) copy(d *device, q *queues.Queue, dst, src backends.Address, size int, wait uintptr,
	done *uintptr) error {
	function := b.library.EnqueueSVMCopy
	if d.memory == usmMemory {
		function = d.usm.EnqueueCopy
	}
	return b.enqueue(d, function, q.Handle(), wait, uintptr(dst), uintptr(src), uintptr(size), 0, 0,
		uintptr(unsafe.Pointer(done)))
}

// enqueue is call for functions of the extension, too.
//
//go:uintptrescapes
func (b *Backend) enqueue(d *device, function uintptr, arguments ...uintptr) error {
	code := int32(dl.Call(function, arguments...))
	if code == success {
		return nil
	}
	symbol := dl.SymbolOf(&b.library, function)
	if symbol == "" {
		symbol = dl.SymbolOf(&d.usm, function)
	}
	return failure(symbol, code, "")
}

// copyThroughHost runs after the work on q, and at the same time as its later work.
func (b *Backend) copyThroughHost(to *device, dst backends.Region, q *queues.Queue, from *device,
	src backends.Address, size int) error {
	if err := b.queues.Finish(q); err != nil {
		return err
	}
	if to.onHost(dst.Allocator) {
		return b.copy(from, from.aside, dst.Address, src, size, blocking, nil)
	}
	return queues.ThroughHost(size, func(host backends.Address, offset, n int) error {
		return b.copy(from, from.aside, host, src+backends.Address(offset), n, blocking, nil)
	}, func(host backends.Address, offset, n int) error {
		return b.copy(to, to.aside, dst.Address+backends.Address(offset), host, n, blocking, nil)
	})
}

// Fill enqueues a fill. For patterns that OpenCL does not fill with, it enqueues copies that double what is there.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	q, d, err := b.queueOn("Fill", dst.Device, s)
	if err != nil {
		return err
	}
	return b.fill(d, q, dst.Address, pattern, len(pattern)*count)
}

func (b *Backend) fill(d *device, q *queues.Queue, at backends.Address, pattern []byte, size int) error {
	pattern = queues.Shortest(pattern)
	if !queues.Fills(at, pattern) {
		return b.spread(d, q, at, pattern, size)
	}
	function := b.library.EnqueueSVMFill
	if d.memory == usmMemory {
		function = d.usm.EnqueueFill
	}
	image := bytes.Clone(pattern)
	return b.inOrder(q, func() error {
		return b.enqueue(d, function, q.Handle(), uintptr(at), uintptr(unsafe.Pointer(unsafe.SliceData(image))),
			uintptr(len(image)), uintptr(size), 0, 0, 0)
	})
}

// spread sends the device some repeats of the pattern, which the device then doubles.
func (b *Backend) spread(d *device, q *queues.Queue, at backends.Address, pattern []byte, size int) error {
	sources.sweep()
	seed := bytes.Repeat(pattern, min(size, max(largestSeed, len(pattern)))/len(pattern))
	pin := new(runtime.Pinner)
	pin.Pin(unsafe.SliceData(seed))
	done := new(uintptr)
	err := b.inOrder(q, func() error {
		return b.copy(d, q, at, backends.Address(unsafe.Pointer(unsafe.SliceData(seed))), len(seed), 0, done)
	})
	if *done == 0 {
		pin.Unpin()
	} else {
		sources.keep(b, *done, pin)
	}
	for filled := len(seed); err == nil && filled < size; filled *= 2 {
		err = b.inOrder(q, func() error {
			return b.copy(d, q, at+backends.Address(filled), at, min(filled, size-filled), 0, nil)
		})
	}
	return err
}

// sources are pieces of Go's memory that late copies read. They belong to the process: a backend may still have work
// under way after its last use, and a Pinner that is collected while it pins something ends the program.
var sources pinned

type pinned struct {
	mutex sync.Mutex
	list  []source
}

type source struct {
	b    *Backend
	read uintptr // the copy's event
	pin  *runtime.Pinner
}

func (s *pinned) keep(b *Backend, read uintptr, pin *runtime.Pinner) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.list = append(s.list, source{b, read, pin})
}

// sweep unpins those that have been read.
func (s *pinned) sweep() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left := s.list[:0]
	for _, each := range s.list {
		if status, err := each.b.status(each.read); err == nil && status > complete {
			left = append(left, each)
			continue
		}
		each.pin.Unpin()
		each.b.release(each.read)
	}
	clear(s.list[len(left):])
	s.list = left
}
