package gobuffer

import (
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Usage is work that uses memory, as a backends.Observer tells of it.
type Usage struct {
	Name   string // of the kernel, or of the runtime's function
	Stream backends.Stream
	Writes backends.Writes
	At     backends.Address // where it begins, as far as is known
	Moment Moment
	touch  touch
}

// witness knows where the checked memory is. It finds work that uses memory after its release, and work that is not
// ordered with other work on the same memory.
type witness struct {
	checker *Checker
	mutex   sync.Mutex // of what follows; nothing else is called with it
	order   *order.Sequence
	owned   []*knownMemory   // by address: none has another one's
	foreign []*knownMemory   // by address: others may, and that of the owned
	largest backends.Address // of the foreign ones
	told    map[tellOnce]bool
	recent  []*Usage // of any memory, the last ones: it may be lent soon
}

// knownMemory is memory whose uses are checked.
type knownMemory struct {
	memory  *Memory
	at, end backends.Address
	born    Moment
	kept    *keptMemory // it was freed
	looked  bool        // at by the checker itself
	filler  int         // the thread that fills it for the checker, or 0
	uses    []*Usage
}

// touch is what work uses of memory.
type touch struct {
	queue   backends.Queue
	number  uint64
	at, end backends.Address
	rows    rows
}

// rows are those of a touch with gaps between them: none where pitch is zero, and not known where width is.
type rows struct {
	first        backends.Address
	pitch, width int
}

// tellOnce is what is told of memory once, however often it is done.
type tellOnce struct {
	memory        *Memory
	name, earlier string
}

const mostUses = 256 // of one memory that are not over, and of the recent ones

// add has the uses of memory looked at from now on.
func (w *witness) add(m *Memory) {
	size := m.Size()
	if size == 0 || m.region.Address == 0 {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	k := &knownMemory{memory: m, at: m.region.Address, end: m.region.Address + backends.Address(size),
		born: m.lives().allocated}
	list := w.listOf(m)
	*list = slices.Insert(*list, behind(*list, k.at), k)
	if list == &w.foreign {
		w.largest = max(w.largest, k.end-k.at)
		for _, use := range w.recent {
			if t := use.touch; t.at < k.end && t.end > k.at && !w.order.IsOver(t.queue, t.number) {
				//mutate:remove what was under way when memory was lent is forgotten
				k.uses = append(k.uses, use)
			}
		}
	}
}

// grows is told that memory reaches further.
func (w *witness) grows(m *Memory) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if k, _, _ := w.find(m); k != nil {
		k.end = k.at + backends.Address(m.Size())
	}
}

// remember keeps a use of memory that nothing is known of.
func (w *witness) remember(use *Usage) {
	if len(w.recent) == mostUses {
		w.recent = slices.Delete(w.recent, 0, mostUses/2)
	}
	w.recent = append(w.recent, use)
}

func (w *witness) listOf(m *Memory) *[]*knownMemory {
	if m.owned || m.library != LibraryHamr {
		return &w.owned
	}
	return &w.foreign
}

// behind is where memory begins that lies behind an address.
func behind(list []*knownMemory, at backends.Address) int {
	i, _ := slices.BinarySearchFunc(list, at, func(k *knownMemory, at backends.Address) int {
		if k.at <= at {
			return -1
		}
		return 1
	})
	return i
}

// find returns what is known of memory, and where; nil where nothing is.
func (w *witness) find(m *Memory) (k *knownMemory, in *[]*knownMemory, i int) {
	in = w.listOf(m)
	for i = behind(*in, m.region.Address) - 1; i >= 0 && (*in)[i].at == m.region.Address; i-- {
		if (*in)[i].memory == m {
			return (*in)[i], in, i
		}
	}
	return nil, in, -1
}

// each calls f with the memory that has some of the bytes.
func (w *witness) each(at, end backends.Address, f func(k *knownMemory)) {
	for i := max(0, behind(w.owned, at)-1); i < len(w.owned) && w.owned[i].at < end; i++ {
		if k := w.owned[i]; k.end > at {
			f(k)
		}
	}
	for i := behind(w.foreign, at-min(at, w.largest)); i < len(w.foreign) && w.foreign[i].at < end; i++ {
		if k := w.foreign[i]; k.end > at {
			f(k)
		}
	}
}

// freed is told that memory was freed and is kept: any use of it is an error.
func (w *witness) freed(m *Memory, kept *keptMemory) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if k, _, _ := w.find(m); k != nil {
		k.kept, k.looked, k.filler, k.uses = kept, false, 0, nil
	}
}

