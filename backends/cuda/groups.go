package cuda

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// group is all mapped memory of a tag. What it has is guarded by its lock.
type group struct {
	tagged
	extents []*extent
	spare   []lockedBlock // for the next contents
	kept    *contents     // while it is paused, or nil
	keep    backends.Keep

	holds int // calls that enqueue work on it; guarded by pauses.mu
}

// lockedBlock is page-locked memory.
type lockedBlock struct {
	at   backends.Address
	size int
}

// contents are what a group's memory held when it was paused.
type contents struct {
	blocks map[*extent]lockedBlock
	file   *os.File // without a name
	begins map[*extent]int64
}

// pauses are the tags that memory was taken for.
type pauses struct {
	ever   atomic.Bool // there is one: memory is held while work is enqueued
	mu     sync.Mutex  // of changes of all groups' states, too
	ended  sync.Cond   // a hold has
	groups map[backends.Tag]*group
}

// groupOf returns the group of a tag, which it makes.
func (p *pauses) groupOf(t backends.Tag) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups == nil {
		p.groups = map[backends.Tag]*group{}
		p.ended.L = &p.mu
	}
	g := p.groups[t]
	if g == nil {
		g = &group{tagged: tagged{tag: t}}
		p.groups[t] = g
		p.ever.Store(true)
	}
	return g
}

// all are the groups, the oldest tag first.
func (p *pauses) all() []*group {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.groups), func(g, h *group) int { return cmp.Compare(g.tag, h.tag) })
}

// turn changes a group's state. Nobody holds its memory any more when it begins to be paused.
func (p *pauses) turn(g *group, to pauseState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.state.Store(int32(to))
	//mutate:never memory is paused under a call that enqueues work on it
	for to == pausing && g.holds > 0 {
		p.ended.Wait()
	}
}

// hold keeps the groups of memory from being paused until release is called.
func (p *pauses) hold(x *extents, at []backends.Region) (release func(), err error) {
	var held []*group
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range at {
		g := x.groupAt(r.Address)
		if g == nil || slices.Contains(held, g) {
			continue
		}
		//mutate:never work begins on memory that is given back
		if !g.is(running) {
			return nil, &backends.PausedError{Tag: g.tag}
		}
		held = append(held, g)
	}
	for _, g := range held {
		g.holds++
	}
	return func() { p.letGo(held) }, nil
}

func (p *pauses) letGo(held []*group) {
	if len(held) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range held {
		g.holds--
	}
	p.ended.Broadcast()
}

// lock takes the lock of a group that is not paused. A nil group has none.
func (g *group) lock() error {
	if g == nil {
		return nil
	}
	g.changing.Lock()
	if g.is(running) {
		return nil
	}
	g.changing.Unlock()
	return &backends.PausedError{Tag: g.tag}
}

func (g *group) unlock() {
	if g != nil {
		g.changing.Unlock()
	}
}

// devices are those that the group has memory of, in their order.
func (g *group) devices() []*device {
	list := map[int]*device{}
	for _, e := range g.extents {
		list[e.device.number] = e.device
	}
	return slices.SortedFunc(maps.Values(list), func(c, d *device) int { return cmp.Compare(c.number, d.number) })
}

// bytes is how much memory there is on a device, or in all for nil.
func (g *group) bytes(d *device) (total int) {
	for _, e := range g.extents {
		if d == nil || e.device == d {
			total += sum(e.mapped)
		}
	}
	return total
}

// locked is how many bytes of page-locked memory the group has.
func (g *group) locked() (bytes int64) {
	for _, block := range g.spare {
		bytes += int64(block.size)
	}
	if g.kept != nil {
		for _, block := range g.kept.blocks {
			bytes += int64(block.size)
		}
	}
	return bytes
}

// takeSpare returns a block of exactly that size.
func (g *group) takeSpare(size int) (lockedBlock, bool) {
	for i, block := range g.spare {
		if block.size == size {
			g.spare = slices.Delete(g.spare, i, i+1)
			return block, true
		}
	}
	return lockedBlock{}, false
}

// each calls visit with each piece of the group's memory until that fails.
func (g *group) each(visit func(p place) error) error {
	for _, e := range g.extents {
		if err := e.each(visit); err != nil {
			return err
		}
	}
	return nil
}
