package gobuffer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Misuse is one of four errors: a write to memory that was freed and not allocated again, a second release of memory,
// work that was enqueued and uses freed memory, or two pieces of work on memory that are not ordered although one of
// them writes.
type Misuse struct {
	Library   Library // who had the memory; AnyLibrary where it is not known
	Region    backends.Region
	Size      int             // zero where it is not known
	Stream    backends.Stream // that the release was ordered on
	Offset    int             // of the first byte that was written
	Bytes     int             // how many were
	Value     byte            // of the first one
	Allocated Moment
	Freed     Moment
	Again     Moment // of the second release, or zero
	Used      *Usage // the work that was enqueued, or nil
	Earlier   *Usage // what it is not in order with, or nil
}

// Poison is what each byte of memory is that was given back, while there is a Checker.
const Poison = 0xdb

// Checker keeps freed memory for a while and fills it with Poison, in the order of the stream that it was freed on.
// When its time is over, or memory runs out, the Checker looks at the bytes and frees the memory.
type Checker struct {
	runtime *Runtime
	told    checker // itself, for the books
	most    int64
	stack   func() int64
	mutex   sync.Mutex // of what follows
	kept    []*keptMemory
	bytes   int64
	freed   uint64 // how many pieces were kept so far
	found   []Misuse
	lost    int                          // more than mostFound
	taken   map[backends.Address]*Memory // from libraries, and not free yet
	stopped bool
	ending  sync.Mutex // of who looks at a piece of memory and gives it back
	busy    atomic.Bool
	witness *witness
	watches watches
	asked   atomic.Pointer[func(thread int) int64]
}

const (
	mostFound = 1000
	mostKept  = 4096     // allocations, of any size
	mostAhead = 64 << 20 // bytes, or as many as may be kept: so far behind those who free may be who looks
	readPart  = 1 << 20  // bytes
)

// keptMemory is memory that was freed and not given back.
type keptMemory struct {
	memory *Memory // nobody has a reference to it
	number uint64  // in the order of the releases
	size   int
	stream backends.Stream
	over   *order.Event // the writing of the poison, or nil where that is over
	lives  lives
}

var errChecking = errors.New("memory is being checked already")

// Check begins to keep up to most bytes of freed memory and to look for writes to it. Memory that exists already is
// checked, too, without knowledge of where it was allocated. stack is as for Record. There is one Checker at a time. It
// costs one write of each freed byte and one read of it later.
func (r *Runtime) Check(most int64, stack func() int64) (*Checker, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if most < 0 {
		return nil, valueError("most", most, "a count of zero or more bytes")
	}
	c := &Checker{runtime: r, most: most, stack: stack, taken: map[backends.Address]*Memory{}}
	c.witness = newWitness(c)
	c.told = c
	if !r.books.checker.CompareAndSwap(nil, &c.told) {
		return nil, errChecking
	}
	r.books.watched.Add(1)
	r.grants.Drop() // whoever freed it may do so again
	return c, nil
}

// now is the moment, for a caller that allocates or frees.
func (c *Checker) now() Moment {
	m := Moment{Thread: unix.Gettid(), Time: time.Now().UnixNano()}
	if c.stack != nil {
		m.Stack = c.stack()
	}
	return m
}

// hold keeps owned memory instead of freeing it. It returns false if the memory must be freed now. All work that uses
// the memory is on stream s, or on any stream for backends.EveryStream.
func (c *Checker) hold(m *Memory, size int, s backends.Stream) bool {
	if size <= 0 || int64(size) > c.most || m.isTakenOver() || m.region.Address == 0 {
		return false
	}
	if m.region.Allocator == backends.Shared {
		return false // other processes may have it, and go on
	}
	if s != backends.EveryStream {
		if m.freeWaits { // for others' work, too, which the pattern has to come behind
			if over, _ := order.SettleDevice(m.backend, m.context()); !over {
				return false
			}
		}
		return c.keep(m, size, s)
	}
	c.soon(m, size, s)
	c.runtime.grants.Aside(func() {
		over, _ := order.SettleDevice(m.backend, m.context())
		defer c.witness.fills(m)()
		if !over || !c.keep(m, size, 0) {
			c.frees(m)
			_ = m.freeOrPostpone(size, s)
		}
	})
	return true
}

// captured reports whether the pattern would become part of a graph, or would end another stream's capture.
func (m *Memory) captured(s backends.Stream) bool {
	if m.streams == nil {
		return false
	}
	if (&order.Work{Backend: m.backend, Device: m.context(), Stream: s}).Captured() {
		return true
	}
	_, err := m.streams.Idle(m.context(), s)
	return errors.Is(err, backends.ErrCapturing)
}

