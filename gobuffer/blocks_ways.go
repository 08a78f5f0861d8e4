package gobuffer

import (
	"errors"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/elements"
	"hamr/gobuffer/internal/order"
)

const (
	// mostPlanes is how many runs of bytes side by side the blocks of an array may consist of, and of how many one step
	// may be made.
	mostPlanes = 1024
	// leastRun is how many bytes these have at least, if a block has several.
	leastRun = 16
	// stagedBelow is the size of blocks from which on each is worth a copy of its own, by way of page-locked memory.
	stagedBelow = 1 << 20
)

// blockWay is how blocks of an array are copied.
type blockWay int

const (
	blocksByPairs  blockWay = iota // as CopyMany copies views of them
	blocksOnHost                   // by the host's threads
	blocksByDevice                 // by one step of a device's
	blocksStaged                   // by a device and the host's threads, by way of page-locked memory
	blocksMade                     // what is gathered is converted or kept, and then put in place
)

// blockLot is what blocks of arrays that are copied together have in common.
type blockLot struct {
	lot
	way  blockWay
	size int // of a run
}

// planned is arrays of a lot.
type planned struct {
	pairs  []*pair
	planes []backends.Plane
}

func (l *planned) add(p *pair, planes []backends.Plane) {
	l.pairs, l.planes = append(l.pairs, p), append(l.planes, planes...)
}

// copy enqueues all copies of g. Nothing is waited for that finishPairs can wait for later.
func (g *blockCopy) copy() error {
	if g.count == 0 {
		return nil
	}
	var lots grouped[blockLot, planned]
	for _, p := range g.pairs {
		planes, size, flat := p.planes()
		key := blockLot{way: g.way(p, size, flat)}
		switch key.way {
		case blocksByPairs, blocksMade:
			planes = nil
		case blocksByDevice, blocksStaged:
			key.lot, key.size = p.lot(), size
		case blocksOnHost:
			key.size = size
		}
		lots.at(key).add(p, planes)
	}
	for _, key := range lots.order {
		if err := g.copyLot(key, lots.at(key)); err != nil {
			return err
		}
	}
	return nil
}

func (g *blockCopy) copyLot(key blockLot, list *planned) (err error) {
	err = errors.ErrUnsupported
	switch key.way {
	case blocksOnHost:
		return g.copyOnHost(list, key.size)
	case blocksByDevice, blocksStaged:
		err = g.copyByDevice(list, key.size, key.way)
	case blocksMade:
		for _, p := range list.pairs {
			if err := g.copyMade(p); err != nil {
				return err
			}
		}
		return nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = g.copyByPairs(list.pairs)
	}
	return err
}

// way chooses how the blocks of an array are copied, which are runs of so many bytes side by side if they are flat.
func (g *blockCopy) way(p *pair, size int, flat bool) blockWay {
	dst, src := p.dst, p.src
	switch {
	case g.meets(p):
		return blocksMade
	case dst.layout.OverlapsItself():
		return blocksByPairs
	case dst.maps() || src.maps():
		return blocksByPairs
	case dst.onHost() && src.onHost() && !p.managedBlocks():
		return blocksOnHost
	}
	side := p.side()
	switch {
	case side.memory.blocks == nil,
		!dst.onHost() && !src.onHost() && dst.memory.backend != src.memory.backend:
		return blocksByPairs
	case !flat && g.makes(p):
		return blocksMade
	case !flat:
		return blocksByPairs
	case p.hostEnd() == nil:
		return blocksByDevice
	case size >= stagedBelow || side.captured():
		return blocksByPairs
	}
	return blocksStaged
}

