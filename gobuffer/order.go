package gobuffer

import (
	"errors"

	"hamr/backends"
)

// followPiece makes w's stream run after what is pending on p's memory and after
// p's own stream, where a foreign library may have work on it that we know
// nothing of. It returns what was pending, for mark; the caller lets it go.
func (w *work) followPiece(p piece) (pending works, err error) {
	pending = p.pending()
	for _, before := range pending {
		//mutate:skip a movement does not follow what is pending on its operands
		if err := w.follow(before); err != nil {
			return nil, errors.Join(err, pending.letGo())
		}
	}
	if !p.hasStream() {
		return pending, nil
	}
	own, err := p.work()
	if err == nil && !pending.cover(own) {
		//mutate:skip a movement does not follow its operands' own streams
		err = w.follow(own)
	}
	if err != nil {
		return nil, errors.Join(err, pending.letGo())
	}
	return pending, nil
}

// hasStream reports whether work on p's stream may touch p.
func (p piece) hasStream() bool {
	if p.memory == nil || p.memory.streams == nil {
		return false
	}
	// Pinned memory belongs to no device, so the default stream of one says
	// nothing about it.
	return p.memory.kind != backends.Pinned || p.stream != 0
}

// work stands for what is on p's stream.
func (p piece) work() (*work, error) {
	w := new(work)
	return w, p.setWork(w)
}

// setWork makes w, which is new, what work returns.
func (p piece) setWork(w *work) error {
	err := p.memory.setWork(w, p.stream)
	if err == nil && w.streams != nil {
		w.stream, err = w.streams.Resolve(w.device, p.stream)
	}
	return err
}

// workOn stands for what is on a stream that may be used with the memory: one of its
// device or, as page-locked memory is of none, of any.
func (m *Memory) workOn(s backends.Stream) (*work, error) {
	w := new(work)
	return w, m.setWork(w, s)
}

// setWork makes w, which is new, what workOn returns.
func (m *Memory) setWork(w *work, s backends.Stream) error {
	*w = work{backend: m.backend, streams: m.streams, device: m.context(), stream: s}
	if m.kind != backends.Pinned || s == 0 || m.streams == nil {
		return nil
	}
	device, err := m.streams.StreamDevice(s)
	w.device = max(device, 0)
	return err
}

// settle waits for what may touch p before the host does: work of ours, and foreign
// work on p's stream.
func (p piece) settle() error {
	if p.memory == nil {
		return nil
	}
	pending := p.pending()
	if p.stop != nil {
		for _, w := range pending {
			if err := w.waitUntil(p.stop); errors.Is(err, backends.ErrStopped) {
				return errors.Join(err, pending.letGo())
			}
		}
	}
	//mutate:replace the host does not wait for what is pending
	//mutate:with p.memory.settleThose(pending, (*work).wait) => nil
	err := errors.Join(p.memory.settleThose(pending, (*work).wait), pending.letGo())
	if err != nil || !p.hasStream() {
		return err
	}
	own, err := p.work()
	if err != nil || pending.cover(own) {
		return err
	}
	if err := own.waitUntil(p.stop); err != nil {
		return err
	}
	//mutate:skip the host does not wait for other libraries' work on a buffer's stream
	return own.wait()
}

// on is those of the works that stand for all that w's stream holds.
func (list works) on(w *work) (found works) {
	for _, v := range list {
		if v.holdsAll(w) {
			found = append(found, v)
		}
	}
	return found
}

// remember records that work on p's stream, which somebody gave the memory to, may
// still touch it. It asks no runtime whether that is so.
func (p piece) remember() {
	m := p.memory
	if !p.hasStream() || m.region.Address == 0 {
		return
	}
	if m.kind == backends.Pinned && !stays(m.backend, p.stream) {
		m.rememberEnding(p.stream, p.where)
		return
	}
	w, err := p.work()
	if err != nil {
		// Nobody can tell which stream it is.
		m.every.Store(true)
		return
	}
	m.remember(w)
}

func (m *Memory) remember(w *work) {
	w.foreign = true
	//mutate:remove a view that is closed leaves nothing behind
	_ = m.mark(w, nil) // in place of what is recorded of the stream: somebody may be waiting for what that stood for
}

