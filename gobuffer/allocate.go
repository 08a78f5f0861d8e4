package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/order"
	"math"
)

// Allocate returns new memory of size bytes with one reference. A size of zero
// takes no memory at all. The stream must exist until the memory is released.
func (r *Runtime) Allocate(a backends.Allocator, device, size int, stream backends.Stream, zero bool) (*Memory, error) {
	m := r.newMemory(a)
	if err := r.allocate(m, a, device, size, stream, zero); err != nil {
		return nil, err
	}
	return m, nil
}

// allocate is Allocate into m, which is new and perhaps part of something larger.
func (r *Runtime) allocate(m *Memory, a backends.Allocator, device, size int, stream backends.Stream, zero bool) error {
	if size < 0 || int64(size) > math.MaxInt64/2 {
		return valueError("size", size, "0 … 2**62 bytes")
	}
	if err := r.place(m, backends.Region{Allocator: a, Device: device}, size, stream); err != nil {
		return err
	}
	m.owned, m.ending = true, freed{}
	if size > 0 {
		if err := m.resolveStream(); err != nil {
			return err
		}
		var w *order.Work
		if m.streams != nil && (zero || m.freedInStreamOrder()) {
			// Zeroing may be late, and memory from a stream-ordered pool is there
			// for other streams only once its own stream has come to it.
			if w = m.uses.Room(); w == nil {
				w = new(order.Work)
			}
			if err := m.setWork(w, m.ordered()); err != nil {
				return err
			}
		}
		if m.settled && r.aside.Some() {
			_ = r.collect(asidePolled) // what failed, the device reports again
		}
		before := r.givenBack()
		if m.backend == r.byAllocator[grantedAs].backend {
			r.grants.Drop()
		}
		request := backends.Request{Allocator: a, Device: m.region.Device, Size: size, Stream: m.ordered(), Zero: zero,
			Tag: m.tag}
		at, err := m.take(&request)
		if err != nil {
			err = r.takeAgain(before, m.backend, err, func() (failed error) {
				at, failed = m.take(&request)
				return failed
			})
		}
		if err != nil {
			return err
		}
		m.region.Address = at
		if w != nil {
			//mutate:remove memory of a pool is used before its stream came to it
			m.uses.Begin(w)
		}
	}
	m.come(size)
	if r.tracing() {
		r.tracef("allocate %s device %d size %d at %#x", a, m.region.Device, size, m.region.Address)
	}
	return nil
}

// take is the backend's Allocate, within the limits of the library that the memory is for.
func (m *Memory) take(request *backends.Request) (backends.Address, error) {
	books := &m.runtime.books
	if !books.limited.Load() {
		return m.backend.Allocate(*request)
	}
	if err := books.reserve(m, request.Size); err != nil {
		return 0, err
	}
	at, err := m.backend.Allocate(*request)
	if err != nil {
		books.unreserve(m, request.Size)
	}
	return at, err
}

// AllocateFor is Allocate of memory that a library is given, not initialised.
func (r *Runtime) AllocateFor(
	l Library, a backends.Allocator, device, size int, stream backends.Stream,
) (*Memory, error) {
	if l >= libraryCount {
		return nil, valueError("library", uint8(l), "one of the constants")
	}
	m := r.newMemory(a)
	m.library = l
	if err := r.allocate(m, a, device, size, stream, false); err != nil {
		return nil, err
	}
	return m, nil
}