// looks is told that from now on only the checker uses this memory, until it is freed.
func (w *witness) looks(m *Memory) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if k, _, _ := w.find(m); k != nil {
		k.looked = true
	}
}

// fills is told that the checker fills memory, until over is called. Any other work on it is an error. The checker's
// own work is known by its thread, which stays the caller's until then.
func (w *witness) fills(m *Memory) (over func()) {
	runtime.LockOSThread()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if k, _, _ := w.find(m); k != nil {
		k.filler = unix.Gettid()
	}
	return runtime.UnlockOSThread
}

// remove is told that memory goes back, or belongs to its owner alone again.
func (w *witness) remove(m *Memory) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, in, i := w.find(m); i >= 0 {
		*in = slices.Delete(*in, i, i+1)
		for once := range w.told {
			if once.memory == m {
				delete(w.told, once)
			}
		}
	}
}

// Enqueue looks at what work uses.
func (w *witness) Enqueue(work backends.Work) (number uint64, then func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	number = w.order.Enqueue(work.Queue)
	var uses []*Usage
	var found []Misuse
	for i, t := range work.Touches {
		if t.Size <= 0 {
			//mutate:replace no bytes are taken for one
			//mutate:with continue => t.Size = 1
			continue
		}
		end := t.Address + backends.Address(t.Size)
		whole := &Usage{Name: work.Name, Stream: work.Stream, Writes: t.Writes, At: t.Address,
			touch: touch{work.Queue, number, t.Address, end, rows{t.Address, t.Pitch, t.Width}}}
		if t.Writes != backends.MayWrite {
			w.remember(whole)
			uses = append(uses, whole)
		}
		w.each(t.Address, end, func(k *knownMemory) {
			//mutate:replace the detector takes its own looking for a use
			//mutate:with k.looked => false
			if k.looked || k.filler != 0 && k.filler == unix.Gettid() || t.Address == k.at && w.endsThere(t, work.Touches[:i]) {
				return
			}
			use := *whole
			use.At, use.touch.at, use.touch.end = max(t.Address, k.at), max(t.Address, k.at), min(end, k.end)
			uses = append(uses, &use)
			if m := w.misuse(k, &use); m != nil {
				found = append(found, *m)
			}
		})
	}
	if len(uses) == 0 {
		return number, nil
	}
	return number, func() { w.tell(uses, found) }
}

// tell completes uses with the time and the thread, and reports what is wrong with them.
func (w *witness) tell(uses []*Usage, found []Misuse) {
	now := w.checker.now()
	if len(found) > 0 && now.Stack == 0 {
		now.Stack = w.checker.askedStack(now.Thread)
	}
	w.mutex.Lock()
	for _, use := range uses {
		use.Moment = now
	}
	for i := range found {
		used := *found[i].Used
		found[i].Used = &used
		if found[i].Earlier != nil {
			earlier := *found[i].Earlier
			found[i].Earlier = &earlier
		}
	}
	w.mutex.Unlock()
	for _, m := range found {
		w.checker.tell(m)
	}
}

// endsThere reports whether a kernel's pointer may be the end of memory that an earlier pointer of the kernel is in.
func (w *witness) endsThere(t backends.Touch, earlier []backends.Touch) (ends bool) {
	if t.Writes != backends.MayWrite || len(earlier) == 0 {
		return false
	}
	w.each(t.Address-1, t.Address, func(k *knownMemory) {
		ends = ends || k.kept == nil && k.end == t.Address &&
			//mutate:replace where memory ends is taken for the next one
			//mutate:with e.Address >= k.at && e.Address < k.end => false
			slices.ContainsFunc(earlier, func(e backends.Touch) bool { return e.Address >= k.at && e.Address < k.end })
	})
	return ends
}

