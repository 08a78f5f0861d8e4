package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"hamr/backends"
)

// extent is one allocation of CUDAVMM: addresses side by side, to the first of which memory is
// mapped. One call at a time changes it; extents.mu guards its fields.
type extent struct {
	device   *device
	start    backends.Address
	reserved []int // bytes of each reservation
	mapped   []int // bytes of each piece of memory

	group *group // that it is paused with, or nil
	away  []away // of each piece while that is paused, or nil
	lent  bool   // it is cut by a pool

	shared   bool // by descriptor: one piece, which does not grow and is not freed but unmapped
	readOnly bool // peers.mu guards it
}

// away is a piece of an extent's memory while its group is paused.
type away struct {
	unmapped bool
	handle   uintptr // of memory that is still there, or zero
}

// place is where a piece of memory is, or is to be.
type place struct {
	e     *extent
	piece *away // nil where the memory is there
	at    backends.Address
	size  int
}

// each calls visit with each piece of the memory until that fails.
func (e *extent) each(visit func(p place) error) error {
	at := e.start
	for i, size := range e.mapped {
		p := place{e: e, at: at, size: size}
		if e.away != nil {
			p.piece = &e.away[i]
		}
		if err := visit(p); err != nil {
			return err
		}
		at += backends.Address(size)
	}
	return nil
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}

// end is where the mapped memory ends.
func (e *extent) end() backends.Address { return e.start + backends.Address(sum(e.mapped)) }

// extents are all allocations of CUDAVMM, by their start. A thread that takes peers.mu, too, takes that first.
type extents struct {
	mu       sync.RWMutex
	list     []*extent
	reserved int // bytes of addresses

	allocator, lends backends.Allocator // of extents, and of what pools cut from them
}

func byStart(e *extent, at backends.Address) int { return cmp.Compare(e.start, at) }

// find returns the extent that at is in, or nil.
func (x *extents) find(at backends.Address) *extent {
	i, exact := slices.BinarySearchFunc(x.list, at, byStart)
	if !exact {
		i--
	}
	if i < 0 || at >= x.list[i].end() {
		return nil
	}
	return x.list[i]
}

// locate narrows what the driver says of plain memory to the extent that it is.
func (x *extents) locate(found *backends.Location) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e := x.find(found.Address)
	if e == nil {
		return false
	}
	found.Allocator, found.Device, found.Context = x.allocator, e.device.number, 0
	found.Base, found.Size = e.start, sum(e.mapped)
	if e.lent {
		start, size := e.device.tagged.find(found.Address)
		if size == 0 {
			*found = nowhere(found.Address) // it was freed
			return true
		}
		found.Allocator, found.Base, found.Size = x.lends, start, size
	}
	return true
}

// startingAt returns the extent that Allocate or Relocate has returned the address of.
func (x *extents) startingAt(at backends.Region) (*extent, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, known := slices.BinarySearchFunc(x.list, at.Address, byStart)
	if !known || x.list[i].device.number != at.Device || x.list[i].shared {
		return nil, fmt.Errorf("device %d has no allocation by %s at %#x", at.Device, at.Allocator, at.Address)
	}
	return x.list[i], nil
}

// sharedAt returns the extent that NewShared or MapShared has returned.
func (x *extents) sharedAt(at backends.Region, size int) (*extent, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, known := slices.BinarySearchFunc(x.list, at.Address, byStart)
	if !known || x.list[i].device.number != at.Device || !x.list[i].shared || sum(x.list[i].reserved) != size {
		return nil, fmt.Errorf("device %d has no shared memory of %d bytes mapped at %#x", at.Device, size, at.Address)
	}
	return x.list[i], nil
}

// groupAt returns the group of the memory at an address, paused or not, or nil.
func (x *extents) groupAt(at backends.Address) *group {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.find(at); e != nil {
		return e.group
	}
	return nil
}

// enlist makes an extent part of a group, whose lock is held, unless that is nil.
func (x *extents) enlist(e *extent, g *group) {
	if g == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e.group = g
	g.extents = append(g.extents, e)
}

func (x *extents) add(e *extent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, _ := slices.BinarySearchFunc(x.list, e.start, byStart)
	x.list = slices.Insert(x.list, i, e)
}

func (x *extents) remove(e *extent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = slices.DeleteFunc(x.list, func(other *extent) bool { return other == e })
}
