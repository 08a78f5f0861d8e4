package gobuffer

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// uses is the record of work that may still touch a Memory: an entry for each stream
// that hamr used it on, or that somebody did who left it, until the work is over or
// other work runs after it. It holds a reference to each ticket.
type uses struct {
	mutex sync.Mutex
	list  works
	room  [1]*work          // for the list: there is seldom more; at first what newMemory has made
	named []guest           // see name
	rests map[*work]*atRest // see restOf
	marks atomic.Uint64     // see Marks
}

// works is a list whose tickets are held until letGo.
type works []*work

func (list works) letGo() (err error) {
	for _, w := range list {
		if w.ticket != nil {
			err = errors.Join(err, w.ticket.release())
		}
	}
	return err
}

// cover reports whether one of the works is all that w's stream holds.
func (list works) cover(w *work) bool {
	return slices.ContainsFunc(list, func(v *work) bool { return v.holdsAll(w) })
}

// has reports whether one of the works is w, or stands for it.
func (list works) has(w *work) bool {
	return slices.ContainsFunc(list, func(v *work) bool { return v == w || v.of == w })
}

// What the marks of a Memory consist of: two bits, and a count of the works ever
// recorded, which tells one state from a later one with the same bits.
const (
	foreignMark = 1
	ownMark     = 2
	marksStep   = 1 << 32
)

// Marks is a number whose lower half is zero only while no work is recorded for the
// memory; bit 1 is clear only while none of hamr's own is. It is for callers to whom
// asking Covering each time would cost too much. Work on the Array's own stream, the
// default one, too, is not recorded.
func (m *Memory) Marks() *atomic.Uint64 {
	if m.check() != nil {
		return nil
	}
	return &m.uses.marks
}

// idle reports whether nothing is recorded.
func (u *uses) idle() bool { return uint32(u.marks.Load()) == 0 }

// recorded returns what is recorded now, for the caller to let go.
func (u *uses) recorded() works {
	if u.idle() {
		return nil
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	list := slices.Clone(u.list)
	for _, w := range list {
		if w.ticket != nil {
			w.ticket.retain()
		}
	}
	for i := range u.named {
		//mutate:remove what a handle elsewhere names is waited for once
		list = append(list, u.named[i].work)
	}
	return list
}

// restOf returns the ticket that stands for a recorded work where its stream is not asked. All who ask for the
// same work share one, so that one wait of the device's answers them.
func (u *uses) restOf(w *work) *atRest {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if rests := u.rests[w]; rests != nil {
		return rests
	}
	rests := &atRest{backend: w.backend, device: w.device}
	if slices.Contains(u.list, w) {
		if u.rests == nil {
			u.rests = map[*work]*atRest{}
		}
		u.rests[w] = rests
	}
	return rests
}

// guest is the stream of handles in place for code on another device, or of another runtime. hamr does
// nothing with the memory there, so that whoever has such a handle may enqueue on it what nobody else
// knows of: it is recorded at any time, however often it was waited for.
type guest struct {
	*work
	handles int // that have it
}

// name counts a handle that names w's stream, of a device that the memory is not of, and unname one
// that does so no more.
func (u *uses) name(w *work) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if i := u.naming(w); i >= 0 {
		u.named[i].handles++
		return
	}
	u.named = append(u.named, guest{work: w, handles: 1})
	u.marks.Store(u.marks.Load()&^(marksStep-1) + marksStep | u.bits())
}

func (u *uses) unname(w *work) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	i := u.naming(w)
	if i < 0 {
		return // the memory has ended
	}
	if u.named[i].handles--; u.named[i].handles == 0 {
		u.named = slices.Delete(u.named, i, i+1)
		u.marks.Store(u.marks.Load()&^(marksStep-1) | u.bits())
	}
}

func (u *uses) naming(w *work) int {
	return slices.IndexFunc(u.named, func(g guest) bool { return g.holdsAll(w) })
}

// bits are the lower half of the marks.
func (u *uses) bits() (marks uint64) {
	if len(u.named) > 0 {
		marks = foreignMark
	}
	for _, w := range u.list {
		if w.foreign {
			marks |= foreignMark
		} else {
			marks |= ownMark
		}
	}
	return marks
}