// meets reports whether some block that is written shares bytes with one that is read.
func (g *blockCopy) meets(p *pair) bool {
	if !p.dst.blocksMeet(p.src) {
		return false
	}
	low, high := p.dst.block().Span()
	stride := p.dst.layout.Strides[0]
	same := p.dst.address == p.src.address && p.dst.layout.Type == p.src.layout.Type &&
		slices.Equal(p.dst.layout.Strides, p.src.layout.Strides) && high-low <= max(stride, -stride)
	if !same || g.to.List == nil || g.from.List == nil {
		return true
	}
	written := newBlockSet(g.count, g.to.Extent)
	for _, i := range g.to.List {
		written.add(i)
	}
	//mutate:replace blocks are overwritten that are still to be read
	//mutate:with slices.ContainsFunc(g.from.List, written.has) => false
	return slices.ContainsFunc(g.from.List, written.has)
}

// managedBlocks reports whether both ends are memory that the host and one runtime's devices reach, where it was used
// last in all likelihood.
func (p *pair) managedBlocks() bool {
	return p.dst.managed() && p.src.managed() && p.dst.memory.backend == p.src.memory.backend &&
		p.dst.memory.blocks != nil && p.dst.layout.NBytes() > smallEnough
}

// hostEnd is the one of the two that is ordinary host memory for the runtime of the other one, or nil.
func (p *pair) hostEnd() *piece {
	for _, end := range []*piece{&p.dst, &p.src} {
		if end.locked == nil && end.onHost() &&
			(end.memory.kind == backends.Pageable || end.memory.backend != p.side().memory.backend) {
			return end
		}
	}
	return nil
}

// makes reports whether blocks that are not flat are gathered and put in place in few steps.
func (g *blockCopy) makes(p *pair) bool {
	for _, way := range []*pair{{dst: p.src.gathered(1), src: p.src}, {dst: p.dst, src: p.dst.gathered(1)}} {
		if _, _, flat := way.planes(); !flat || !way.dst.onHost() && way.dst.memory.blocks == nil {
			return false
		}
	}
	return true
}

// captured reports whether p's stream is captured into a graph: what the host waits for cannot be part of that.
func (p piece) captured() bool {
	w, err := p.work()
	return err != nil || p.memory.captured(w.Stream)
}

// planes are the runs of bytes that lie side by side in a block at both ends, if these are elements of one type, and
// not too many.
func (p *pair) planes() (list []backends.Plane, size int, flat bool) {
	to, from := p.dst, p.src
	if to.layout.Type != from.layout.Type {
		return nil, 0, false
	}
	to.layout, from.layout = to.block(), from.block()
	to, from = inMemoryOrder(to, from)
	size, outer := runs(to.layout, from.layout)
	count := 1
	for _, n := range to.layout.Shape[:outer] {
		count *= n
	}
	if count > mostPlanes || count > 1 && size < leastRun {
		return nil, 0, false
	}
	side := p.side()
	one := backends.Plane{Dst: side.regionOf(to), Src: side.regionOf(from), DstStride: p.dst.layout.Strides[0],
		SrcStride: p.src.layout.Strides[0]}
	list = make([]backends.Plane, 0, count)
	_ = eachRun(to.layout.Shape[:outer], to.layout.Strides, from.layout.Strides, func(d, s int) error {
		next := one
		next.Dst.Address, next.Src.Address = offset(to.address, d), offset(from.address, s)
		list = append(list, next)
		return nil
	})
	return list, size, true
}

// gathered is n blocks as p has them, one after the other in memory that there is not yet.
func (p piece) gathered(n int) piece {
	one := piece{memory: p.memory, layout: p.block()}
	inner := one.plain(p.layout.Type)
	layout := arrayiface.Layout{Type: inner.Type, Shape: append([]int{n}, inner.Shape...),
		Strides: append([]int{inner.NBytes()}, inner.Strides...)}
	return p.beside(layout)
}