// misuse is what is wrong with a use of memory, or nil; the use is remembered.
func (w *witness) misuse(k *knownMemory, use *Usage) *Misuse {
	if k.kept != nil {
		m := k.kept.memory
		if !w.once(tellOnce{m, use.Name, ""}) {
			return nil
		}
		return &Misuse{Library: m.library, Region: m.region, Size: k.kept.size, Stream: k.kept.stream,
			Offset: int(use.At - k.at), Allocated: k.kept.lives.allocated, Freed: k.kept.lives.freed, Used: use}
	}
	var found *Misuse
	k.uses = slices.DeleteFunc(k.uses, func(earlier *Usage) bool {
		t := earlier.touch
		if w.order.IsOver(t.queue, t.number) {
			return true
		}
		conflicts := (earlier.Writes == backends.DoesWrite || use.Writes == backends.DoesWrite) && meet(k, earlier, use)
		if conflicts && !w.order.ComesBefore(t.queue, t.number, use.touch.queue) && found == nil &&
			(t.queue != use.touch.queue || t.number != use.touch.number) && w.once(tellOnce{k.memory, use.Name, earlier.Name}) {
			m := k.memory
			found = &Misuse{Library: m.library, Region: m.region, Size: m.Size(), Stream: m.ordered(),
				Offset: int(use.At - k.at), Allocated: k.born, Used: use, Earlier: earlier}
		}
		return false
	})
	if len(k.uses) == mostUses {
		k.uses = slices.Delete(k.uses, 0, 1)
	}
	k.uses = append(k.uses, use)
	return found
}

// meet reports whether two uses of memory share bytes, as far as can be known. A kernel that has the address of the
// whole memory may use another part of it than a copy does.
func meet(k *knownMemory, a, b *Usage) bool {
	for _, each := range [][2]*Usage{{a, b}, {b, a}} {
		kernel, other := each[0], each[1].touch
		//mutate:replace a kernel that has the whole is taken to use each part
		//mutate:with kernel.Writes == backends.MayWrite => kernel.Writes > backends.DoesWrite
		if kernel.Writes == backends.MayWrite && kernel.At == k.at &&
			(other.at > k.at || other.end < k.end || other.rows.pitch != 0) {
			return false
		}
	}
	return a.touch.meets(b.touch)
}

func (t touch) meets(other touch) bool {
	if t.at >= other.end || other.at >= t.end {
		return false
	}
	if t.rows.pitch == 0 {
		t, other = other, t
	}
	pitch := t.rows.pitch
	//mutate:always rows are taken to have no gaps
	if pitch == 0 {
		return true
	}
	size := other.rows.width
	if other.rows.pitch == 0 {
		size = int(other.end - other.rows.first)
	}
	if t.rows.width == 0 || size == 0 || other.rows.pitch != 0 && other.rows.pitch != pitch {
		return false // nobody knows
	}
	// This is how far the other's row begins behind the row before it.
	offset := (int(int64(other.rows.first)-int64(t.rows.first))%pitch + pitch) % pitch
	return offset < t.rows.width || offset+size > pitch
}

func (w *witness) once(what tellOnce) bool {
	if w.told[what] {
		return false
	}
	w.told[what] = true
	return true
}

// Refused takes work back.
func (w *witness) Refused(q backends.Queue, number uint64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	refused := func(use *Usage) bool { return use.touch.queue == q && use.touch.number == number }
	//mutate:remove work that was refused counts
	w.recent = slices.DeleteFunc(w.recent, refused)
	for _, k := range slices.Concat(w.owned, w.foreign) {
		k.uses = slices.DeleteFunc(k.uses, refused)
	}
}

// After and what follows are the order of work.
func (w *witness) After(q, other backends.Queue) {
	w.ordered(func(o *order.Sequence) { o.After(q, other) })
}

// Record is what an event stands for.
func (w *witness) Record(e backends.Event, q backends.Queue) {
	w.ordered(func(o *order.Sequence) { o.Record(e, q) })
}

// Wait has a queue come after that.
func (w *witness) Wait(q backends.Queue, e backends.Event) {
	w.ordered(func(o *order.Sequence) { o.Wait(q, e) })
}

// Over is that somebody has waited for a queue.
func (w *witness) Over(q backends.Queue) { w.ordered(func(o *order.Sequence) { o.Finish(q) }) }

// Reached is that somebody has waited for an event.
func (w *witness) Reached(e backends.Event) { w.ordered(func(o *order.Sequence) { o.Reach(e) }) }

// Close is that a queue ends.
func (w *witness) Close(q backends.Queue) (open bool) {
	w.ordered(func(o *order.Sequence) { open = o.Close(q) })
	return open
}

// Forget ends an event.
func (w *witness) Forget(e backends.Event) { w.ordered(func(o *order.Sequence) { o.Forget(e) }) }

// Made forgets unknown uses of the memory from before this allocation.
func (w *witness) Made(at backends.Address, size int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	end := at + backends.Address(size)
	//mutate:replace what used memory in an earlier life counts
	//mutate:with at < use.touch.end => end < at
	w.recent = slices.DeleteFunc(w.recent, func(use *Usage) bool { return use.touch.at < end && at < use.touch.end })
}

func (w *witness) ordered(f func(o *order.Sequence)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	f(w.order)
}
