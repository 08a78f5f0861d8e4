package order

import (
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// Uses is the record of work that may still touch some memory, or run some code: an entry for each stream
// that hamr used it on, or that somebody did who left it, until the work is over or
// other work runs after it. It holds a reference to each ticket.
type Uses struct {
	mutex sync.Mutex
	list  Works
	room  [1]*Work          // for the list: there is seldom more; at first what SetRoom was given
	named []guest           // see AddGuest
	rests map[*Work]*atRest // see restOf
	found Works             // that others took the place of, by tickets that may have found something
	late  bool              // see WriteLate
	marks atomic.Uint64     // see Marks
}

// What the marks consist of: three bits, and a count of the works ever
// recorded, which tells one state from a later one with the same bits.
const (
	foreignMark = 1
	ownMark     = 2
	lateMark    = 4
	marksStep   = 1 << 32
)

// Marks returns where the marks are: their lower half is zero only while no work is recorded, bit 1 is clear
// only while none of hamr's own is, and bit 2 while WrittenLate is false.
func (u *Uses) Marks() *atomic.Uint64 { return &u.marks }

// SetRoom gives the first work a place, which Room returns.
func (u *Uses) SetRoom(w *Work) { u.room[0] = w }

// Room is what SetRoom gave, or nil.
func (u *Uses) Room() *Work { return u.room[0] }

// Idle reports whether nothing is recorded.
func (u *Uses) Idle() bool { return uint32(u.marks.Load()) == 0 }

// WriteLate says that a device may write to the memory, which is the host's, after the call that asks for it.
func (u *Uses) WriteLate() {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.late = true
}

// WrittenLate reports whether work is recorded of memory that WriteLate was called for.
func (u *Uses) WrittenLate() bool { return u.marks.Load()&lateMark != 0 }

// Recorded returns what is recorded now, for the caller to let go.
func (u *Uses) Recorded() Works {
	if u.Idle() {
		return nil
	}
	return u.appendRecorded(nil)
}

func (u *Uses) appendRecorded(list Works) Works {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	for _, w := range u.list {
		if w.Ticket != nil {
			w.Ticket.Retain()
		}
		list = append(list, w)
	}
	for i := range u.named {
		//mutate:remove what a handle elsewhere names is waited for once
		list = append(list, u.named[i].Work)
	}
	return list
}

// restOf returns the ticket that stands for a recorded work where its stream is not asked. All who ask for the
// same work share one, so that one wait of the device's answers them.
func (u *Uses) restOf(w *Work) *atRest {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if rests := u.rests[w]; rests != nil {
		return rests
	}
	rests := &atRest{backend: w.Backend, device: w.Device}
	if slices.Contains(u.list, w) {
		if u.rests == nil {
			u.rests = map[*Work]*atRest{}
		}
		u.rests[w] = rests
	}
	return rests
}

// guest is the stream of handles in place for code on another device, or of another runtime. hamr does
// nothing with the memory there, so that whoever has such a handle may enqueue on it what nobody else
// knows of: it is recorded at any time, however often it was waited for.
type guest struct {
	*Work
	handles int // that have it
}

// AddGuest counts a handle that names w's stream, which is of a device that the memory is not of.
func (u *Uses) AddGuest(w *Work) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if i := u.naming(w); i >= 0 {
		u.named[i].handles++
		return
	}
	u.named = append(u.named, guest{Work: w, handles: 1})
	u.marks.Store(u.marks.Load()&^(marksStep-1) + marksStep | u.bits())
}