// copyOnHost copies blocks between memory that the host reaches.
func (g *blockCopy) copyOnHost(list *planned, size int) error {
	for _, p := range list.pairs {
		//mutate:never blocks are read on the host before they are there
		if err := p.src.settle(); err != nil {
			return err
		}
		//mutate:never blocks are written on the host before others have read them
		if err := p.dst.settle(); err != nil {
			return err
		}
		//mutate:remove a temporary is kept of elements of which blocks were written
		g.runtime.kept.changed(p.dst)
	}
	g.trace("on the host", list.pairs)
	if size > 0 {
		elements.MoveBlocks(hostPlanes(list.planes), size, g.to.List, g.from.List, g.count)
		return nil
	}
	return g.eachRows(func(to, from, n int) error {
		for _, p := range list.pairs {
			d, s := p.dst.rows(to, n), p.src.rows(from, n)
			if err := elements.CopyStrided(d.pointer(), d.layout, s.pointer(), s.layout); err != nil {
				return err
			}
		}
		return nil
	})
}

func hostPlanes(list []backends.Plane) []elements.Plane {
	planes := make([]elements.Plane, len(list))
	for i, p := range list {
		planes[i] = elements.Plane{Dst: hostPointer(p.Dst.Address), Src: hostPointer(p.Src.Address),
			DstStride: p.DstStride, SrcStride: p.SrcStride}
	}
	return planes
}

// eachRows calls visit for blocks that follow one another at both ends.
func (g *blockCopy) eachRows(visit func(to, from, n int) error) error {
	at := func(x backends.BlockIndex, k int) int {
		if x.List == nil {
			return k
		}
		return int(x.List[k])
	}
	for k := 0; k < g.count; {
		to, from, n := at(g.to, k), at(g.from, k), 1
		for k+n < g.count && at(g.to, k+n) == to+n && at(g.from, k+n) == from+n {
			n++
		}
		if err := visit(to, from, n); err != nil {
			return err
		}
		k += n
	}
	return nil
}

// copyByPairs copies blocks as CopyMany copies arrays.
func (g *blockCopy) copyByPairs(pairs []*pair) error {
	g.trace("one by one", pairs)
	var list []pair
	ordered := false
	_ = g.eachRows(func(to, from, n int) error {
		for _, p := range pairs {
			list = append(list, pair{p.runtime, p.dst.rows(to, n), p.src.rows(from, n), p.transfer})
		}
		return nil
	})
	for _, p := range pairs {
		ordered = ordered || p.dst.layout.OverlapsItself() || p.dst.memory.mapping != nil || p.src.memory.mapping != nil
	}
	if ordered {
		return copyInOrder(list)
	}
	return copyApart(list)
}

// copyByDevice copies blocks by as few steps as there may be of a device's. The error is errors.ErrUnsupported where
// that cannot.
func (g *blockCopy) copyByDevice(list *planned, size int, way blockWay) error {
	first := list.pairs[0]
	side, how := first.side(), "by the device"
	if way == blocksStaged {
		how = "by way of page-locked memory"
	}
	g.trace(how, list.pairs)
	return enqueueTogether(side, list.pairs, nil,
		func(w *order.Work) (_ *order.Work, all backends.Progress, err error) {
			for planes := range slices.Chunk(list.planes, mostPlanes) {
				b := backends.Blocks{Planes: planes, Size: size, Count: g.count, To: g.to, From: g.from,
					Stop: first.dst.stopWith(first.src)}
				left, err := side.memory.blocks.CopyBlocks(&b, w.Stream)
				if errors.Is(err, errors.ErrUnsupported) {
					return w, all, err
				}
				if all |= left; err != nil {
					return w, all, err
				}
			}
			return w, all, nil
		})
}

func (g *blockCopy) trace(way string, pairs []*pair) {
	if !g.runtime.tracing() {
		return
	}
	p := pairs[0]
	bytes := p.dst.layout.NBytes() / p.dst.layout.Shape[0]
	g.runtime.tracef("copy %d blocks of %d bytes of %d arrays %s device %d to %s device %d %s", g.count, bytes, len(pairs),
		p.src.region().Allocator, p.src.memory.region.Device, p.dst.region().Allocator, p.dst.memory.region.Device,
		way)
}
