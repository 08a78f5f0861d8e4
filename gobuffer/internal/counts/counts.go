// Package counts counts the allocations of an allocator, and lists those that live, from many goroutines at once.
package counts

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Goroutines that run at the same time count in different parts, mostly.
const (
	partBits  = 3
	partCount = 1 << partBits
	// CacheBytes is room for cache lines that two processors do not share: they fetch lines in pairs.
	CacheBytes = 128
)

// Counter counts and lists the memory of one allocator, which M is.
type Counter[M any] struct {
	Adopted Tally
	parts   [partCount]part[M]
	roomy   atomic.Uint32 // a bit for each part that ever had room
	mutex   sync.Mutex
	peak    int64 // the bytes in use and all room; guarded by mutex
}

// part is what some goroutines have counted.
type part[M any] struct {
	mutex sync.Mutex // of what follows
	made  int64
	freed int64
	room  int64       // bytes that may come to be used without a new peak
	lives []Living[M] // by Place.index
	free  []uint32    // places that nobody has
	roomy bool        // its bit is set in counter.roomy
	_     [CacheBytes - 5*8 - 2*3*8]byte
}

// Living is memory that is not freed yet.
type Living[M any] struct {
	Memory *M
	Record *Record // nil, or of the Recorder that saw it come
	away   int     // bytes of it that are not in use
}

// Record is what an allocation knows of how it came to be.
type Record struct {
	Thread int
	Time   int64
	Stack  int64
}

// Place is where memory is listed. Memory keeps it.
type Place struct {
	index uint32
	part  uint8
}

// Tally is a number that is the sum of its parts.
type Tally [partCount]struct {
	atomic.Int64
	_ [CacheBytes - 8]byte
}

// Add adds n.
func (t *Tally) Add(n int64) { t[here()].Add(n) }

// Load returns the sum. Parts are read one after the other.
func (t *Tally) Load() (sum int64) {
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

// Add counts and lists new memory.
func (c *Counter[M]) Add(m *M, at *Place, size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	p.made++
	p.list(m, at, i)
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// list keeps the memory among those that live.
func (p *part[M]) list(m *M, at *Place, i int) {
	at.part = uint8(i)
	if last := len(p.free) - 1; last >= 0 {
		at.index = p.free[last]
		p.free = p.free[:last]
		p.lives[at.index].Memory = m
		return
	}
	at.index = uint32(len(p.lives))
	p.lives = append(p.lives, Living[M]{Memory: m})
}

// use takes room for bytes, if there is enough.
func (p *part[M]) use(size int) bool {
	if p.room < int64(size) {
		return false
	}
	p.room -= int64(size)
	return true
}

// Grow counts bytes that an allocation has more.
func (c *Counter[M]) Grow(size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// rise is Grow where the part has too little room.
func (c *Counter[M]) rise(i, size int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms, sum := c.takeRoom()
	if sum < int64(size) {
		c.peak += int64(size) - sum
		return
	}
	c.giveRoom(i, rooms, sum-int64(size))
}

// Remove counts memory that is freed.
func (c *Counter[M]) Remove(at *Place, size int) {
	p := &c.parts[at.part]
	p.mutex.Lock()
	p.freed++
	c.leave(int(at.part), int64(size-p.lives[at.index].away))
	p.lives[at.index] = Living[M]{}
	p.free = append(p.free, at.index)
	p.mutex.Unlock()
}

// leave counts bytes that are not in use any more. The mutex of the part is held.
func (c *Counter[M]) leave(i int, bytes int64) {
	p := &c.parts[i]
	p.room += bytes
	if !p.roomy {
		p.roomy = true
		c.roomy.Or(1 << i)
	}
}

// SetAway counts the bytes of memory that lives as in use no more, or as in use again. size is how many, and 0 of
// memory that stays as it is.
func (c *Counter[M]) SetAway(away bool, size func(m *M) int) {
	for i := range c.parts {
		p, bytes := &c.parts[i], 0
		p.mutex.Lock()
		for place := range p.lives {
			l := &p.lives[place]
			if l.Memory == nil || l.away > 0 == away {
				continue
			}
			if n := size(l.Memory); n > 0 && away {
				l.away = n
				bytes += n
			} else if n > 0 { // it may have grown since
				bytes += l.away
				l.away = 0
			}
		}
		fits := true
		if away {
			c.leave(i, int64(bytes))
		} else {
			fits = p.use(bytes)
		}
		p.mutex.Unlock()
		if !fits {
			c.rise(i, bytes)
		}
	}
}

// Restore undoes Remove.
func (c *Counter[M]) Restore(m *M, at *Place, size int) {
	i := here()
	p := &c.parts[i]
	p.mutex.Lock()
	p.freed--
	p.list(m, at, i)
	fits := p.use(size)
	p.mutex.Unlock()
	if !fits {
		c.rise(i, size)
	}
}

// Each calls f with all memory that lives, of a part at a time, which nobody frees meanwhile.
func (c *Counter[M]) Each(f func(l *Living[M])) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mutex.Lock()
		for place := range p.lives {
			if l := &p.lives[place]; l.Memory != nil {
				f(l)
			}
		}
		p.mutex.Unlock()
	}
}

// Remember says how memory came to be.
func (c *Counter[M]) Remember(at *Place, known *Record) {
	p := &c.parts[at.part]
	p.mutex.Lock()
	p.lives[at.index].Record = known
	p.mutex.Unlock()
}

// takeRoom takes all room away, with the counter's mutex held, so that whoever adds waits.
func (c *Counter[M]) takeRoom() (rooms [partCount]int64, sum int64) {
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
func (c *Counter[M]) giveRoom(i int, rooms [partCount]int64, sum int64) {
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

func (c *Counter[M]) give(i int, room int64) {
	if room == 0 {
		return
	}
	p := &c.parts[i]
	p.mutex.Lock()
	p.room += room
	p.mutex.Unlock()
	c.roomy.Or(1 << i)
}

// Allocations returns how many there were so far, and how many live.
func (c *Counter[M]) Allocations() (made, live int64) {
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

// Bytes returns how many are in use now, and the most that ever were at once.
func (c *Counter[M]) Bytes() (current, peak int64) {
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

// ResetPeak makes the peak the present value.
func (c *Counter[M]) ResetPeak() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, sum := c.takeRoom()
	c.peak -= sum
}