// DropGuest ends what AddGuest has counted.
func (u *Uses) DropGuest(w *Work) {
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

func (u *Uses) naming(w *Work) int {
	return slices.IndexFunc(u.named, func(g guest) bool { return g.HoldsAll(w) })
}

// bits are the lower half of the marks.
func (u *Uses) bits() (marks uint64) {
	if len(u.named) > 0 {
		marks = foreignMark
	}
	for _, w := range u.list {
		if w.Foreign {
			marks |= foreignMark
		} else {
			marks |= ownMark
		}
	}
	if u.late && marks != 0 {
		marks |= lateMark
	}
	return marks
}

// Replace records next, unless it is nil, in place of works that are over or that next runs after, and takes over its
// ticket. Others that were recorded meanwhile stay. What takes the place of work of hamr's own counts as such.
func (u *Uses) Replace(old Works, next *Work) error {
	u.mutex.Lock()
	dropped := u.replace(old, next)
	u.mutex.Unlock()
	return dropped.LetGo()
}

// replace is Replace under the mutex. It returns works with tickets, for the caller to let go.
func (u *Uses) replace(old Works, next *Work) (dropped Works) {
	all := u.list
	kept := all[:0]
	if all == nil {
		kept = u.room[:0]
	}
	own := false // some of hamr's own goes
	for _, w := range all {
		//mutate:replace a second stream's work on memory replaces the first one's
		//mutate:with old.has(w) => next != nil || old.has(w)
		if !(old.has(w) || w == next || (next != nil && next.Ticket == nil && w.HoldsAll(next))) {
			kept = append(kept, w)
			continue
		}
		delete(u.rests, w)
		own = own || !w.Foreign
		if w.Ticket == nil {
			continue
		}
		dropped = append(dropped, w)
		//mutate:remove nobody is told of an index where other work was enqueued before the wait
		dropped = append(dropped, u.keep(w)...)
	}
	clear(all[len(kept):])
	marks := u.marks.Load() &^ (marksStep - 1)
	if next != nil {
		if next.Foreign && own {
			counted := *next
			//mutate:replace what takes the place of hamr's own work counts as another library's
			//mutate:with counted.Foreign = false => counted.Foreign = true
			counted.Foreign = false
			next = &counted
		}
		kept = append(kept, next)
		marks += marksStep
	}
	u.list = kept
	u.marks.Store(marks | u.bits())
	return dropped
}

// Begin records the first work, on memory that nobody else has yet.
func (u *Uses) Begin(w *Work) {
	u.room[0] = w
	u.list = u.room[:]
	u.marks.Store(marksStep | ownMark)
}

// OnlyOn reports whether all that is recorded is what one stream of a device holds: a default
// stream's handle may be the same on every device.
func (u *Uses) OnlyOn(b backends.Backend, device int, s backends.Stream) bool {
	if u.Idle() {
		return true
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return len(u.named) == 0 && len(u.list) == 1 && u.list[0].isAllOf(b, device, s)
}

// End forgets everything, for memory that nobody uses any more.
func (u *Uses) End() error {
	if u.Idle() {
		return nil
	}
	u.mutex.Lock()
	list := append(u.list, u.found...)
	u.list, u.named, u.rests, u.found = nil, nil, nil, nil
	u.marks.Store(u.marks.Load() &^ (marksStep - 1))
	u.mutex.Unlock()
	return list.LetGo()
}

// MarksOn returns the marks if all that is recorded is what one stream of a device holds, else zero.
func (u *Uses) MarksOn(b backends.Backend, device int, s backends.Stream) uint64 {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if len(u.named) > 0 || len(u.list) != 1 || !u.list[0].isAllOf(b, device, s) {
		return 0
	}
	return u.marks.Load()
}

// OnStream reports whether something is recorded of a stream that is not known by an event.
func (u *Uses) OnStream(s backends.Stream) bool {
	if u.Idle() {
		return false
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return slices.ContainsFunc(u.list, func(w *Work) bool { return w.Ticket == nil && w.Stream == s })
}

// AsksEnded reports whether whoever waits for what is recorded would have to ask a stream that may have ended, or
// wait for a device. What a stream of a device holds does not count, if but is set.
func (u *Uses) AsksEnded(but bool, b backends.Backend, device int, s backends.Stream) bool {
	if u.Idle() {
		return false
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	for _, w := range u.list {
		_, rests := w.Ticket.(*atRest) // which only a wait ends
		if rests || w.MayHaveEnded() && !(but && w.isAllOf(b, device, s)) {
			return true
		}
	}
	return false
}
