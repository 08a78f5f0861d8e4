package gobuffer

import (
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

// counter counts the memory of one allocator.
type counter struct {
	adopted tally
	parts   [partCount]part
	mutex   sync.Mutex
	peak    int64 // the bytes in use and all room; guarded by mutex
}

// part is what some goroutines have counted.
type part struct {
	made, freed atomic.Int64
	room        atomic.Int64 // bytes that may come to be used without a new peak
	_           [partBytes - 3*8]byte
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

func (c *counter) add(size int) {
	c.parts[here()].made.Add(1)
	c.grow(size)
}

// grow counts bytes that an allocation has more.
func (c *counter) grow(size int) {
	i := here()
	own := &c.parts[i]
	for room := own.room.Load(); room >= int64(size); room = own.room.Load() {
		if own.room.CompareAndSwap(room, room-int64(size)) {
			return
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms, sum := c.takeRoom()
	if sum < int64(size) {
		c.peak += int64(size) - sum
		return
	}
	c.giveRoom(i, rooms, sum-int64(size))
}

func (c *counter) remove(size int) {
	own := &c.parts[here()]
	own.freed.Add(1)
	own.room.Add(int64(size))
}

// restore undoes remove.
func (c *counter) restore(size int) {
	c.parts[here()].freed.Add(-1)
	c.grow(size)
}

// takeRoom takes all room away, with the mutex held, so that whoever adds waits.
func (c *counter) takeRoom() (rooms [partCount]int64, sum int64) {
	for i := range rooms {
		if part := &c.parts[i]; part.room.Load() != 0 {
			rooms[i] = part.room.Swap(0)
			sum += rooms[i]
		}
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
			c.parts[other].room.Add(sum / shares)
		}
	}
	c.parts[i].room.Add(sum % shares)
}

func (c *counter) allocations() (made, live int64) {
	// What is freed was made before.
	for i := range c.parts {
		live -= c.parts[i].freed.Load()
	}
	for i := range c.parts {
		made += c.parts[i].made.Load()
	}
	return made, made + live
}

func (c *counter) bytes() (current, peak int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms, sum := c.takeRoom()
	for i, room := range rooms {
		if room > 0 {
			c.parts[i].room.Add(room)
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
