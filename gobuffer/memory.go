package gobuffer

import (
	"fmt"
	"math"
	"sync/atomic"

	"hamr/backends"
)

// Memory is one allocation, or foreign memory that was adopted, with the number
// of references to it. The last Release frees it or tells its owner. All
// methods are safe for concurrent use.
type Memory struct {
	runtime *Runtime
	backend backends.Backend
	region  backends.Region
	size    int
	stream  backends.Stream // the stream that its release is ordered on
	foreign func()          // called instead of freeing; nil for our own memory
	owned   bool
	refs    atomic.Int64
	pending atomic.Pointer[work] // enqueued and not yet waited for; nil = idle
}

// Allocate returns new memory of size bytes with one reference. A size of zero
// takes no memory at all.
func (r *Runtime) Allocate(a backends.Allocator, device, size int, stream backends.Stream, zero bool) (*Memory, error) {
	b, err := r.Backend(a)
	if err != nil {
		return nil, err
	}
	device, err = r.checkDevice(b, a, device)
	if err != nil {
		return nil, err
	}
	if size < 0 || int64(size) > math.MaxInt64/2 {
		return nil, valueError("size", size, "0 … 2**62 bytes")
	}
	m := &Memory{runtime: r, backend: b, region: backends.Region{Allocator: a, Device: device}, size: size, stream: stream, owned: true}
	if size > 0 {
		m.region.Address, err = b.Allocate(backends.Request{Allocator: a, Device: device, Size: size, Stream: stream, Zero: zero})
		if err != nil {
			return nil, err
		}
	}
	m.refs.Store(1)
	r.counters[a].add(size)
	if r.tracing() {
		r.tracef("allocate %s device %d size %d at %#x", a, device, size, m.region.Address)
	}
	return m, nil
}

// Adopt returns memory that somebody else owns, with one reference. released is
// called once, after the last reference is gone, from whatever thread dropped
// it; the memory must stay valid until then.
func (r *Runtime) Adopt(at backends.Region, size int, stream backends.Stream, released func()) (*Memory, error) {
	m, err := r.wrap(at, size, stream)
	if err != nil {
		return nil, err
	}
	m.foreign = released
	r.counters[at.Allocator].adopted.Add(1)
	if r.tracing() {
		r.tracef("adopt %s device %d size %d at %#x", at.Allocator, at.Device, size, at.Address)
	}
	return m, nil
}

// TakeOver returns memory that was obtained from the allocator it names, by
// this Runtime's backends or by equal ones, and that is freed here from now on.
func (r *Runtime) TakeOver(at backends.Region, size int, stream backends.Stream) (*Memory, error) {
	m, err := r.wrap(at, size, stream)
	if err != nil {
		return nil, err
	}
	m.owned = true
	r.counters[at.Allocator].add(size)
	if r.tracing() {
		r.tracef("take over %s device %d size %d at %#x", at.Allocator, at.Device, size, at.Address)
	}
	return m, nil
}

func (r *Runtime) wrap(at backends.Region, size int, stream backends.Stream) (*Memory, error) {
	b, err := r.Backend(at.Allocator)
	if err != nil {
		return nil, err
	}
	if size < 0 || (size > 0 && at.Address == 0) {
		return nil, valueError("pointer", fmt.Sprintf("%#x with %d bytes", at.Address, size), "the address of existing memory")
	}
	at.Device, err = r.checkDevice(b, at.Allocator, at.Device)
	if err != nil {
		return nil, err
	}
	m := &Memory{runtime: r, backend: b, region: at, size: size, stream: stream}
	m.refs.Store(1)
	return m, nil
}

// Region says where the memory starts and whose it is.
func (m *Memory) Region() backends.Region { return m.region }

// Size returns the number of bytes.
func (m *Memory) Size() int { return m.size }

// Owned reports whether the last Release frees the memory.
func (m *Memory) Owned() bool { return m.owned }

// Runtime returns the runtime that counts the memory.
func (m *Memory) Runtime() *Runtime { return m.runtime }

// Retain adds a reference and returns m.
func (m *Memory) Retain() *Memory {
	if m.refs.Add(1) <= 1 {
		panic("gobuffer: Retain of released memory")
	}
	return m
}

// Release drops a reference. With the last one the memory is freed, in the
// order of its stream, or its owner is told. The error is the backend's; the
// memory counts as released all the same.
func (m *Memory) Release() error {
	left := m.refs.Add(-1)
	if left > 0 {
		return nil
	}
	if left < 0 {
		panic("gobuffer: Release of released memory")
	}
	r, a := m.runtime, m.region.Allocator
	if !m.owned {
		// The owner may reuse the memory at once, so our work on it must be over.
		err := m.settle()
		r.counters[a].adopted.Add(-1)
		if m.foreign != nil {
			m.foreign()
		}
		return err
	}
	r.counters[a].remove(m.size)
	if r.tracing() {
		r.tracef("free %s device %d size %d at %#x", a, m.region.Device, m.size, m.region.Address)
	}
	if m.size == 0 {
		return nil
	}
	if w := m.pending.Load(); w != nil && !(w.backend == m.backend && w.stream == m.stream) {
		if err := m.settle(); err != nil {
			return err
		}
	}
	return m.backend.Free(m.region, m.size, m.stream)
}

// work is something enqueued on a stream that may touch a Memory.
type work struct {
	backend backends.Backend
	device  int
	stream  backends.Stream
}

func (w *work) wait() error {
	if s, ok := w.backend.(backends.Streams); ok {
		return s.Synchronize(w.device, w.stream)
	}
	return nil
}

// mark records that w may still touch the memory. Work on another stream that
// was recorded before is waited for first, since one record cannot cover both.
func (m *Memory) mark(w *work) error {
	old := m.pending.Swap(w)
	if old == nil || *old == *w {
		return nil
	}
	return old.wait()
}

// settle waits until no recorded work touches the memory any more.
func (m *Memory) settle() error {
	w := m.pending.Load()
	if w == nil {
		return nil
	}
	if err := w.wait(); err != nil {
		return err
	}
	m.pending.CompareAndSwap(w, nil)
	return nil
}

// orderAfterPending makes work to be enqueued on w's stream run after what is
// already pending on the memory.
func (m *Memory) orderAfterPending(w *work) error {
	p := m.pending.Load()
	if p == nil || *p == *w {
		return nil
	}
	return m.settle()
}

// Busy returns the stream that covers work still pending on the memory.
func (m *Memory) Busy() (backends.Stream, bool) {
	if w := m.pending.Load(); w != nil {
		return w.stream, true
	}
	return 0, false
}
