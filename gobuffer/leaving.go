package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Unasked keeps Forget, ForgetStream and LeaveKept from using a stream that may have ended already, until end is
// called. They wait for the whole device instead of what the stream held.
func (r *Runtime) Unasked(s backends.Stream) (end func()) {
	if r.check() != nil {
		return nil
	}
	r.unasked.Add(s, 1)
	return func() { r.unasked.Add(s, -1) }
}

// leaveOn records what a stream holds now. It is called before nobody names the stream any more.
func (m *Memory) leaveOn(s backends.Stream) error {
	if !m.hasStream(s) {
		return nil
	}
	w, err := m.resolvedWork(s)
	if err != nil {
		return err
	}
	w.Foreign = true
	//mutate:skip a stream that is left is forgotten
	return m.leave(w)
}

// leave replaces what is recorded of w's stream, and all else the stream holds, by an event. The event outlives the
// stream.
func (m *Memory) leave(w *order.Work) error {
	if m.runtime.unasked.Has(w.Stream) {
		return m.uses.RestInstead(w)
	}
	idle, err := w.Idle()
	switch {
	case errors.Is(err, backends.ErrCapturing):
		// The default stream, which never ends, can be asked later.
		return m.mark(w, nil)
	case err != nil:
		return err
	case idle:
		return m.uses.Over(w)
	}
	e, err := w.Record()
	if err != nil {
		return err
	}
	pending := m.uses.Recorded()
	return errors.Join(m.mark(w.With(e), pending.On(w)), pending.LetGo())
}

// Leave makes everybody who uses the memory, and its release, run after what stream s holds now. Other libraries may
// have work there. It is called before nobody names the stream any more and it may end. If it is unknown what the
// stream holds, the release waits for all work of the device. For backends.EveryStream it does so if the memory is
// freed in stream order or handed out again. Memory that is freed at once waits for the device anyway.
func (m *Memory) Leave(s backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.streams == nil || m.region.Address == 0 {
		return nil
	}
	if s == backends.EveryStream {
		//mutate:replace page-locked memory does not wait for streams that nobody names
		//mutate:with m.settled => false
		if m.freedInStreamOrder() || m.settled {
			m.every.Store(true)
		}
		return nil
	}
	err := m.leaveOn(s)
	if err != nil {
		m.every.Store(true)
	}
	return err
}

// LeaveLate is Leave for a stream that may have ended. If that is not known, it does not use the stream: the last
// release waits for the device, and so does earlier use of the memory on another stream.
func (m *Memory) LeaveLate(s backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	if s == backends.EveryStream || order.Stays(m.backend, s) || m.streams == nil || m.region.Address == 0 {
		return m.Leave(s)
	}
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: m.deviceOfUse(), Stream: s, Foreign: true}
	instead := m.uses.RestInstead
	if s == m.ordered() && m.kind != backends.Pinned { // its own stream lasts as long as somebody names it
		instead = func(w *order.Work) error { return m.mark(w, nil) }
	}
	return errors.Join(m.Leave(backends.EveryStream), instead(w))
}

// Forget makes the memory independent of a stream that is about to end. An event replaces what the stream holds, and
// users and the release of the memory wait for the event.
func (m *Memory) Forget(s backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	var failed error
	for _, each := range m.counterparts() {
		failed = errors.Join(failed, each.forget(s))
	}
	return failed
}

// leaveOwn is leave for the stream that the memory was made for.
func (m *Memory) leaveOwn(s backends.Stream) error {
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: m.context(), Stream: s}
	if m.runtime.unasked.Has(s) {
		w.Device = m.deviceOfUse()
	} else if err := m.setWork(w, s); err != nil {
		return err
	}
	w.Foreign = true
	return m.leave(w)
}

func (m *Memory) forget(s backends.Stream) error {
	pending := m.uses.Recorded()
	var failed error
	left := false
	for _, w := range pending {
		if w.Ticket == nil && w.Stream == s {
			//mutate:replace a stream that ends is forgotten by memory that is read or written there
			//mutate:with failed, left = errors.Join(failed, m.leave(w)), true => left = true
			failed, left = errors.Join(failed, m.leave(w)), true
		}
	}
	failed = errors.Join(failed, pending.LetGo())
	if failed != nil || m.streams == nil || m.ordered() != s {
		return failed
	}
	instead, err := m.streams.Resolve(m.context(), 0)
	if err != nil {
		return err
	}
	if !left {
		if err := m.leaveOwn(s); err != nil {
			return err
		}
	}
	m.asked.Store(0)
	m.stream.Store(uintptr(instead))
	m.left.Store(true)
	return nil
}

// deviceOfUse is the device to wait for before the memory is free of work. Page-locked memory may be used on any
// device.
func (m *Memory) deviceOfUse() int {
	if m.kind == backends.Pinned {
		return backends.HostDevice
	}
	return m.context()
}

// coverByDevice makes the last release wait for the device if it would otherwise use a stream that may have ended.
// Callers see to it that the stream which orders the release itself still exists.
func (m *Memory) coverByDevice() {
	if m.streams == nil || m.every.Load() || m.region.Address == 0 || !(m.freedInStreamOrder() || m.settled) {
		return
	}
	byDriver := m.isTakenBack() || m.region.Allocator.Ordered()
	asks := !byDriver && !order.Stays(m.backend, m.ordered())
	if asks || m.uses.AsksEnded(byDriver, m.backend, m.context(), m.ordered()) {
		m.every.Store(true)
	}
}

// dropsLast reports whether the caller drops the last reference and names a stream that may have ended. Then the device
// is waited for instead.
func (m *Memory) dropsLast(s backends.Stream) bool {
	return m.streams != nil && m.ends() && m.refs.Load() == 1 && !order.Stays(m.backend, s)
}

// rememberRest records that work on s, which may have ended, may still touch page-locked memory. It calls no runtime:
// only a living stream can say which device it belongs to.
func (m *Memory) rememberRest(s backends.Stream) {
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: m.deviceOfUse(), Stream: s, Foreign: true}
	_ = m.uses.RestInstead(w) // such tickets hold nothing
}

// whereIs is the device of a stream, plus one, if the stream may end and only the stream itself can say which device it
// belongs to. Otherwise it is 0.
func (m *Memory) whereIs(s backends.Stream) int {
	if m == nil || m.kind != backends.Pinned || m.streams == nil || order.Stays(m.backend, s) {
		return 0
	}
	device, err := m.streams.StreamDevice(s)
	if err != nil {
		return 0
	}
	return device + 1
}

// rememberEnding is remember for page-locked memory and a stream that may have ended.
func (m *Memory) rememberEnding(s backends.Stream, where int) {
	if where == 0 {
		m.rememberRest(s)
		return
	}
	m.remember(&order.Work{Backend: m.backend, Streams: m.streams, Device: where - 1, Stream: s})
}