// Covering returns a stream whose synchronisation covers all work on the
// elements that is not over: movements of hamr's, and whatever the Array's stream
// holds, the default one if it was given none. busy is false if there is none.
func (a *Array) Covering() (s backends.Stream, busy bool, err error) {
	w, err := a.covering()
	if err != nil || w == nil {
		return 0, false, err
	}
	return w.stream, true, nil
}

// covering is nil if no work on the elements is pending.
func (a *Array) covering() (all *work, err error) {
	if err := a.check(); err != nil || a.memory == nil || a.memory.streams == nil {
		return nil, err
	}
	// No stream covers what other runtimes do with the host's view.
	if err := a.memory.settleView(); err != nil {
		return nil, err
	}
	p := a.all()
	pending, err := p.poll()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pending.letGo()) }()
	if len(pending) == 0 && !p.hasStream() {
		return nil, nil
	}
	own, err := p.work()
	if err != nil {
		return nil, err
	}
	if len(pending) == 1 && pending.cover(own) {
		return own, nil
	}
	if len(pending) == 0 || a.options.Stream == 0 {
		idle := !p.hasStream()
		if !idle && !pending.cover(own) {
			//mutate:replace the default stream is not asked for other libraries' work
			//mutate:with idle, err = own.idle() => idle = true
			if idle, err = own.idle(); errors.Is(err, backends.ErrCapturing) {
				// Nothing can be ordered with what the default stream holds now.
				idle, err = true, nil
			}
			if err != nil {
				return nil, err
			}
		}
		if len(pending) == 0 {
			if idle {
				return nil, nil
			}
			return own, nil
		}
		// Another device's stream means nothing to users of this one's memory, or, as
		// the default stream does, something else.
		if one := pending[0]; idle && len(pending) == 1 && one.ticket == nil && one.device == own.device && one.backend == own.backend {
			return one, nil
		}
	}
	own.foreign = true
	for _, before := range pending {
		//mutate:skip consumers are told of a stream that does not cover what is pending
		if err := own.follow(before); err != nil {
			return nil, err
		}
	}
	// Whoever asks again, as waiting does, enqueues nothing more.
	return own, a.memory.mark(own, pending)
}

// Before makes what is enqueued on a stream of the memory's device from now on run
// after all work on the elements that is not over, without blocking. A per-thread
// stream is the calling thread's.
func (a *Array) Before(s backends.Stream) error {
	if err := a.check(); err != nil {
		return err
	}
	if err := a.memory.notMapped(); err != nil {
		return err
	}
	before, err := a.covering()
	if err != nil || before == nil {
		return err
	}
	// Not what s is resolved to: for a per-thread stream that is another one, which
	// runs after it.
	w, err := a.memory.workOn(s)
	if err != nil {
		return err
	}
	same, err := before.isOn(w)
	if err != nil || same {
		return err
	}
	//mutate:skip a consumer's stream does not follow what is pending
	//mutate:insert a stand-in waits in place of a consumer's per-thread stream
	//mutate:with w.stream, _ = w.streams.Resolve(w.device, s)
	return w.follow(before)
}

// isOn reports whether v's stream, which need not be resolved, is a name of w's. A stream
// that stands in for a per-thread one is not the same.
func (w *work) isOn(v *work) (bool, error) {
	if w.stream == v.stream || w.device != v.device {
		return w.holdsAll(v), nil
	}
	own, err := w.streams.Resolve(w.device, 0)
	if err != nil || own != w.stream {
		return false, err
	}
	named, err := w.streams.Resolve(w.device, v.stream)
	return named == own, err
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
	own, err := piece{memory: m, stream: s}.work()
	if err != nil {
		return err
	}
	if foreign != own.stream {
		before, err := piece{memory: m, stream: foreign}.work()
		if err == nil && !before.holdsAll(own) {
			//mutate:skip a producer's stream is not followed
			err = own.follow(before)
		}
		if err != nil {
			return err
		}
	}
	own.foreign = true
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
	e := &event{backend: m.backend, streams: m.streams, device: m.context(), handle: adopted}
	e.refs.Store(1)
	// Nobody waits for it when memory that is somebody else's is let go.
	return m.mark(&work{backend: m.backend, streams: m.streams, device: e.device, stream: m.ordered(), ticket: e, foreign: true}, nil)
}