// keep is hold for memory that only stream s uses.
func (c *Checker) keep(m *Memory, size int, s backends.Stream) bool {
	if c.isBehind() || m.captured(s) || m.backend.Fill(m.region, []byte{Poison}, size, s) != nil {
		return false
	}
	kept := &keptMemory{memory: m, size: size, stream: s, lives: m.lives()}
	if m.streams != nil {
		w, err := m.workOn(s)
		if err == nil {
			kept.over, err = w.Record()
		}
		if err != nil {
			if over, _ := order.SettleDevice(m.backend, m.context()); !over {
				return false
			}
		}
	}
	c.witness.freed(m, kept)
	c.mutex.Lock()
	stopped := c.stopped
	if !stopped {
		c.freed++
		kept.number = c.freed
		c.kept = append(c.kept, kept)
		c.bytes += int64(size)
	}
	full := c.bytes > c.most || len(c.kept) > mostKept
	c.mutex.Unlock()
	if stopped {
		c.end(kept)
		return true
	}
	if full && c.busy.CompareAndSwap(false, true) {
		// Who frees may hold locks that a device's work waits for.
		go func() {
			defer c.busy.Store(false)
			c.giveBack(false)
		}()
	}
	return true
}

// isBehind reports whether memory is freed faster than it can be checked, so that no more is to be kept.
func (c *Checker) isBehind() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bytes > c.most+max(c.most, mostAhead)
}

// giveBack checks kept memory, the oldest first, and frees it: all that was freed before the call, or as much as
// exceeds the limit. It reports whether there was any.
func (c *Checker) giveBack(all bool) (some bool) {
	if all {
		c.runtime.grants.Wait()
		_ = c.runtime.ReleasePostponed() // the device reports again what went wrong there
	}
	c.mutex.Lock()
	last := c.freed
	c.mutex.Unlock()
	for c.giveBackOldest(all, last) {
		some = true
	}
	return some
}

// giveBackOldest is giveBack for one allocation. It holds the lock for one allocation only, since others may free as
// fast as this checks.
func (c *Checker) giveBackOldest(all bool, last uint64) bool {
	c.ending.Lock()
	defer c.ending.Unlock()
	c.mutex.Lock()
	//mutate:replace a look at freed memory goes on while more is freed
	//mutate:with all && c.kept[0].number > last => false
	if len(c.kept) == 0 || all && c.kept[0].number > last || !all && c.bytes <= c.most && len(c.kept) <= mostKept {
		c.mutex.Unlock()
		return false
	}
	oldest := c.kept[0]
	c.kept[0] = nil
	c.kept = c.kept[1:]
	c.bytes -= int64(oldest.size)
	c.mutex.Unlock()
	c.look(oldest)
	c.end(oldest)
	return true
}

// takes is told of memory that a library frees, before that is kept.
func (c *Checker) takes(m *Memory) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.taken[m.region.Address] = m
}

// frees is told of memory before others can be given it.
func (c *Checker) frees(m *Memory) {
	c.witness.remove(m)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.taken[m.region.Address] == m {
		delete(c.taken, m.region.Address)
	}
}

// again reports a library's release of what no library has.
func (c *Checker) again(at backends.Address) {
	if at == 0 {
		return
	}
	found := Misuse{Library: AnyLibrary, Region: backends.Region{Address: at, Allocator: grantedAs}, Again: c.now()}
	c.mutex.Lock()
	if m := c.taken[at]; m != nil {
		known := m.lives()
		found.Library, found.Region, found.Size, found.Stream = m.library, m.region, m.Size(), m.ordered()
		found.Allocated, found.Freed = known.allocated, known.freed
	}
	c.mutex.Unlock()
	c.tell(found)
}

func (c *Checker) end(k *keptMemory) {
	c.frees(k.memory)
	k.end()
}

// end frees the memory. Its stream may have ended since, and all work on it is over.
func (k *keptMemory) end() {
	m, s := k.memory, backends.Stream(0)
	var late error
	if k.over != nil {
		late = errors.Join(k.over.Wait(), k.over.Release())
	}
	if m.streams != nil {
		resolved, err := m.streams.Resolve(m.context(), 0)
		late, s = errors.Join(late, err), resolved
		if late != nil {
			// Whether the pattern is there is not known.
			s = backends.EveryStream
		}
	}
	_ = m.freeOrPostpone(k.size, s)
}

// Found returns the misuses that were found since the last call, and how many more than 1,000 there were. It covers
// memory whose time is over.
func (c *Checker) Found() (found []Misuse, more int) {
	if c == nil || c.runtime == nil {
		return nil, 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, more = c.found, c.lost
	c.found, c.lost = nil, 0
	return found, more
}

// GiveBack checks and frees all memory that is kept now. Found returns the result.
func (c *Checker) GiveBack() {
	if c != nil && c.runtime != nil {
		c.giveBack(true)
	}
}

// Look checks and frees all memory that is kept now, and returns what Found does then.
func (c *Checker) Look() (found []Misuse, more int) {
	if c == nil || c.runtime == nil {
		return nil, 0
	}
	c.giveBack(true)
	return c.Found()
}

// Stop ends the checking and returns what Look does.
func (c *Checker) Stop() (found []Misuse, more int) {
	if c == nil || c.runtime == nil {
		return nil, 0
	}
	if c.runtime.books.checker.CompareAndSwap(&c.told, nil) {
		c.runtime.books.watched.Add(-1)
		c.watches.end()
		c.mutex.Lock()
		c.stopped = true
		c.mutex.Unlock()
	}
	return c.Look()
}
