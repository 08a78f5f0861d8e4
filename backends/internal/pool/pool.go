// Package pool hands freed memory out again without asking the driver. It knows nothing of
// any vendor: a Source stands for the driver.
//
// Memory is taken from the driver in segments, which are cut into blocks. A block that is given back remembers the
// stream that it was last used on. Work on that stream may use it at once. Work on another stream may use it only
// when the first has passed the moment at which the block was given back. Free neighbours become one block again.
package pool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// Source is the memory, streams and events of one device. All methods are safe for concurrent
// use and call nothing of the Pool.
type Source interface {
	// Allocate returns memory that nobody uses, aligned to 256 bytes at least.
	Allocate(size int) (backends.Address, error)
	// Free waits for all work on the device, other libraries' included, and gives memory back.
	Free(at backends.Address) error
	// Full reports whether an error of Allocate's says that memory ran out.
	Full(err error) bool
	// Lasting reports whether s never ends, or Pool.EndStream is called before it does. Any other stream may end at any
	// time, and its handle may then be another stream's.
	Lasting(s backends.Stream) bool
	// Idle reports whether all work on s, which is a lasting one, is done.
	Idle(s backends.Stream) (bool, error)
	// Record returns an event of what s holds now; Destroy ends it.
	Record(s backends.Stream) (backends.Event, error)
	Done(e backends.Event) (bool, error)
	// Wait makes what is enqueued on s from now on run after e.
	Wait(s backends.Stream, e backends.Event) error
	Destroy(e backends.Event)
	// Synchronize blocks until all work on the device is done.
	Synchronize() error
}

// Sizes in bytes.
const (
	// Alignment of blocks, and what sizes of small ones are multiples of.
	Alignment = 512
	// Segment is what small blocks are cut from, and what sizes of large ones are multiples
	// of: drivers map memory in pages of this size.
	Segment = 2 << 20
	// LargestSmall is half a segment: larger blocks would leave the other half to waste.
	LargestSmall = Segment / 2
)

// ErrNotLent is the error for memory that is given back twice.
var ErrNotLent = errors.New("the memory was given back before")

// Pool is the memory of one device. All methods are safe for concurrent use.
type Pool struct {
	source Source
	keep   int
	beside func(int) int // bytes taken by others within the limit, or nil
	limit  atomic.Int64  // bytes taken from the driver at most, or NoLimit

	parts   [partCount]part
	lasting atomic.Pointer[map[backends.Stream]*stream]
	blocks  sync.Map // *block of each Address that one starts at

	trimming sync.Mutex // held by who gives segments to the driver; before mutex
	mutex    sync.Mutex // of all below, and of what blocks, segments and streams hold
	streams  map[backends.Stream]*stream
	ended    []*stream
	anybody  stream     // owns the blocks that any stream may have
	lost     stream     // owns those whose stream could not be asked, until the device is at rest
	segments []*segment // by address
	reserved int        // bytes in segments
	lent     int        // bytes in blocks that are lent, or with a part
	asked    int        // bytes that the driver is being asked for
	clock    uint64
	counts   counts
}

type counts struct {
	hits, misses int64
	mostReserved int
}

// New returns a Pool that keeps up to keep bytes of memory which nobody uses.
func New(source Source, keep int) *Pool {
	p := &Pool{source: source, keep: keep, streams: map[backends.Stream]*stream{}}
	p.anybody.special, p.lost.special = true, true
	p.lasting.Store(&map[backends.Stream]*stream{})
	p.limit.Store(NoLimit)
	return p
}

// Take returns memory for work on a stream: what is enqueued there from now on runs after
// all earlier uses. For backends.EveryStream nobody uses the memory any more. The errors are
// the source's.
func (p *Pool) Take(size int, s backends.Stream) (backends.Address, error) {
	size = rounded(size)
	owner := p.lastingStream(s)
	if owner != nil {
		if b := p.parts[here()].take(size, owner); b != nil {
			return b.at, nil
		}
	}
	if b := p.takeFree(size, s, owner); b != nil {
		return b.at, nil
	}
	b, err := p.fresh(size)
	if err != nil {
		return 0, err
	}
	return b.at, nil
}