// replace records next, unless it is nil, in place of works that are over or that next
// runs after, and takes over its ticket. Others that were recorded meanwhile stay. What
// takes the place of work of hamr's own counts as such.
func (u *uses) replace(old works, next *work) error {
	var dropped works
	u.mutex.Lock()
	all := u.list
	kept := all[:0]
	if all == nil {
		kept = u.room[:0]
	}
	for _, w := range all {
		//mutate:replace a second stream's work on memory replaces the first one's
		//mutate:with old.has(w) => next != nil || old.has(w)
		if old.has(w) || (next != nil && next.ticket == nil && w.holdsAll(next)) {
			dropped = append(dropped, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(all[len(kept):])
	for _, w := range dropped {
		delete(u.rests, w)
	}
	marks := u.marks.Load() &^ (marksStep - 1)
	if next != nil {
		if next.foreign && slices.ContainsFunc(dropped, func(w *work) bool { return !w.foreign }) {
			own := *next
			//mutate:replace what takes the place of hamr's own work counts as another library's
			//mutate:with own.foreign = false => own.foreign = true
			own.foreign = false
			next = &own
		}
		kept = append(kept, next)
		marks += marksStep
	}
	u.list = kept
	u.marks.Store(marks | u.bits())
	u.mutex.Unlock()
	return dropped.letGo()
}

// begin records the first work, on memory that nobody else has yet.
func (u *uses) begin(w *work) {
	u.room[0] = w
	u.list = u.room[:]
	u.marks.Store(marksStep | ownMark)
}

// on reports whether all that is recorded is what one stream of a device holds: a default
// stream's handle may be the same on every device.
func (u *uses) on(b backends.Backend, device int, s backends.Stream) bool {
	if u.idle() {
		return true
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return len(u.named) == 0 && len(u.list) == 1 && u.list[0].isAllOf(b, device, s)
}

// end forgets everything, for memory that nobody uses any more.
func (u *uses) end() error {
	if u.idle() {
		return nil
	}
	u.mutex.Lock()
	list := u.list
	u.list, u.named, u.rests = nil, nil, nil
	u.marks.Store(u.marks.Load() &^ (marksStep - 1))
	u.mutex.Unlock()
	return list.letGo()
}

// mark records that w may still touch the memory; followed is work that w runs after.
func (m *Memory) mark(w *work, followed works) error {
	if !w.foreign && (!m.ends() || w.stream != m.ordered() || w.device != m.context()) {
		w = w.byEvent() // its release waits for it, or other streams do
	}
	return m.uses.replace(followed, w)
}

// mark is Memory.mark, by an event where p does not name w's stream: who does may go, and the stream with it.
func (p piece) mark(w *work, followed works) error {
	if p.stream != w.stream && !w.foreign {
		w = w.byEvent()
	}
	return p.memory.mark(w, followed)
}

// done forgets works that are over.
func (m *Memory) done(over works) error {
	if len(over) == 0 {
		return nil
	}
	return m.uses.replace(over, nil)
}

// settle waits until no recorded work touches the memory any more. What could not be
// waited for stays recorded.
func (m *Memory) settle() error {
	return m.settleIf(func(*work) bool { return true })
}

func (m *Memory) settleIf(wanted func(*work) bool) error {
	pending := m.uses.recorded()
	if pending == nil {
		return nil
	}
	var chosen works
	for _, w := range pending {
		if wanted(w) {
			chosen = append(chosen, w)
		}
	}
	return errors.Join(m.settleThose(chosen, (*work).waitOrRest), pending.letGo())
}

// settleThose waits for works that are recorded. What could not be waited for stays so.
func (m *Memory) settleThose(list works, wait func(*work) error) (failed error) {
	var over works
	for _, w := range list {
		if err := wait(w); err != nil {
			failed = errors.Join(failed, err)
		} else {
			over = append(over, w)
		}
	}
	return errors.Join(failed, m.done(over))
}

// poll returns the pending works that are not over yet, for the caller to let go, and
// forgets the others.
func (p piece) poll() (busy works, err error) {
	m, pending := p.memory, p.pending()
	if pending == nil {
		return nil, nil
	}
	var over works
	for _, w := range pending {
		idle, failed := w.idle()
		if failed != nil {
			err = errors.Join(err, failed)
		}
		if failed == nil && idle {
			over = append(over, w)
		} else {
			busy = append(busy, w)
		}
	}
	err = errors.Join(err, m.done(over), over.letGo())
	if err != nil {
		return nil, errors.Join(err, busy.letGo())
	}
	return busy, nil
}

// Busy returns the stream of work that was not seen to be over.
func (m *Memory) Busy() (backends.Stream, bool) {
	if m.check() != nil {
		return 0, false
	}
	pending := m.uses.recorded()
	if len(pending) == 0 {
		return 0, false
	}
	s := pending[0].stream
	_ = pending.letGo()
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
	if m.streams != nil && m.ordered() == s {
		return true
	}
	if m.uses.idle() {
		return false
	}
	m.uses.mutex.Lock()
	defer m.uses.mutex.Unlock()
	return slices.ContainsFunc(m.uses.list, func(w *work) bool { return w.ticket == nil && w.stream == s })
}
