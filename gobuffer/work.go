package gobuffer

import (
	"sync/atomic"

	"hamr/backends"
)

// work is what was enqueued on a stream so far and may touch a Memory. The
// stream is a resolved one: it means the same from every thread.
type work struct {
	backend backends.Backend
	device  int
	stream  backends.Stream
	foreign bool // another library's: who releases the memory knows of it
}

func (w *work) sameStream(v *work) bool {
	return w.stream == v.stream && w.device == v.device && w.backend == v.backend
}

func (w *work) wait() error {
	if s, ok := w.backend.(backends.Streams); ok {
		return s.Synchronize(w.device, w.stream)
	}
	return nil
}

// follow makes what is enqueued on w's stream from now on run after the work
// before. It blocks only where two runtimes know nothing of each other.
func (w *work) follow(before *work) error {
	if w.sameStream(before) {
		return nil
	}
	s, ok := w.backend.(backends.Streams)
	if !ok || w.backend != before.backend {
		return before.wait()
	}
	e, err := s.NewEvent(before.device)
	if err != nil {
		return err
	}
	if err = s.Record(before.device, e, before.stream); err == nil {
		err = s.Wait(w.device, w.stream, e)
	}
	if destroyed := s.DestroyEvent(before.device, e); err == nil {
		err = destroyed
	}
	return err
}

// followPiece makes w's stream run after what is pending on p's memory and after
// p's own stream, where a foreign library may have work on it that we know
// nothing of. It returns what was pending, for mark.
func (w *work) followPiece(p piece) (pending *work, err error) {
	if pending = p.memory.pending.Load(); pending != nil {
		if err := w.follow(pending); err != nil {
			return nil, err
		}
	}
	if !p.hasStream() {
		return pending, nil
	}
	own, err := p.work()
	if err != nil {
		return nil, err
	}
	if pending != nil && own.sameStream(pending) {
		return pending, nil
	}
	return pending, w.follow(own)
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
	m := p.memory
	w := m.workOn(p.stream)
	if m.streams == nil {
		return w, nil
	}
	var err error
	w.stream, err = m.streams.Resolve(w.device, p.stream)
	return w, err
}

// settle waits for what may touch p before the host does: work of ours, and foreign
// work on p's stream.
func (p piece) settle() error {
	if p.memory == nil {
		return nil
	}
	pending := p.memory.pending.Load()
	if err := p.memory.settle(); err != nil {
		return err
	}
	if !p.hasStream() {
		return nil
	}
	own, err := p.work()
	if err != nil || (pending != nil && pending.sameStream(own)) {
		return err
	}
	return own.wait()
}