// takeFree is Take from what is there.
func (p *Pool) takeFree(size int, s backends.Stream, owner *stream) *block {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if owner == nil {
		owner = p.streams[s]
	}
	b := p.find(size, s, owner)
	if b == nil && p.flush() {
		b = p.find(size, s, owner)
	}
	if b == nil {
		p.poll()
		b = p.find(size, s, owner)
	}
	if b == nil {
		p.counts.misses++
		return nil
	}
	p.counts.hits++
	p.lend(b, size)
	return b
}

// find returns the smallest block that s may have, or nil.
func (p *Pool) find(size int, s backends.Stream, owner *stream) *block {
	kind := kindOf(size)
	free := p.anybody.free[kind].atLeast(size)
	if owner == nil || owner.ended.Load() {
		return free
	}
	own := owner.free[kind].atLeast(size)
	switch {
	case own == nil || (free != nil && free.size < own.size):
		return free
	case owner.lasting:
		return own
	case free != nil:
		return free
	}
	// The handle may be another stream's by now.
	//mutate:never a pool takes another stream of the same handle for the same
	if !p.over(own.event) && p.source.Wait(s, own.event) != nil {
		return nil
	}
	return own
}

// fresh returns a block of a new segment.
func (p *Pool) fresh(size int) (*block, error) {
	whole := size
	if kindOf(size) == small {
		whole = Segment
	}
	at, err := p.ask(whole)
	if p.full(err) && whole > size {
		whole = size
		at, err = p.ask(whole)
	}
	if p.full(err) {
		if _, failed := p.release(true); failed != nil {
			return nil, errors.Join(err, failed)
		}
		at, err = p.ask(whole)
	}
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	b := p.add(at, whole, kindOf(size))
	p.asked -= whole
	p.counts.mostReserved = max(p.counts.mostReserved, p.reserved)
	p.lend(b, size)
	return b, nil
}

// ask takes memory from the driver, within the limit. Its bytes stay in p.asked.
func (p *Pool) ask(size int) (backends.Address, error) {
	limit, others := int(p.limit.Load()), 0
	if limit >= 0 && p.beside != nil {
		p.mutex.Lock()
		ours := p.reserved + p.asked + size
		p.mutex.Unlock()
		others = p.beside(ours)
	}
	p.mutex.Lock()
	there := p.reserved + p.asked + others
	over := limit >= 0 && there+size > limit
	if !over {
		p.asked += size
	}
	p.mutex.Unlock()
	if over {
		return 0, &LimitError{Limit: limit, Reserved: there, Size: size}
	}
	at, err := p.source.Allocate(size)
	if err != nil {
		p.mutex.Lock()
		p.asked -= size
		p.mutex.Unlock()
	}
	return at, err
}

// GiveBack takes back memory that only the present work on stream s still uses. ours is false for memory that Take
// did not return.
func (p *Pool) GiveBack(at backends.Address, s backends.Stream) (ours bool, err error) {
	found, ok := p.blocks.Load(at)
	if !ok {
		return false, nil
	}
	b := found.(*block)
	if !b.state.CompareAndSwap(stateLent, stateParked) {
		return true, fmt.Errorf("%#x: %w", uintptr(at), ErrNotLent)
	}
	owner := p.lastingStream(s)
	if owner != nil && p.parts[here()].put(b, owner, p.keep/partShare) {
		return true, nil
	}
	p.mutex.Lock()
	p.owned(b, s)
	p.returned(b)
	over := p.surplus() > 0
	p.mutex.Unlock()
	if over {
		_, err = p.release(false)
	}
	return true, err
}
