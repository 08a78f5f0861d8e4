package gobuffer

import (
	"errors"
	"fmt"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
)

// CopyBlocks copies blocks: with d and s of one place in the lists, d[destinationIndex[k]] = s[sourceIndex[k]] for
// all k, along the first dimension. Elements are converted. The rest of the shapes is alike, or that of s is broadcast.
// The indices are integers anywhere; those below zero count from the end. Where a destination's block is named twice,
// the last one wins. One array is read before it is written to, also if they share bytes; several come one after the
// other. Waits happen once, at the end, as the destinations' modes say.
//
// All is checked before anything is copied: the error of an index out of range is an *ArgumentError that names it.
// Where a device checks indices that it has, nothing is copied then. Who waits for a destination gets that error, else
// the calling thread's next CopyBlocks. While the stream is captured into a graph, nobody gets it. After another error
// of a device, the elements of all destinations are unspecified.
func CopyBlocks(destinations []*Array, destinationIndex *Array, sources []*Array, sourceIndex *Array) error {
	list, err := blockPairs(destinations, sources)
	if err != nil {
		return err
	}
	to, from, err := blockIndices(destinationIndex, sourceIndex)
	if err != nil || len(list) == 0 {
		return err
	}
	r := list[0].runtime
	captured := func() bool {
		w, err := list[0].side().work()
		return err == nil && w.Captured()
	}
	if err := r.blockFaults.sweep(captured); err != nil {
		return err
	}
	lockPairs(list)
	if to.list == nil || from.list == nil {
		if err := r.copyBlocksThere(list, to, from); !errors.Is(err, errors.ErrUnsupported) {
			return errors.Join(err, finishPairs(list))
		}
		if err := errors.Join(to.read(), from.read()); err != nil {
			return err
		}
	}
	groups, err := r.blockGroups(list, to, from)
	if err != nil {
		return err
	}
	var earlier []pair
	for i, g := range groups {
		//mutate:replace a copy of blocks reads host memory that an earlier one has yet to write
		//mutate:with i > 0 && g.alone => false
		if i > 0 && g.alone {
			// What is read next may be ordinary host memory, whose readers ask nobody.
			last := *groups[i-1].pairs[0]
			earlier = append(earlier, last)
			err = errors.Join(finishPairs([]pair{last}), tellOthers(earlier, []pair{*g.pairs[0]}))
		}
		if err == nil {
			err = g.copy()
		}
		if err != nil {
			break
		}
	}
	//mutate:replace blocks that are copied to the host are not waited for
	//mutate:with finishPairs(list) => nil
	return errors.Join(err, finishPairs(list))
}

// blockPairs checks arrays. The sources are as if broadcast.
func blockPairs(destinations, sources []*Array) ([]pair, error) {
	if len(destinations) != len(sources) {
		return nil, valueError("sources", fmt.Sprintf("%d arrays", len(sources)),
			fmt.Sprintf("one for each of %d destinations", len(destinations)))
	}
	list := make([]pair, len(destinations))
	for i, d := range destinations {
		from, err := d.blocksOf(sources[i])
		if err != nil {
			return nil, fmt.Errorf("destinations[%d], sources[%d]: %w", i, i, err)
		}
		list[i] = pair{d.runtime, d.all(), from, d.options.Transfer}
	}
	return list, noPaused(list)
}

// blocksOf returns b with blocks of the shape of a's.
func (a *Array) blocksOf(b *Array) (piece, error) {
	if err := a.checkWritable(); err != nil {
		return piece{}, err
	}
	if err := b.check(); err != nil {
		return piece{}, err
	}
	to, from := a.layout.Shape, b.layout.Shape
	if len(to) == 0 || len(from) == 0 {
		return piece{}, valueError("buffer", "of no dimensions", "one of blocks along the first dimension")
	}
	if slices.Equal(to[1:], from[1:]) {
		return b.all(), nil
	}
	if len(to) == len(from) {
		layout, err := b.layout.Broadcast(append([]int{from[0]}, to[1:]...))
		if err == nil {
			return b.piece(b.address, layout), nil
		}
	}
	return piece{}, valueError("sources", fmt.Sprintf("of blocks of shape %v", from[1:]),
		fmt.Sprintf("blocks of shape %v, as the destination has, or such that are broadcast", to[1:]))
}

