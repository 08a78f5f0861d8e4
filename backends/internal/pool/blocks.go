package pool

import (
	"cmp"
	"slices"
	"sync/atomic"

	"hamr/backends"
)

// kind keeps small blocks from breaking up what large ones need.
type kind int

const (
	small kind = iota
	large
	kindCount
)

func kindOf(size int) kind {
	if size <= LargestSmall {
		return small
	}
	return large
}

func rounded(size int) int {
	to := Alignment
	if size > LargestSmall {
		to = Segment
	}
	return (size + to - 1) / to * to
}

// The states of a block.
const (
	stateFree   = iota // in the list of its owner
	stateLent          // somebody has it
	stateParked        // with a part, or on its way to the list
)

// block is a piece of a segment. What others than its holder read is guarded by Pool.mutex.
type block struct {
	segment        *segment
	at             backends.Address
	size           int
	previous, next *block // beside it in the segment
	state          atomic.Int32
	owner          *stream        // whose work may still use it, and who may have it at once
	moment         uint64         // of the owner's, at which it came back
	event          backends.Event // of what the owner held then, where it has one for each block
}

// segment is memory as the driver gave it.
type segment struct {
	at    backends.Address
	size  int
	kind  kind
	first *block
	lent  int    // blocks that are not free
	used  uint64 // Pool.clock when one of them became free
}

// freeList is blocks in the order of their sizes, then addresses.
type freeList []*block

func compare(b, c *block) int {
	return cmp.Or(cmp.Compare(b.size, c.size), cmp.Compare(b.at, c.at))
}

func (l freeList) atLeast(size int) *block {
	i, _ := slices.BinarySearchFunc(l, size, func(b *block, size int) int { return cmp.Compare(b.size, size) })
	if i == len(l) {
		return nil
	}
	return l[i]
}

func (l *freeList) insert(b *block) {
	i, _ := slices.BinarySearchFunc(*l, b, compare)
	*l = slices.Insert(*l, i, b)
}

func (l *freeList) remove(b *block) {
	i, found := slices.BinarySearchFunc(*l, b, compare)
	if !found {
		panic("pool: a free block is in no list")
	}
	*l = slices.Delete(*l, i, i+1)
}

func (b *block) list() *freeList { return &b.owner.free[b.segment.kind] }

// add returns the block of a new segment, free for anybody.
func (p *Pool) add(at backends.Address, size int, k kind) *block {
	g := &segment{at: at, size: size, kind: k, used: p.tick()}
	g.first = &block{segment: g, at: at, size: size, owner: &p.anybody}
	i, _ := p.segmentAt(at)
	p.segments = slices.Insert(p.segments, i, g)
	p.reserved += size
	p.blocks.Store(at, g.first)
	g.first.list().insert(g.first)
	return g.first
}

// segmentAt returns the place of the segment that starts at an address, or else of the first
// that starts later.
func (p *Pool) segmentAt(at backends.Address) (place int, found bool) {
	return slices.BinarySearchFunc(p.segments, at, func(g *segment, at backends.Address) int {
		return cmp.Compare(g.at, at)
	})
}

// Find returns the memory that Take returned and that an address is in. Of memory that was
// given back the size is zero; ours is false for an address outside of the pool.
func (p *Pool) Find(at backends.Address) (start backends.Address, size int, ours bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	place, exact := p.segmentAt(at)
	if !exact {
		place--
	}
	if place < 0 || at >= p.segments[place].at+backends.Address(p.segments[place].size) {
		return 0, 0, false
	}
	b := p.segments[place].first
	if starts, is := p.blocks.Load(at); is { // as most addresses do that somebody asks about
		b = starts.(*block)
	}
	for b.next != nil && b.next.at <= at {
		b = b.next
	}
	if b.state.Load() != stateLent {
		return 0, 0, true
	}
	return b.at, b.size, true
}

func (p *Pool) tick() uint64 {
	p.clock++
	return p.clock
}

// lend takes a free block from its list, cut to size.
func (p *Pool) lend(b *block, size int) {
	b.list().remove(b)
	if b.size > size {
		rest := &block{segment: b.segment, at: b.at + backends.Address(size), size: b.size - size,
			previous: b, next: b.next, owner: b.owner, moment: b.moment, event: b.event}
		b.event = 0
		if rest.next != nil {
			rest.next.previous = rest
		}
		b.next, b.size = rest, size
		p.blocks.Store(rest.at, rest)
		rest.list().insert(rest)
	}
	p.forgetEventOf(b)
	p.forgetIdle(b.owner)
	b.segment.lent++
	p.lent += b.size
	b.state.Store(stateLent)
}

// returned makes a block free that its owner may still use.
func (p *Pool) returned(b *block) {
	b.segment.lent--
	b.segment.used = p.tick()
	p.lent -= b.size
	b.moment = b.owner.next()
	b.state.Store(stateFree)
	p.join(b)
}

// join puts a free block that is in no list into its owner's, as one with its neighbours.
func (p *Pool) join(b *block) {
	for p.joins(b.previous, b) {
		b = p.absorb(b.previous, b, b.previous)
	}
	for p.joins(b, b.next) {
		b = p.absorb(b, b.next, b.next)
	}
	b.list().insert(b)
}

// joins reports whether neighbours can be one block. A block that anybody may have can join a lasting stream's, since
// that stream can be queried at any time.
func (p *Pool) joins(b, c *block) bool {
	if b == nil || c == nil || b.state.Load() != stateFree || c.state.Load() != stateFree {
		return false
	}
	if b.owner == c.owner {
		return !b.owner.apart()
	}
	anybody := &p.anybody
	return (b.owner == anybody && c.owner.lasting) || (c.owner == anybody && b.owner.lasting)
}

// joinAnybody is join for a block that anybody may have, which stays so.
func (p *Pool) joinAnybody(b *block) {
	if p.joins(b.previous, b) && b.previous.owner == b.owner {
		b = p.absorb(b.previous, b, b.previous)
	}
	if p.joins(b, b.next) && b.next.owner == b.owner {
		b = p.absorb(b, b.next, b.next)
	}
	b.list().insert(b)
}

// absorb makes c, which comes after b, part of b. listed is the one of them that is in a list.
func (p *Pool) absorb(b, c, listed *block) *block {
	listed.list().remove(listed)
	switch {
	case b.owner == c.owner:
		b.moment = max(b.moment, c.moment)
	case b.owner == &p.anybody:
		b.owner, b.moment = c.owner, c.moment
	}
	b.size += c.size
	if b.next = c.next; b.next != nil {
		b.next.previous = b
	}
	p.blocks.Delete(c.at)
	return b
}

// drop forgets a segment, all of whose blocks are free.
func (p *Pool) drop(g *segment) {
	for b := g.first; b != nil; b = b.next {
		b.list().remove(b)
		p.blocks.Delete(b.at)
	}
	i, _ := p.segmentAt(g.at)
	p.segments = slices.Delete(p.segments, i, i+1)
	p.reserved -= g.size
}
