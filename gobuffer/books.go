package gobuffer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
)

// books records allocations while a listener or a limit needs that.
type books struct {
	watched   atomic.Int32 // how many Recorders, Trackers and limits there are
	limited   atomic.Bool  // whether there are limits
	mutex     sync.Mutex   // of what follows
	limits    map[share]int64
	used      map[share]int64      // of what is booked, where there are limits
	epoch     uint32               // becomes another one when the first limit comes and the last one goes
	returning map[backends.Tag]int // calls that resume memory of a tag: it counts as in use from then on
	listeners []listener
	checker   atomic.Pointer[checker]
}

// listener is told of each allocation. Who calls it has the mutex of the books.
type listener interface {
	come(m *Memory, size int)
	gone(m *Memory, size int)
	grown(m *Memory, by int) // at the addresses behind it
}

// listen and endListening are called with the mutex held.
func (b *books) listen(l listener) {
	b.listeners = append(b.listeners, l)
	b.watched.Add(1)
}

func (b *books) endListening(l listener) {
	b.listeners = slices.DeleteFunc(b.listeners, func(other listener) bool { return other == l })
	b.watched.Add(-1)
}

// checker is what those who allocate and free memory know of a Checker.
type checker interface {
	now() Moment
	comes(m *Memory)
	grows(m *Memory)
	hold(m *Memory, size int, s backends.Stream) bool
	takes(m *Memory)
	soon(m *Memory, size int, s backends.Stream)
	fills(m *Memory) (over func())
	frees(m *Memory)
	again(at backends.Address)
	giveBack(all bool) (some bool)
}

// checked is the Checker, or nil.
func (r *Runtime) checked() checker {
	if c := r.books.checker.Load(); c != nil {
		return *c
	}
	return nil
}

// OfHost is the backend's name by which LimitLibrary limits memory of the host, whichever backend serves it.
const OfHost = "host"

// share is the memory of one library on a device or of the host, or with no backend's name all of it.
type share struct {
	library Library
	backend string
	device  int
}

func shareOf(m *Memory) share {
	if m.region.Device == backends.HostDevice {
		return share{m.library, OfHost, backends.HostDevice}
	}
	return share{m.library, m.backend.Name(), m.region.Device}
}

func everywhere(l Library) share { return share{l, "", 0} }

func (b *books) come(m *Memory, size int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if m.booked != b.epoch {
		b.book(m, size)
	}
	for _, l := range b.listeners {
		l.come(m, size)
	}
}

func (b *books) gone(m *Memory, size int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.has(m) {
		b.unbook(m, size)
	}
	for _, l := range b.listeners {
		l.gone(m, size)
	}
}

// grown counts bytes more of an allocation.
func (b *books) grown(m *Memory, by int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.has(m) {
		b.count(m, by)
	}
	for _, l := range b.listeners {
		l.grown(m, by)
	}
}

// has reports whether the memory's bytes are in used.
func (b *books) has(m *Memory) bool { return len(b.limits) > 0 && m.booked == b.epoch }

func (b *books) book(m *Memory, size int) {
	if len(b.limits) > 0 {
		m.booked = b.epoch
		b.count(m, size)
	}
}

func (b *books) unbook(m *Memory, size int) {
	m.booked = 0
	b.count(m, -size)
}

func (b *books) count(m *Memory, bytes int) {
	b.used[shareOf(m)] += int64(bytes)
	b.used[everywhere(m.library)] += int64(bytes)
}

// reserve books memory that is about to be taken, or more of it, if the limits allow that.
func (b *books) reserve(m *Memory, size int) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, s := range []share{shareOf(m), everywhere(m.library)} {
		limit, is := b.limits[s]
		if used := b.inUse(m.runtime, s); is && used+int64(size) > limit {
			return &backends.OutOfMemoryError{Allocator: m.region.Allocator, Device: m.region.Device, Size: size, Limited: true,
				Detail: fmt.Sprintf("the limit is %d bytes for %s%s, of which %d are in use", limit, m.library, s.where(), used)}
		}
	}
	if len(b.limits) > 0 {
		m.booked = b.epoch
		b.count(m, size)
	}
	return nil
}

// inUse is how many bytes there are of a share, without those that are paused.
func (b *books) inUse(r *Runtime, s share) int64 {
	return b.used[s] - r.bytesAway(func(m *Memory) bool { return b.paused(m, s) })
}

func (b *books) paused(m *Memory, s share) bool {
	return b.returning[m.tag] == 0 && (s == shareOf(m) || s == everywhere(m.library))
}

// allow refuses to resume memory for which the limits leave no room. Others find that room taken until returned is
// called, and after it the memory itself.
func (b *books) allow(r *Runtime, t backends.Tag) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for s, limit := range b.limits {
		more := r.bytesAway(func(m *Memory) bool { return m.tag == t && b.paused(m, s) })
		if used := b.inUse(r, s); more > 0 && used+more > limit {
			return &backends.OutOfMemoryError{Allocator: backends.CUDAVMM, Device: s.device, Size: int(more), Limited: true,
				Detail: fmt.Sprintf("the limit is %d bytes for %s%s, of which %d are in use", limit, s.library, s.where(), used)}
		}
	}
	if b.returning == nil {
		b.returning = map[backends.Tag]int{}
	}
	b.returning[t]++
	return nil
}

