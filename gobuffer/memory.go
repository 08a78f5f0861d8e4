package gobuffer

import (
	"fmt"
	"math"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Memory is one allocation, or foreign memory that was adopted, with the number
// of references to it. The last Release frees it or tells its owner. All
// methods are safe for concurrent use. On nil and the zero value those that return an error
// return one that is ErrZero, and the others their zero values; Retain and Release of memory
// that was released before panic, since its bytes may be somebody else's.
type Memory struct {
	runtime    *Runtime
	*served    // what the Runtime knows of the allocator
	region     backends.Region
	size       atomic.Int64    // bytes: they may become more, see extend
	asked      atomic.Uintptr  // the stream as the caller named it
	stream     atomic.Uintptr  // the same, resolved: its release is ordered on it
	turns      atomic.Uint32   // how often an Array has turned from a stream: see Handle.remember
	place      uint32          // in the list of its part of the counter
	foreign    func()          // called instead of freeing; nil for our own memory
	shared     backends.Sharer // whose mapping it is; else nil
	descriptor *Descriptor     // of the memory, which ends with it; else nil
	lease      int             // a descriptor by which another process keeps the memory, plus one, or 0
	unmap      func() error    // ends what is at the addresses, instead of freeing; else nil
	taker      taker           // likewise, of memory that goes back in the order of its stream
	owned      bool
	taken      bool        // owned, but not allocated by us
	keeps      bool        // temporaries of its elements were kept; for who drops the last reference
	every      atomic.Bool // its release waits for all streams of the device
	retired    bool        // it counts as freed
	part       uint8       // of the counter
	library    Library
	booked     uint32 // books.epoch in which its bytes were booked; guarded by books.mutex
	refs       atomic.Int64
	uses       order.Uses // enqueued and not yet waited for
	first      pattern    // what it was filled with; here to save an allocation
	watched    *uint64    // what tells whether it was written to, of temporaries while tracing
	mapping    *mapping   // of memory that the host maps, and of the host's view of it; else nil
	life       *lives     // while there is a Checker; else nil
}

// Allocate returns new memory of size bytes with one reference. A size of zero
// takes no memory at all. The stream must exist until the memory is released.
func (r *Runtime) Allocate(a backends.Allocator, device, size int, stream backends.Stream, zero bool) (*Memory, error) {
	m := r.newMemory(a)
	if err := r.allocate(m, a, device, size, stream, zero); err != nil {
		return nil, err
	}
	return m, nil
}

// newMemory is room for memory of an allocator and for the first work on it, if there will be
// one: one object for Go's collector.
func (r *Runtime) newMemory(a backends.Allocator) *Memory {
	if r == nil || a < 0 || int(a) >= allocatorSlots || !r.byAllocator[a].inOrder {
		return new(Memory)
	}
	made := new(struct {
		memory Memory
		begun  order.Work
	})
	made.memory.uses.SetRoom(&made.begun)
	return &made.memory
}

// allocate is Allocate into m, which is new and perhaps part of something larger.
func (r *Runtime) allocate(m *Memory, a backends.Allocator, device, size int, stream backends.Stream, zero bool) error {
	if size < 0 || int64(size) > math.MaxInt64/2 {
		return valueError("size", size, "0 … 2**62 bytes")
	}
	if err := r.place(m, backends.Region{Allocator: a, Device: device}, size, stream); err != nil {
		return err
	}
	m.owned = true
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
		if m.settled && r.aside.some.Load() != 0 {
			_ = r.collect(asidePolled) // what failed, the device reports again
		}
		before, helped := r.grants.ended.Load(), r.callbacks.helped.Load()
		if m.backend == r.byAllocator[grantedAs].backend {
			r.dropGranted()
		}
		request := backends.Request{Allocator: a, Device: m.region.Device, Size: size, Stream: m.ordered(), Zero: zero}
		at, err := m.take(&request)
		if outOfMemory(err) && r.grants.waitSince(before) {
			at, err = m.take(&request)
		}
		if err != nil && r.madeRoom(m.backend, err) {
			at, err = m.take(&request)
		}
		if err != nil {
			err = r.relieve(err, helped, func() (failed error) {
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

// place makes m size bytes at a region whose allocator and device are checked,
// with one reference.
func (r *Runtime) place(m *Memory, at backends.Region, size int, stream backends.Stream) (err error) {
	b, err := r.Backend(at.Allocator)
	if err != nil {
		return err
	}
	if at.Device, err = r.checkDevice(b, at.Allocator, at.Device); err != nil {
		return err
	}
	m.runtime, m.served, m.region = r, &r.byAllocator[at.Allocator], at
	m.size.Store(int64(size))
	if m.maps {
		m.mapping = newMapping(m)
	}
	m.asked.Store(uintptr(stream))
	m.stream.Store(uintptr(stream))
	m.refs.Store(1)
	return nil
}

// resolveStream keeps the release from being ordered on the default stream of
// whatever thread happens to drop the last reference.
func (m *Memory) resolveStream() error {
	if m.streams == nil {
		return nil
	}
	s, err := m.resolve(m.ordered())
	m.stream.Store(uintptr(s))
	return err
}

// resolve turns a stream that may be used with the memory into one that means the same
// from every thread.
func (m *Memory) resolve(s backends.Stream) (backends.Stream, error) {
	return order.Resolve(m.streams, m.kind, m.context(), s)
}

// ordered is the stream that the memory's release is ordered on.
func (m *Memory) ordered() backends.Stream { return backends.Stream(m.stream.Load()) }

// resolved is a stream that an Array may keep: the stream given, unless that
// means something else on every thread.
func (m *Memory) resolved(s backends.Stream) (backends.Stream, error) {
	switch {
	case s == 0 || m.streams == nil:
		return s, nil
	case uintptr(s) == m.asked.Load() && m.region.Address != 0:
		return m.ordered(), nil
	}
	return m.resolve(s)
}

// context is the device whose streams serve the memory: page-locked memory
// belongs to none.
func (m *Memory) context() int { return max(m.region.Device, 0) }

// check refuses what was not allocated, adopted or taken over.
func (m *Memory) check() error {
	if m == nil || m.runtime == nil {
		return errNoMemory
	}
	return nil
}

// Region says where the memory starts and whose it is: of nobody's, allocator
// backends.None on backends.HostDevice.
func (m *Memory) Region() backends.Region {
	if m.check() != nil {
		return backends.Region{Allocator: backends.None, Device: backends.HostDevice}
	}
	return m.region
}

// Size returns the number of bytes.
func (m *Memory) Size() int {
	if m == nil {
		return 0
	}
	return int(m.size.Load())
}

// Owned reports whether the last Release frees the memory.
func (m *Memory) Owned() bool { return m != nil && m.owned }

// ends reports whether what is at the addresses goes with the last Release: nothing may use them then.
func (m *Memory) ends() bool { return m.owned || m.unmap != nil }

// Asynchronous reports whether work may be pending on the memory.
func (m *Memory) Asynchronous() bool { return m.check() == nil && m.streams != nil }

// Runtime returns the runtime that counts the memory.
func (m *Memory) Runtime() *Runtime {
	if m == nil {
		return nil
	}
	return m.runtime
}

// Retain adds a reference and returns m.
func (m *Memory) Retain() *Memory {
	if m.check() != nil {
		return m
	}
	if m.refs.Add(1) <= 1 {
		panic("gobuffer: Retain of released memory")
	}
	return m
}

// String is for messages.
func (m *Memory) String() string {
	switch {
	case m == nil:
		return "<nil>"
	case m.check() != nil:
		return "memory that was not allocated"
	}
	return fmt.Sprintf("memory of %d bytes (allocator %s, device %d)", m.Size(), m.region.Allocator, m.region.Device)
}

// taker takes memory back when the work is over that a stream holds now.
type taker func(backends.Stream) error
