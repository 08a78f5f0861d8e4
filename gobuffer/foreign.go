package gobuffer

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Adopt returns memory that somebody else owns, with one reference. released is called once, after the last reference
// is dropped, on the thread that drops it. The memory must stay valid until then. After an error nothing was adopted
// and released is never called.
func (r *Runtime) Adopt(at backends.Region, size int, stream backends.Stream, released func()) (*Memory, error) {
	m, err := r.wrap(at, size, stream)
	if err != nil {
		return nil, err
	}
	m.ending = handedBack(released)
	r.countAdopted(m, at, size)
	return m, nil
}

func (r *Runtime) countAdopted(m *Memory, at backends.Region, size int) {
	if c := r.checked(); c != nil {
		c.comes(m)
	}
	r.counters[at.Allocator].Adopted.Add(1)
	if r.tracing() {
		r.tracef("adopt %s device %d size %d at %#x", at.Allocator, at.Device, size, at.Address)
	}
}

// AdoptInOrder is Adopt of memory whose owner takes it back in the order of a stream, as an allocator does that hands
// it out again. The last Release waits only for work that no stream can run after. released gets the stream that holds
// the last use of the memory: the one given here, unless Forget was told of its end. Release returns the error of
// released. Whoever uses the memory on another stream runs after what this stream holds now.
func (r *Runtime) AdoptInOrder(
	at backends.Region, size int, stream backends.Stream, released func(backends.Stream) error,
) (*Memory, error) {
	m, err := r.wrap(at, size, stream)
	if err != nil {
		return nil, err
	}
	if m.streams != nil && size > 0 {
		w := new(order.Work)
		if err := m.setWork(w, m.ordered()); err != nil {
			return nil, err
		}
		m.uses.Begin(w)
	}
	m.ending = handedBack(nil)
	if released != nil {
		m.ending = takenBack(released)
	}
	r.countAdopted(m, at, size)
	return m, nil
}

// TakeOver returns memory that was allocated by the allocator it names, by this Runtime's backends or by equal ones. It
// is freed here from now on. After an error it still belongs to the caller.
func (r *Runtime) TakeOver(at backends.Region, size int, stream backends.Stream) (*Memory, error) {
	m, err := r.wrap(at, size, stream)
	if err != nil {
		return nil, err
	}
	m.owned, m.ending = true, freedWhole{}
	m.come(size)
	if r.tracing() {
		r.tracef("take over %s device %d size %d at %#x", at.Allocator, at.Device, size, at.Address)
	}
	return m, nil
}

func (r *Runtime) wrap(at backends.Region, size int, stream backends.Stream) (*Memory, error) {
	m := new(Memory)
	if err := r.place(m, at, size, stream); err != nil {
		return nil, err
	}
	if size < 0 || (size > 0 && at.Address == 0) {
		return nil, valueError("pointer", fmt.Sprintf("%#x with %d bytes", at.Address, size),
			"the address of existing memory")
	}
	return m, m.resolveStream()
}

// Disown drops the last reference to adopted memory without telling its owner, to undo an adoption.
func (m *Memory) Disown() {
	if m == nil {
		return
	}
	switch m.ending.(type) {
	case handedBack, takenBack:
		m.ending = handedBack(nil)
	}
	_ = m.Release()
}
