package opencl

import (
	"bytes"
	"math/bits"
	"runtime"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const (
	largestSeed  = 64 << 10 // bytes of a pattern, repeated, that a device is sent
	largestChunk = 4 << 20  // of a copy through the host
)

// Copy enqueues a copy. Between two devices, which have no context in common, the copy is over
// when it returns, unless one pointer serves both.
func (b *Backend) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	on := dst
	if on.Allocator.Backend() != name {
		on = src
	}
	d, err := b.device("Copy", on.Device)
	if err != nil {
		return backends.Complete, err
	}
	q, err := b.queueFor("Copy", d, s)
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
func (b *Backend) copy(d *device, q *queue, dst, src backends.Address, size int, wait uintptr, done *uintptr) error {
	function := b.library.EnqueueSVMCopy
	if d.memory == usmMemory {
		function = d.usm.EnqueueCopy
	}
	return b.enqueue(d, function, q.handle(), wait, uintptr(dst), uintptr(src), uintptr(size), 0, 0,
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
	symbol := symbolOf(&b.library, function)
	if symbol == "" {
		symbol = symbolOf(&d.usm, function)
	}
	return failure(symbol, code, "")
}

// copyThroughHost runs after what is on q, and beside what comes later.
func (b *Backend) copyThroughHost(to *device, dst backends.Region, q *queue, from *device,
	src backends.Address, size int) error {
	if err := b.call(b.library.Finish, q.handle()); err != nil {
		return err
	}
	if to.onHost(dst.Allocator) {
		return b.copy(from, from.aside, dst.Address, src, size, blocking, nil)
	}
	chunk := make([]byte, min(size, largestChunk))
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(chunk))
	defer pin.Unpin()
	here := backends.Address(unsafe.Pointer(unsafe.SliceData(chunk)))
	for done := 0; done < size; done += len(chunk) {
		n := min(len(chunk), size-done)
		if err := b.copy(from, from.aside, here, src+backends.Address(done), n, blocking, nil); err != nil {
			return err
		}
		if err := b.copy(to, to.aside, dst.Address+backends.Address(done), here, n, blocking, nil); err != nil {
			return err
		}
	}
	return nil
}

// Fill enqueues a fill or, of patterns that OpenCL knows none of, copies of what is there already.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	d, err := b.device("Fill", dst.Device)
	if err != nil {
		return err
	}
	q, err := b.queueFor("Fill", d, s)
	if err != nil {
		return err
	}
	return b.fill(d, q, dst.Address, pattern, len(pattern)*count)
}

func (b *Backend) fill(d *device, q *queue, at backends.Address, pattern []byte, size int) error {
	pattern = shortest(pattern)
	if !fills(at, pattern) {
		return b.spread(d, q, at, pattern, size)
	}
	function := b.library.EnqueueSVMFill
	if d.memory == usmMemory {
		function = d.usm.EnqueueFill
	}
	image := bytes.Clone(pattern)
	return b.inOrder(q, func() error {
		return b.enqueue(d, function, q.handle(), uintptr(at), uintptr(unsafe.Pointer(unsafe.SliceData(image))),
			uintptr(len(image)), uintptr(size), 0, 0, 0)
	})
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

// fills reports whether OpenCL fills with a pattern at an address: it knows powers of two, at
// multiples of these. That a driver takes others is no promise.
func fills(at backends.Address, pattern []byte) bool {
	return bits.OnesCount(uint(len(pattern))) == 1 && int(at)%len(pattern) == 0
}

// spread sends the device the pattern some times, and has it double that.
func (b *Backend) spread(d *device, q *queue, at backends.Address, pattern []byte, size int) error {
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

// sources are pieces of Go's memory that late copies read. They are the process's: a backend that
// nobody has any more may have work under way, and the end of a Pinner that still pins something
// ends the program.
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

// sweep lets go of those that have been read.
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