// mark records that w may still touch the memory. followed is work that w's
// stream runs after; any other, which came in between, is waited for, since one
// record cannot cover both.
func (m *Memory) mark(w, followed *work) error {
	old := m.pending.Swap(w)
	bit := uint64(ownMark)
	if w.foreign {
		bit = foreignMark
	}
	for {
		marks := m.marks.Load()
		if m.marks.CompareAndSwap(marks, (marks+marksStep)|bit) {
			break
		}
	}
	if old == nil || old == followed || old.sameStream(w) {
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
	m.done(w)
	return nil
}

// done forgets w, which is over, unless other work was recorded since.
func (m *Memory) done(w *work) {
	// A mark set in between changes marks, which then stays as it is.
	marks := m.marks.Load()
	if w != nil && m.pending.CompareAndSwap(w, nil) {
		m.marks.CompareAndSwap(marks, marks&^(ownMark|foreignMark))
	}
}

// What the marks of a Memory consist of: two bits, and a count of the marks ever set,
// which tells one state from a later one with the same bits.
const (
	foreignMark = 1
	ownMark     = 2
	marksStep   = 1 << 32
)

// Marks is a number whose lower half is zero only while no work is pending on the
// memory; bit 1 is clear only while none of hamr's own is. It is for callers to whom
// asking Covering each time would cost too much.
func (m *Memory) Marks() *atomic.Uint64 { return &m.marks }

// settleBeforeRelease waits for recorded work, save where the release can be
// enqueued behind it.
func (m *Memory) settleBeforeRelease() error {
	w := m.pending.Load()
	if w == nil || (w.foreign && !m.owned) {
		return nil
	}
	if m.freedInStreamOrder() {
		own := m.workOn(m.ordered())
		if err := own.follow(w); err != nil {
			return err
		}
		m.pending.CompareAndSwap(w, own)
		return nil
	}
	return m.settle()
}

// ReleaseAfter makes the release of memory that is freed in stream order wait for
// what stream s holds now, too; after backends.EveryStream it blocks until whatever
// the device does then is over.
func (m *Memory) ReleaseAfter(s backends.Stream) error {
	if uintptr(s) == m.asked.Load() || m.streams == nil || !m.freedInStreamOrder() || m.region.Address == 0 {
		return nil
	}
	if s == backends.EveryStream {
		m.every.Store(true)
		return nil
	}
	used, err := piece{memory: m, stream: s}.work()
	if err != nil {
		return err
	}
	return m.workOn(m.ordered()).follow(used)
}

func (m *Memory) workOn(s backends.Stream) *work {
	return &work{backend: m.backend, device: m.context(), stream: s}
}

// Covering returns a stream whose synchronisation covers all work on the
// elements that is not over: movements of hamr's, and whatever a stream given to
// the Array holds. busy is false if there is none.
func (a *Array) Covering() (s backends.Stream, busy bool, err error) {
	if err := a.check(); err != nil || a.memory == nil || a.memory.streams == nil {
		return 0, false, err
	}
	pending, err := a.memory.poll()
	if err != nil {
		return 0, false, err
	}
	if a.options.Stream == 0 {
		if pending == nil {
			return 0, false, nil
		}
		if pending.device == a.memory.context() && pending.backend == a.memory.backend {
			return pending.stream, true, nil
		}
		// Another device's stream means nothing to users of this one's memory, or, as
		// the default stream does, something else.
	}
	own, err := a.all().work()
	if err != nil {
		return 0, false, err
	}
	if pending != nil {
		if own.sameStream(pending) {
			return own.stream, true, nil
		}
		if err := own.follow(pending); err != nil {
			return 0, false, err
		}
		// Whoever asks again, as waiting does, enqueues nothing more.
		own.foreign = pending.foreign
		a.memory.pending.CompareAndSwap(pending, own)
		return own.stream, true, nil
	}
	idle, err := a.memory.streams.Idle(own.device, own.stream)
	return own.stream, !idle, err
}

// Before makes what is enqueued on a stream of the memory's device from now on run
// after all work on the elements that is not over, without blocking. A per-thread
// stream is the calling thread's.
func (a *Array) Before(s backends.Stream) error {
	covering, busy, err := a.Covering()
	if err != nil || !busy {
		return err
	}
	before := a.memory.workOn(covering)
	same, err := before.isOn(s)
	if err != nil || same {
		return err
	}
	// Not what s is resolved to: for a per-thread stream that is another one, which
	// runs after it.
	return a.memory.workOn(s).follow(before)
}

// isOn reports whether s is a name of w's stream. A stream that stands in for a
// per-thread one is not the same.
func (w *work) isOn(s backends.Stream) (bool, error) {
	streams := w.backend.(backends.Streams)
	if w.stream == s {
		return true, nil
	}
	own, err := streams.Resolve(w.device, 0)
	if err != nil || own != w.stream {
		return false, err
	}
	named, err := streams.Resolve(w.device, s)
	return named == own, err
}

// Busy returns the stream of work that was not seen to be over.
func (m *Memory) Busy() (backends.Stream, bool) {
	if w := m.pending.Load(); w != nil {
		return w.stream, true
	}
	return 0, false
}

// poll returns the work that is pending and not over yet.
func (m *Memory) poll() (*work, error) {
	w := m.pending.Load()
	if w == nil {
		return nil, nil
	}
	if s, ok := w.backend.(backends.Streams); ok {
		if idle, err := s.Idle(w.device, w.stream); err != nil || !idle {
			return w, err
		}
	}
	m.done(w)
	return nil, nil
}

// After makes what hamr does with the memory on stream s, and everybody who asks
// Covering, run after what a foreign stream of the memory's device holds now.
func (m *Memory) After(s, foreign backends.Stream) error {
	if m.streams == nil {
		return nil
	}
	own, err := piece{memory: m, stream: s}.work()
	if err != nil {
		return err
	}
	before := foreign
	if foreign != own.stream {
		if before, err = m.streams.Resolve(own.device, foreign); err != nil {
			return err
		}
	}
	if before != own.stream {
		if err := own.follow(m.workOn(before)); err != nil {
			return err
		}
	}
	own.foreign = true
	return m.mark(own, nil)
}

// Uses reports whether Forget has anything to do.
func (m *Memory) Uses(s backends.Stream) bool {
	w := m.pending.Load()
	return (w != nil && w.stream == s) || (m.streams != nil && m.ordered() == s)
}

// Forget makes the memory do without a stream that is about to end: its release,
// and whoever waits for what is pending on it, turn to the default stream, which
// runs after what the other one holds.
func (m *Memory) Forget(s backends.Stream) error {
	w := m.pending.Load()
	if w != nil && w.stream == s {
		instead, err := w.instead()
		if err != nil {
			return err
		}
		m.pending.CompareAndSwap(w, instead)
	}
	if m.streams == nil || m.ordered() != s {
		return nil
	}
	instead, err := m.workOn(s).instead()
	if err != nil {
		return err
	}
	m.asked.Store(0)
	m.stream.Store(uintptr(instead.stream))
	return nil
}

// instead is work on the default stream that runs after w.
func (w *work) instead() (*work, error) {
	streams, ok := w.backend.(backends.Streams)
	if !ok {
		return w, nil
	}
	s, err := streams.Resolve(w.device, 0)
	if err != nil {
		return nil, err
	}
	other := &work{backend: w.backend, device: w.device, stream: s, foreign: w.foreign}
	return other, other.follow(w)
}
