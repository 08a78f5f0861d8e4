package gobuffer

import (
	"errors"
	"sync"

	"hamr/backends"
)

// unasked are the streams that Unasked has named, by how many calls name them now.
type unasked struct {
	mutex sync.Mutex
	calls map[backends.Stream]int
}

// Unasked makes Forget, ForgetStream and LeaveKept ask nothing of a stream that may have ended already, until
// the result is called: what it held is waited for with all that the device does.
func (r *Runtime) Unasked(s backends.Stream) (end func()) {
	if r.check() != nil {
		return nil
	}
	r.unasked.add(s, 1)
	return func() { r.unasked.add(s, -1) }
}

func (u *unasked) add(s backends.Stream, count int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.calls == nil {
		u.calls = map[backends.Stream]int{}
	}
	//mutate:replace the first of two calls asks a stream that the second has named
	//mutate:with u.calls[s] == 0 => count < 0
	if u.calls[s] += count; u.calls[s] == 0 {
		delete(u.calls, s)
	}
}

func (u *unasked) has(s backends.Stream) bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.calls[s] > 0
}

// leave records what p's stream holds now, for the time when nobody names it any more.
func (p piece) leave() error {
	if !p.hasStream() {
		return nil
	}
	w, err := p.work()
	if err != nil {
		return err
	}
	w.foreign = true
	//mutate:skip a stream that is left is forgotten
	return p.memory.leave(w)
}

// leave turns what is recorded of w's stream, and all else that the stream holds, into
// an event, which does not need the stream.
func (m *Memory) leave(w *work) error {
	if m.runtime.unasked.has(w.stream) {
		return m.restInstead(w)
	}
	idle, err := w.idle()
	switch {
	case errors.Is(err, backends.ErrCapturing):
		// The default stream, which never ends, can be asked later.
		return m.mark(w, nil)
	case err != nil:
		return err
	case idle:
		return m.over(w)
	}
	e, err := w.record()
	if err != nil {
		return err
	}
	pending := m.uses.recorded()
	held := *w
	held.ticket = e
	return errors.Join(m.mark(&held, pending.on(w)), pending.letGo())
}

// over forgets what is recorded of w's stream, which is idle.
func (m *Memory) over(w *work) error {
	pending := m.uses.recorded()
	return errors.Join(m.done(pending.on(w)), pending.letGo())
}

// Leave makes everybody who uses the memory, and its release, run after what stream s
// holds now, where other libraries may have work on it: for when nobody names the stream
// any more, and it may end. Where it cannot be told what that is, the release waits for
// all that the device does. For backends.EveryStream it does so where the memory is freed
// in stream order, or handed out again; what is freed at once waits for the device anyway.
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
	err := piece{memory: m, stream: s}.leave()
	if err != nil {
		m.every.Store(true)
	}
	return err
}

// LeaveLate is Leave for a stream that may have ended: where that is not known, the stream is asked for nothing.
// The last release waits for the device then, and so does whoever uses the memory on another stream before it.
func (m *Memory) LeaveLate(s backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	if s == backends.EveryStream || stays(m.backend, s) || m.streams == nil || m.region.Address == 0 {
		return m.Leave(s)
	}
	w := &work{backend: m.backend, streams: m.streams, device: m.deviceOfUse(), stream: s, foreign: true}
	instead := m.restInstead
	if s == m.ordered() && m.kind != backends.Pinned { // its own stream lasts as long as somebody names it
		instead = func(w *work) error { return m.mark(w, nil) }
	}
	return errors.Join(m.Leave(backends.EveryStream), instead(w))
}

// untilRest is w, over when the device has done all its work.
func (w *work) untilRest() *work {
	held := *w
	held.ticket = &atRest{backend: w.backend, device: w.device}
	return &held
}

// Forget makes the memory do without a stream that is about to end: what it holds
// becomes an event, which whoever uses or releases the memory waits for instead.
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
	w := &work{backend: m.backend, streams: m.streams, device: m.context(), stream: s}
	if m.runtime.unasked.has(s) {
		w.device = m.deviceOfUse()
	} else if err := m.setWork(w, s); err != nil {
		return err
	}
	w.foreign = true
	return m.leave(w)
}

func (m *Memory) forget(s backends.Stream) error {
	pending := m.uses.recorded()
	var failed error
	left := false
	for _, w := range pending {
		if w.ticket == nil && w.stream == s {
			//mutate:replace a stream that ends is forgotten by memory that is read or written there
			//mutate:with failed, left = errors.Join(failed, m.leave(w)), true => left = true
			failed, left = errors.Join(failed, m.leave(w)), true
		}
	}
	failed = errors.Join(failed, pending.letGo())
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
	return nil
}

// leaveStream records what a's stream holds where others keep the memory that a gives up for next's: they
// need not name the stream, which may end from now on.
func (a *Array) leaveStream(next *Array) (left bool) {
	m := a.memory
	if m == nil || m == next.memory || m.refs.Load() == 1 || stays(m.backend, a.options.Stream) {
		return false
	}
	_ = m.Leave(a.options.Stream) // what cannot be recorded, the release waits for
	return true
}

// deviceOfUse is the device whose work on the memory a wait is for: page-locked memory may be used on any.
func (m *Memory) deviceOfUse() int {
	if m.kind == backends.Pinned {
		return backends.HostDevice
	}
	return m.context()
}
