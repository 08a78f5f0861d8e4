package gobuffer

import (
	"errors"
	"slices"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Marks is a number whose lower half is zero only while no work is recorded for the memory; bit 1 is clear only while
// none of hamr's own is. It is for callers to whom asking Covering each time would cost too much. Work on the Array's
// own stream, the default one, too, is not recorded.
func (m *Memory) Marks() *atomic.Uint64 {
	if m.check() != nil {
		return nil
	}
	return m.uses.Marks()
}

// mark records that w may still touch the memory; followed is work that w runs after.
func (m *Memory) mark(w *order.Work, followed order.Works) error {
	if m.outlives(w) {
		w = w.ByEvent() // its release waits for it, or other streams do
	}
	return m.uses.Replace(followed, w)
}

// outlives reports whether who has the memory may not name w's stream, which ends before it then.
func (m *Memory) outlives(w *order.Work) bool {
	return !w.Foreign && (!m.ends() || w.Stream != m.ordered() || w.Device != m.context())
}

// markOn is mark by who names stream s. Where that is another one than w's it marks an event: who names w's
// stream may go, and the stream with it.
func (m *Memory) markOn(s backends.Stream, w *order.Work, followed order.Works) error {
	if s != w.Stream && !w.Foreign {
		w = w.ByEvent()
	}
	return m.mark(w, followed)
}

// Busy returns the stream of work that was not seen to be over.
func (m *Memory) Busy() (backends.Stream, bool) {
	if m.check() != nil {
		return 0, false
	}
	pending := m.uses.Recorded()
	if len(pending) == 0 {
		return 0, false
	}
	s := pending[0].Stream
	_ = pending.LetGo()
	return s, true
}

// Uses reports whether Forget has anything to do.
func (m *Memory) Uses(s backends.Stream) bool {
	if m.check() != nil {
		return false
	}
	if m.mapping != nil {
		return slices.ContainsFunc(m.counterparts(), func(each *Memory) bool { return each.usesStream(s) })
	}
	return m.usesStream(s)
}

func (m *Memory) usesStream(s backends.Stream) bool {
	return m.streams != nil && m.ordered() == s || m.uses.OnStream(s)
}

// hasStream reports whether work on a stream may touch the memory.
func (m *Memory) hasStream(s backends.Stream) bool {
	// Pinned memory belongs to no device, so the default stream of one says nothing about it.
	return m != nil && m.streams != nil && (m.kind != backends.Pinned || s != 0)
}

// resolvedWork stands for what is on a stream, which it resolves.
func (m *Memory) resolvedWork(s backends.Stream) (*order.Work, error) {
	w := new(order.Work)
	return w, m.setResolved(w, s)
}

// setResolved makes w, which is new, what resolvedWork returns.
func (m *Memory) setResolved(w *order.Work, s backends.Stream) error {
	err := m.setWork(w, s)
	if err == nil && w.Streams != nil {
		w.Stream, err = w.Streams.Resolve(w.Device, s)
	}
	return err
}

// workOn stands for what is on a stream that may be used with the memory: one of its
// device or, as page-locked memory is of none, of any.
func (m *Memory) workOn(s backends.Stream) (*order.Work, error) {
	w := new(order.Work)
	return w, m.setWork(w, s)
}

// setWork makes w, which is new, what workOn returns.
func (m *Memory) setWork(w *order.Work, s backends.Stream) error {
	*w = order.Work{Backend: m.backend, Streams: m.streams, Device: m.context(), Stream: s}
	if m.kind != backends.Pinned || s == 0 || m.streams == nil {
		return nil
	}
	device, err := m.streams.StreamDevice(s)
	w.Device = max(device, 0)
	return err
}

func (m *Memory) remember(w *order.Work) {
	w.Foreign = true
	//mutate:remove a view that is closed leaves nothing behind
	_ = m.mark(w, nil) // in place of what is recorded of the stream: somebody may be waiting for what that stood for
}

// After makes what hamr does with the memory on stream s, and everybody who asks
// Covering, run after what a foreign stream of the memory's device holds now.
func (m *Memory) After(s, foreign backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.streams == nil {
		return nil
	}
	own, err := m.resolvedWork(s)
	if err != nil {
		return err
	}
	if foreign != own.Stream {
		before, err := m.resolvedWork(foreign)
		if err == nil && !before.HoldsAll(own) {
			//mutate:skip a producer's stream is not followed
			err = own.Follow(before)
		}
		if err != nil {
			return err
		}
	}
	own.Foreign = true
	return m.mark(own, nil)
}

// AfterEvent makes everybody who uses the memory, and its release, run after what an event of the
// vendor's stands for, as a cl_event: of the memory's device, and still the caller's. The error
// is errors.ErrUnsupported where the memory's runtime has none that can be adopted.
func (m *Memory) AfterEvent(handle uintptr) error {
	if err := m.check(); err != nil {
		return err
	}
	adopter, able := backends.As[backends.EventAdopter](m.backend)
	if !able || m.streams == nil {
		return errors.ErrUnsupported
	}
	adopted, err := adopter.AdoptEvent(m.context(), handle)
	if err != nil {
		return err
	}
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: m.context(), Stream: m.ordered(), Foreign: true}
	w.Ticket = w.EventOf(adopted)
	// Nobody waits for it when memory that is somebody else's is let go.
	return m.mark(w, nil)
}

// rememberOn records that work on a stream, which somebody gave the memory to, may
// still touch it; where is as in Uses.Pending. It asks no runtime whether that is so.
func (m *Memory) rememberOn(s backends.Stream, where int) {
	if !m.hasStream(s) || m.region.Address == 0 {
		return
	}
	if m.kind == backends.Pinned && !order.Stays(m.backend, s) {
		m.rememberEnding(s, where)
		return
	}
	w, err := m.resolvedWork(s)
	if err != nil {
		// Nobody can tell which stream it is.
		m.every.Store(true)
		return
	}
	m.remember(w)
}