// blockCopy is copies of blocks between arrays of the same numbers of blocks.
type blockCopy struct {
	runtime  *Runtime
	pairs    []*pair
	to, from backends.BlockIndex
	count    int
	alone    bool // what comes before it may write what it reads
}

// blockGroups checks the indices for all arrays, and returns what is to be copied, in order.
func (r *Runtime) blockGroups(list []pair, to, from *blockIndex) (groups []*blockCopy, err error) {
	type extents struct{ to, from int }
	chosen := map[extents]*blockCopy{}
	of := func(p *pair) *blockCopy { return chosen[extents{p.dst.layout.Shape[0], p.src.layout.Shape[0]}] }
	for i := range list {
		if p := &list[i]; of(p) == nil {
			key := extents{p.dst.layout.Shape[0], p.src.layout.Shape[0]}
			g := &blockCopy{runtime: r}
			if err := g.choose(key.to, key.from, to, from); err != nil {
				return nil, err
			}
			chosen[key] = g
		}
	}
	if to.count == 0 {
		return nil, nil
	}
	var some []*pair
	for i := range list {
		if list[i].dst.layout.Count() > 0 {
			some = append(some, &list[i])
		}
	}
	apart := blocksApart(some)
	for _, p := range some {
		//mutate:never blocks are read on the host that a device has yet to write, by another Memory
		if !apart { // as in CopyMany
			p.dst.locked, p.src.locked = nil, nil
		}
	}
	for _, p := range some {
		g := of(p)
		if !apart {
			another := *g
			another.pairs, another.alone = nil, true
			g = &another
		}
		if g.pairs == nil {
			groups = append(groups, g)
		}
		g.pairs = append(g.pairs, p)
	}
	return groups, nil
}

// choose sets which blocks are copied, of so many at both ends.
func (g *blockCopy) choose(blocksTo, blocksFrom int, to, from *blockIndex) error {
	first, err := to.within(blocksTo)
	if err != nil {
		return err
	}
	second, err := from.within(blocksFrom)
	if err != nil {
		return err
	}
	first, second = lastOfEach(first, second, blocksTo)
	g.to = backends.BlockIndex{List: first, Extent: blocksTo}
	g.from = backends.BlockIndex{List: second, Extent: blocksFrom}
	g.count = len(first)
	return nil
}

// blocksApart reports whether no array that is written shares a byte with one of another place in the list.
func blocksApart(list []*pair) bool {
	if len(list) < 2 {
		return true
	}
	all := make([]pair, len(list))
	for i, p := range list {
		all[i] = *p
	}
	if independent(all) {
		return true // which is quicker to see
	}
	for i, p := range list {
		for _, q := range list[:i] {
			if p.dst.blocksMeet(q.dst) || p.dst.blocksMeet(q.src) || p.src.blocksMeet(q.dst) {
				return false
			}
		}
	}
	return true
}

// blocksMeet is mayShare that knows of blocks which lie between each other's, as columns of one array do.
func (p piece) blocksMeet(q piece) bool {
	if !p.mayShare(q) {
		return false
	}
	stride := p.layout.Strides[0]
	if p.memory.mapping != nil || q.memory.mapping != nil || stride <= 0 || stride != q.layout.Strides[0] {
		return true
	}
	low, high := p.block().Span()
	lowQ, highQ := q.block().Span()
	between := (int(q.address) + lowQ - int(p.address) - low) % stride
	if between < 0 {
		between += stride
	}
	return between < high-low || between+highQ-lowQ > stride
}

// block is the layout of one block.
func (p piece) block() arrayiface.Layout {
	return arrayiface.Layout{Type: p.layout.Type, Shape: p.layout.Shape[1:], Strides: p.layout.Strides[1:]}
}

// rows are n blocks from one on.
func (p piece) rows(from, n int) piece {
	p.address = offset(p.address, from*p.layout.Strides[0])
	shape := slices.Clone(p.layout.Shape)
	shape[0] = n
	p.layout.Shape = shape
	return p
}
