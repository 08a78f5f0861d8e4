package gobuffer

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
)

// Goroutines that run at the same time count in different parts, mostly.
const (
	partBits  = 3
	partCount = 1 << partBits
	// A part has cache lines of its own; processors fetch them in pairs.
	partBytes = 128
)

// counter counts and lists the memory of one allocator.
type counter struct {
	adopted tally
	parts   [partCount]part
	roomy   atomic.Uint32 // a bit for each part that ever had room
	mutex   sync.Mutex
	peak    int64 // the bytes in use and all room; guarded by mutex
}

// part is what some goroutines have counted.
type part struct {
	mutex sync.Mutex // of what follows
	made  int64
	freed int64
	room  int64    // bytes that may come to be used without a new peak
	lives []living // by Memory.place
	free  []uint32 // places that nobody has
	roomy bool     // its bit is set in counter.roomy
	_     [partBytes - 5*8 - 2*3*8]byte
}

// living is memory that is not freed yet.
type living struct {
	memory *Memory
	record *record // nil, or of the Recorder that saw it come
}

// tally is a number that is the sum of its parts.
type tally [partCount]struct {
	atomic.Int64
	_ [partBytes - 8]byte
}

// Add adds n.
func (t *tally) Add(n int64) { t[here()].Add(n) }

// Load returns the sum. Parts are read one after the other.
func (t *tally) Load() (sum int64) {
	for i := range t {
		sum += t[i].Load()
	}
	return sum
}

// here is the part for the calling goroutine, as its stack says: the same each time,
// nearly, and seldom that of another.
func here() int {
	const smallestStack, spread = 11, 2654435769
	var onStack byte
	return int(uint32(uintptr(unsafe.Pointer(&onStack))>>smallestStack) * spread >> (32 - partBits))
}

// add counts and lists new memory.
func (c *counter) add(m *Memory, size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	p.made++
	p.list(m, i)
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// list keeps the memory among those that live.
func (p *part) list(m *Memory, i int) {
	m.part = uint8(i)
	if last := len(p.free) - 1; last >= 0 {
		m.place = p.free[last]
		p.free = p.free[:last]
		p.lives[m.place].memory = m
		return
	}
	m.place = uint32(len(p.lives))
	p.lives = append(p.lives, living{memory: m})
}

// use takes room for bytes, if there is enough.
func (p *part) use(size int) bool {
	if p.room < int64(size) {
		return false
	}
	p.room -= int64(size)
	return true
}

// grow counts bytes that an allocation has more.
func (c *counter) grow(size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// rise is grow where the part has too little room.
func (c *counter) rise(i, size int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms, sum := c.takeRoom()
	if sum < int64(size) {
		c.peak += int64(size) - sum
		return
	}
	c.giveRoom(i, rooms, sum-int64(size))
}

func (c *counter) remove(m *Memory, size int) {
	p := &c.parts[m.part]
	p.mutex.Lock()
	p.freed++
	p.room += int64(size)
	if !p.roomy {
		p.roomy = true
		c.roomy.Or(1 << m.part)
	}
	p.lives[m.place] = living{}
	p.free = append(p.free, m.place)
	p.mutex.Unlock()
}

// restore undoes remove.
func (c *counter) restore(m *Memory, size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	p.freed--
	p.list(m, i)
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// each calls f with all memory that lives, of a part at a time, which nobody frees meanwhile.
func (c *counter) each(f func(l *living)) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mutex.Lock()
		for place := range p.lives {
			if l := &p.lives[place]; l.memory != nil {
				f(l)
			}
		}
		p.mutex.Unlock()
	}
}

// remember says how memory came to be.
func (c *counter) remember(m *Memory, known *record) {
	p := &c.parts[m.part]
	p.mutex.Lock()
	p.lives[m.place].record = known
	p.mutex.Unlock()
}

// takeRoom takes all room away, with the counter's mutex held, so that whoever adds waits.
func (c *counter) takeRoom() (rooms [partCount]int64, sum int64) {
	for left := c.roomy.Load(); left != 0; left &= left - 1 {
		i := bits.TrailingZeros32(left)
		p := &c.parts[i]
		p.mutex.Lock()
		rooms[i], p.room = p.room, 0
		p.mutex.Unlock()
		sum += rooms[i]
	}
	return rooms, sum
}

// giveRoom gives sum bytes to part i and to those that had room, in equal shares.
func (c *counter) giveRoom(i int, rooms [partCount]int64, sum int64) {
	rooms[i] = max(rooms[i], 1)
	shares := int64(0)
	for _, room := range rooms {
		shares += min(room, 1)
	}
	for other, room := range rooms {
		if room > 0 {
			c.give(other, sum/shares)
		}
	}
	c.give(i, sum%shares)
}

func (c *counter) give(i int, room int64) {
	if room == 0 {
		return
	}
	p := &c.parts[i]
	p.mutex.Lock()
	p.room += room
	p.mutex.Unlock()
	c.roomy.Or(1 << i)
}

func (c *counter) allocations() (made, live int64) {
	// What is freed was made before.
	for i := range c.parts {
		p := &c.parts[i]
		p.mutex.Lock()
		live -= p.freed
		p.mutex.Unlock()
	}
	for i := range c.parts {
		p := &c.parts[i]
		p.mutex.Lock()
		made += p.made
		p.mutex.Unlock()
	}
	return made, made + live
}

func (c *counter) bytes() (current, peak int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms, sum := c.takeRoom()
	for i, room := range rooms {
		if room > 0 {
			c.give(i, room)
		}
	}
	return c.peak - sum, c.peak
}

func (c *counter) resetPeak() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, sum := c.takeRoom()
	c.peak -= sum
}

// Statistics counts the memory of one allocator.
type Statistics struct {
	Allocator backends.Allocator
	Live      int64 // allocations not yet freed
	Current   int64 // bytes in them
	// Peak is the most bytes there ever were at once. What one goroutine frees while
	// another allocates may count as still there.
	Peak    int64
	Made    int64 // allocations since the start
	Adopted int64 // foreign arrays in use now; their bytes are not counted
	Kept    int64 // bytes in temporaries that are kept, see Array.Cached
	Reused  int64 // how often one was handed out again, since the start
}

// Statistics returns the counters of every allocator that was ever used. The
// figures of one allocator are read one after the other, not at one instant.
func (r *Runtime) Statistics() []Statistics {
	if r.check() != nil {
		return nil
	}
	var list []Statistics
	for _, a := range backends.Allocators() {
		c := &r.counters[a]
		s := Statistics{Allocator: a, Adopted: c.adopted.Load()}
		s.Made, s.Live = c.allocations()
		if s.Made == 0 && s.Adopted == 0 {
			continue
		}
		s.Current, s.Peak = c.bytes()
		s.Kept, s.Reused = r.kept.bytes(a), r.kept.reused[a].Load()
		list = append(list, s)
	}
	return list
}

// ResetPeaks makes every peak the present value.
func (r *Runtime) ResetPeaks() {
	if r.check() != nil {
		return
	}
	for i := range r.counters {
		r.counters[i].resetPeak()
	}
}

func (r *Runtime) eachLiving(f func(l *living)) {
	for a := range r.counters {
		r.counters[a].each(f)
	}
}
