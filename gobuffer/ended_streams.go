package gobuffer

import (
	"errors"
	"sync/atomic"

	"hamr/backends"
)

// stays reports whether a stream may be asked about at any time: it never ends, or hamr is told before. Any
// other one may have ended since the call that named it, and a driver must not be given its handle then.
func stays(b backends.Backend, s backends.Stream) bool {
	if s == 0 {
		return true
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	return !ok || keeper.Kept(s)
}

// mayHaveEnded reports whether w stands for what a stream holds that may have ended.
func (w *work) mayHaveEnded() bool {
	return w.ticket == nil && w.streams != nil && !stays(w.backend, w.stream)
}

// waitOrRest is wait that asks for nothing of a stream that may have ended: the device is waited for.
func (w *work) waitOrRest() error {
	if !w.mayHaveEnded() {
		return w.wait()
	}
	return rest(w.backend, w.device)
}

// rest waits for all work on a device. The error says why it may not be over.
func rest(b backends.Backend, device int) error {
	over, late := settleDevice(b, device)
	if over {
		return nil
	}
	return late
}

// settleElsewhere waits for the work on memory that is on q which a wait for q's device does not speak for. Its
// streams may have ended since the release, or their handles be others'.
func (m *Memory) settleElsewhere(q *queue) (failed error) {
	pending := m.uses.recorded()
	for _, w := range pending {
		if w.backend == q.backend && (q.device == backends.HostDevice || w.device == q.device) {
			continue
		}
		if w.ticket != nil {
			failed = errors.Join(failed, w.wait())
		} else {
			failed = errors.Join(failed, rest(w.backend, w.device))
		}
	}
	return errors.Join(failed, pending.letGo())
}

// coverByDevice makes the last release wait for the device where it would have to ask a stream that may have
// ended. The stream that a release is itself ordered on has not, as callers see to.
func (m *Memory) coverByDevice() {
	if m.streams == nil || m.every.Load() || m.region.Address == 0 || !(m.freedInStreamOrder() || m.settled) {
		return
	}
	byDriver := m.taker != nil || m.region.Allocator.Ordered()
	if !byDriver && !stays(m.backend, m.ordered()) {
		m.every.Store(true)
		return
	}
	if m.uses.idle() {
		return
	}
	m.uses.mutex.Lock()
	defer m.uses.mutex.Unlock()
	for _, w := range m.uses.list {
		_, rests := w.ticket.(*atRest) // which only a wait ends
		if rests || w.mayHaveEnded() && !(byDriver && w.isAllOf(m.backend, m.context(), m.ordered())) {
			m.every.Store(true)
			return
		}
	}
}

// settleBeforeReplaced is settleBeforeRelease for an Array that gives the memory up for other memory. Where
// others keep it, its own stream may have ended.
func (m *Memory) settleBeforeReplaced() error {
	if m == nil {
		return nil
	}
	if m.refs.Load() == 1 {
		m.coverByDevice()
	} else if m.streams != nil && !stays(m.backend, m.ordered()) {
		return nil
	}
	if m.every.Load() {
		return nil // the release waits
	}
	return m.settleBeforeRelease()
}

// dropsLast reports whether p, which is let go, is the last that has its memory, and names a stream that may
// have ended: the device is then waited for in its place.
func (m *Memory) dropsLast(s backends.Stream) bool {
	return m.streams != nil && m.ends() && m.refs.Load() == 1 && !stays(m.backend, s)
}

// pending returns what is recorded of p's memory, for the caller to let go. Who named another stream than p's
// may have gone, and the stream with them: where hamr is not told of its end, the device stands for it.
func (p piece) pending() works {
	list := p.memory.uses.recorded()
	for i, w := range list {
		other := w.stream != p.stream || p.where != 0 && w.device != p.where-1
		//mutate:never who names no stream that may have ended asks it
		if other && w.mayHaveEnded() {
			held := *w
			held.ticket, held.of = p.memory.uses.restOf(w), w
			list[i] = &held
		}
	}
	return list
}

// rememberRest records that work on s, which may have ended, may still touch page-locked memory: it asks no
// runtime, as only a stream that lives can say of which device it is.
func (m *Memory) rememberRest(s backends.Stream) {
	w := &work{backend: m.backend, streams: m.streams, device: m.deviceOfUse(), stream: s, foreign: true}
	_ = m.restInstead(w) // such tickets hold nothing
}

// restInstead records, in place of all that w's stream holds, that the device is to be waited for. One such ticket
// is enough for a device.
func (m *Memory) restInstead(w *work) error {
	pending := m.uses.recorded()
	before := pending.on(w)
	for _, v := range pending {
		if _, rests := v.ticket.(*atRest); rests && v.backend == w.backend && v.device == w.device {
			before = append(before, v)
		}
	}
	return errors.Join(m.uses.replace(before, w.untilRest()), pending.letGo())
}

// whereIs is the device, plus one, of a stream that may end, which only the stream can say while it lives; else 0.
func (m *Memory) whereIs(s backends.Stream) int {
	if m == nil || m.kind != backends.Pinned || m.streams == nil || stays(m.backend, s) {
		return 0
	}
	device, err := m.streams.StreamDevice(s)
	if err != nil {
		return 0
	}
	return device + 1
}

// rememberEnding is remember by who names a stream that may have ended, for page-locked memory.
func (m *Memory) rememberEnding(s backends.Stream, where int) {
	if where == 0 {
		m.rememberRest(s)
		return
	}
	m.remember(&work{backend: m.backend, streams: m.streams, device: where - 1, stream: s})
}

// renamed is told of a name that an Array turns to: what is recorded of one that may have ended may be another
// stream's, which has its handle now.
func (m *Memory) renamed(s backends.Stream) (failed error) {
	if stays(m.backend, s) || m.uses.idle() {
		return nil
	}
	pending := m.uses.recorded()
	for _, w := range pending {
		if w.stream == s && w.mayHaveEnded() {
			failed = errors.Join(failed, m.uses.replace(works{w}, w.untilRest()))
		}
	}
	return errors.Join(failed, pending.letGo())
}

// byEvent is w, or an event of what its stream holds now if that may end before somebody waits.
func (w *work) byEvent() *work {
	if !w.mayHaveEnded() {
		return w
	}
	if l, ok := backends.As[backends.Launcher](w.backend); ok {
		if captured, err := l.Capturing(w.device, w.stream); captured || err != nil {
			return w
		}
	}
	e, err := w.record()
	if err != nil {
		return w
	}
	held := *w
	held.ticket = e
	return &held
}

// atRest is the ticket of what a stream held that may have ended: it is over when the device has done all its
// work. Only a wait says so: whoever asks has a goroutine wait, and is told when that has come to its end.
type atRest struct {
	backend backends.Backend
	device  int
	over    atomic.Bool
	asked   atomic.Bool           // a goroutine waits
	failed  atomic.Pointer[error] // what the goroutine's wait met, for who asks next
}

func (a *atRest) wait() error {
	if a.over.Load() {
		return nil
	}
	late := rest(a.backend, a.device)
	if late == nil {
		a.over.Store(true)
	}
	return late
}

func (a *atRest) done() (bool, error) {
	if a.over.Load() {
		return true, nil
	}
	if failed := a.failed.Swap(nil); failed != nil {
		return false, *failed
	}
	if a.asked.CompareAndSwap(false, true) {
		go func() {
			if err := a.wait(); err != nil {
				a.failed.Store(&err)
			}
			a.asked.Store(false)
		}()
	}
	return false, nil
}

func (a *atRest) before(*work) (bool, error) { return false, nil }
func (a *atRest) retain()                    {}
func (a *atRest) release() error             { return nil }