// returned ends what allow began.
func (b *books) returned(t backends.Tag) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.returning[t]--; b.returning[t] == 0 {
		delete(b.returning, t)
	}
}

func (s share) where() string {
	switch s.backend {
	case "":
		return " in all"
	case OfHost:
		return " on the host"
	}
	return ""
}

// unreserve takes reserve back.
func (b *books) unreserve(m *Memory, size int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.has(m) {
		b.unbook(m, size)
	}
}

// LimitLibrary limits how many bytes a library may have in use. With a backend's name the limit is for all allocators
// of one of its devices. With OfHost it is for host memory, and device is ignored. With no name it is for the host and
// all devices together. backends.NoLimit removes the limit. An allocation beyond it fails with a
// *backends.OutOfMemoryError; memory in use stays. Temporaries of the Runtime count, too.
func (r *Runtime) LimitLibrary(l Library, backend string, device int, bytes int64) error {
	if err := r.check(); err != nil {
		return err
	}
	if bytes < backends.NoLimit {
		return valueError("bytes", bytes, "a count of zero or more, and backends.NoLimit")
	}
	if l >= libraryCount {
		return valueError("library", uint8(l), "one of the constants")
	}
	s := everywhere(l)
	switch backend {
	case "":
	case OfHost:
		s = share{l, OfHost, backends.HostDevice}
	default:
		b, err := r.Named(backend)
		if err != nil {
			return err
		}
		count, err := b.DeviceCount()
		if err != nil {
			return err
		}
		if device == backends.HostDevice {
			if device, err = backing.CurrentDevice(b); err != nil {
				return err
			}
		}
		if device < 0 || device >= count {
			return backing.NoDevice(device, count, "the "+backend+" backend")
		}
		s = share{l, backend, device}
	}
	b := &r.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	_, had := b.limits[s]
	switch {
	case bytes == backends.NoLimit && had:
		delete(b.limits, s)
		b.watched.Add(-1)
	case bytes == backends.NoLimit:
	default:
		if !had {
			b.watched.Add(1)
		}
		if b.limits == nil {
			b.limits = map[share]int64{}
		}
		b.limits[s] = bytes
	}
	b.limited.Store(len(b.limits) > 0)
	switch {
	case len(b.limits) == 0:
		b.used = nil
		b.epoch++
	case b.used == nil:
		b.used = map[share]int64{}
		b.epoch++
		r.eachLiving(func(l *living) {
			b.book(l.Memory, l.Memory.Size())
		})
	}
	return nil
}

// LibraryLimit is a limit that LimitLibrary has set.
type LibraryLimit struct {
	Library Library
	Backend string // OfHost, or "" for all memory
	Device  int
	Limit   int64
	Current int64 // bytes in use
}

// LibraryLimits returns the limits of LimitLibrary.
func (r *Runtime) LibraryLimits() (list []LibraryLimit) {
	if r.check() != nil {
		return nil
	}
	b := &r.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for s, limit := range b.limits {
		list = append(list, LibraryLimit{s.library, s.backend, s.device, limit, b.inUse(r, s)})
	}
	return list
}

// countAway is for memory that was paused before it was counted.
func (m *Memory) countAway() {
	if m.tag != backends.NoTag && m.pauser.IsPaused(m.tag) {
		m.runtime.countAway(m.tag)
	}
}

// come counts memory that was taken. Every allocation of our own passes here.
func (m *Memory) come(size int) {
	r := m.runtime
	r.counters[m.region.Allocator].Add(m, &m.place, size)
	m.countAway()
	if r.books.watched.Load() != 0 {
		if c := r.checked(); c != nil {
			m.life = &lives{allocated: c.now()}
			c.comes(m)
		}
		r.books.come(m, size)
	}
}

// gone counts memory that is freed. Every allocation of our own passes here.
func (m *Memory) gone() {
	r, size := m.runtime, m.Size()
	// The list comes first: a listener that starts now has either seen the memory in the list or is told of its end here.
	r.counters[m.region.Allocator].Remove(&m.place, size)
	if r.books.watched.Load() != 0 {
		if c := r.checked(); c != nil {
			known := m.lives()
			known.freed = c.now()
			m.life = &known
		}
		r.books.gone(m, size)
	}
}

// back undoes gone for memory that could not be freed.
func (m *Memory) back() {
	r, size := m.runtime, m.Size()
	r.counters[m.region.Allocator].Restore(m, &m.place, size)
	m.countAway()
	if r.books.watched.Load() != 0 {
		r.books.come(m, size)
	}
}

// grown counts the bytes that an allocation grew by.
func (m *Memory) grown(by int) {
	r := m.runtime
	r.counters[m.region.Allocator].Grow(by)
	if r.books.watched.Load() != 0 {
		r.books.grown(m, by)
	}
}
