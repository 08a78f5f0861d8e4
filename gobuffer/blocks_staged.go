package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/elements"
	"hamr/gobuffer/internal/order"
)

// blockStageBytes is how much is gathered at once by way of page-locked memory, and blockStages in how many places:
// while the host's threads move one part, the device moves the next. madeBytes is how much is converted at once.
var blockStageBytes, blockStages, madeBytes = 8 << 20, 3, 64 << 20

// stagePart is blocks of some planes that are staged at once.
type stagePart struct {
	planes   []backends.Plane
	to, from backends.BlockIndex
	count    int
}

// stageParts are all blocks of planes, in parts of at most blockStageBytes unless one block of one plane has more.
func (g *blockCopy) stageParts(planes []backends.Plane, size int) (parts []stagePart) {
	most := max(1, blockStageBytes/size)
	wide := min(len(planes), most)
	for ; len(planes) > 0; planes = planes[min(wide, len(planes)):] {
		some := planes[:min(wide, len(planes))]
		for k := 0; k < g.count; {
			n := min(max(1, most/len(some)), g.count-k)
			parts = append(parts, stagePart{some, cutIndex(g.to, k, n), cutIndex(g.from, k, n), n})
			k += n
		}
	}
	return parts
}

// cutIndex is n indices from one on.
func cutIndex(x backends.BlockIndex, k, n int) backends.BlockIndex {
	if x.List != nil {
		return backends.BlockIndex{List: x.List[k : k+n], Extent: x.Extent}
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(k + i)
	}
	return backends.BlockIndex{List: list, Extent: x.Extent}
}

// stage is a place where blocks of a part are one after the other.
type stage struct {
	memory *Memory
	part   *stagePart
	event  *order.Event // of the device's last use of it; nil: there is none
}

// stagesOf returns page-locked memory of the runtime of side's. The error is errors.ErrUnsupported where there is none.
func (r *Runtime) stagesOf(side piece, parts []stagePart, size int) (stages []*stage, err error) {
	most := 0
	for _, p := range parts {
		most = max(most, p.count*len(p.planes)*size)
	}
	for _, a := range backends.Allocators() {
		if a.Kind() != backends.Pinned || a.Backend() != side.memory.region.Allocator.Backend() {
			continue
		}
		for range min(blockStages, len(parts)) {
			m, err := r.Allocate(a, backends.HostDevice, most, 0, false)
			if outOfMemory(err) && len(stages) > 0 {
				return stages, nil
			}
			if outOfMemory(err) {
				return nil, errors.ErrUnsupported
			}
			if err != nil {
				return stages, err
			}
			stages = append(stages, &stage{memory: m})
		}
		return stages, nil
	}
	return nil, errors.ErrUnsupported
}

// over waits until the device does not use the stage any more.
func (s *stage) over(w *order.Work, stop *backends.Stop) error {
	if s.event == nil {
		return nil
	}
	if err := w.With(s.event).WaitUntil(stop); err != nil {
		return err
	}
	//mutate:skip the host and a device use a stage of blocks at one time
	if err := s.event.Wait(); err != nil {
		return err
	}
	err := s.event.Release()
	s.event = nil
	return err
}

// end gives the stage back, which w's stream may still use.
func (s *stage) end(w *order.Work) (err error) {
	if s.event != nil {
		//mutate:replace a stage of blocks is given back while a device uses it
		//mutate:with s.memory.mark(w, nil) => nil
		err = errors.Join(s.memory.mark(w, nil), s.event.Release())
	}
	return errors.Join(err, s.memory.Release())
}

// copyStaged copies blocks between ordinary host memory and a device by way of page-locked memory. The error is
// errors.ErrUnsupported where that cannot be. The host's ends are not used any more when it returns.
func (g *blockCopy) copyStaged(list *planned, size int) error {
	first := list.pairs[0]
	side, down := first.side(), first.dst.onHost()
	for _, p := range list.pairs {
		if down {
			continue // the device follows what is pending there, and the host the device
		}
		//mutate:skip blocks of host memory are gathered before they are there
		if err := p.src.settle(); err != nil {
			return err
		}
	}
	parts := g.stageParts(list.planes, size)
	g.trace("by way of page-locked memory", list.pairs)
	return enqueueTogether(side, list.pairs, nil,
		func(w *order.Work) (_ *order.Work, left backends.Progress, err error) {
			stages, err := g.runtime.stagesOf(side, parts, size)
			defer func() {
				for _, s := range stages {
					err = errors.Join(err, s.end(w))
				}
			}()
			if err != nil {
				return w, left, err
			}
			x := &staging{side.memory.blocks, w, size, first.dst.stopWith(first.src), stages}
			if down {
				return w, backends.Complete, x.down(parts)
			}
			return w, backends.Writing, x.up(parts)
		})
}

// staging is copies by way of stages.
type staging struct {
	copier backends.BlockCopier
	work   *order.Work
	size   int
	stop   *backends.Stop
	stages []*stage
}

// down has the device gather each part, and scatters it while the device gathers the next ones.
func (x *staging) down(parts []stagePart) error {
	for i := range parts {
		s := x.stages[i%len(x.stages)]
		if err := x.scatter(s); err != nil {
			return err
		}
		s.part = &parts[i]
		b := backends.Blocks{Size: x.size, Count: s.part.count, To: backends.BlockIndex{Extent: s.part.count},
			From: s.part.from}
		for j, staged := range x.staged(s) {
			own := s.part.planes[j]
			b.Planes = append(b.Planes, backends.Plane{Dst: staged.Src, DstStride: staged.SrcStride, Src: own.Src,
				SrcStride: own.SrcStride})
		}
		if err := x.enqueue(s, &b); err != nil {
			return err
		}
	}
	for i := range x.stages {
		if err := x.scatter(x.stages[(len(parts)+i)%len(x.stages)]); err != nil {
			return err
		}
	}
	return nil
}

// scatter puts what the device has gathered in a stage in its place, if there is anything.
func (x *staging) scatter(s *stage) error {
	if s.part == nil {
		return nil
	}
	if err := s.over(x.work, x.stop); err != nil {
		return err
	}
	list := x.staged(s)
	for i := range list {
		list[i].Dst, list[i].DstStride = s.part.planes[i].Dst, s.part.planes[i].DstStride
	}
	elements.MoveBlocks(hostPlanes(list), x.size, s.part.to.List, nil, s.part.count)
	s.part = nil
	return nil
}

// up gathers each part, and has the device scatter it while the next ones are gathered.
func (x *staging) up(parts []stagePart) error {
	for i := range parts {
		s := x.stages[i%len(x.stages)]
		if err := s.over(x.work, x.stop); err != nil {
			return err
		}
		s.part = &parts[i]
		list := x.staged(s)
		b := backends.Blocks{Size: x.size, Count: s.part.count, To: s.part.to,
			From: backends.BlockIndex{Extent: s.part.count}}
		gather := make([]elements.Plane, len(list))
		for i, p := range list {
			own := s.part.planes[i]
			gather[i] = elements.Plane{Dst: hostPointer(p.Src.Address), DstStride: p.SrcStride,
				Src: hostPointer(own.Src.Address), SrcStride: own.SrcStride}
			b.Planes = append(b.Planes, backends.Plane{Dst: own.Dst, DstStride: own.DstStride, Src: p.Src,
				SrcStride: p.SrcStride})
		}
		elements.MoveBlocks(gather, x.size, nil, s.part.from.List, s.part.count)
		if err := x.enqueue(s, &b); err != nil {
			return err
		}
	}
	return nil
}

// enqueue has the device copy between a stage and its own blocks.
func (x *staging) enqueue(s *stage, b *backends.Blocks) error {
	_, err := x.copier.CopyBlocks(b, x.work.Stream)
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	event, late := x.work.Record()
	if late != nil {
		// Nothing stands for the copy, and the stage is used again.
		return errors.Join(err, late, s.memory.mark(x.work, nil))
	}
	s.event = event
	return err
}

// staged is where the blocks of each plane of a stage's part lie in the stage: as sources.
func (x *staging) staged(s *stage) []backends.Plane {
	list := make([]backends.Plane, len(s.part.planes))
	at := s.memory.region
	for i := range list {
		list[i] = backends.Plane{Src: at, SrcStride: x.size}
		at.Address = offset(at.Address, s.part.count*x.size)
	}
	return list
}

// copyMade copies blocks by way of temporaries: those that are converted, of which no end shares bytes with the other,
// or that are read before they are overwritten.
func (g *blockCopy) copyMade(p *pair) error {
	most := g.count
	if !g.meets(p) {
		one := max(1, p.dst.block().NBytes(), p.src.block().NBytes())
		most = max(1, madeBytes/one)
	}
	for k := 0; k < g.count; k += most {
		n := min(most, g.count-k)
		if err := g.copyMadePart(p, cutIndex(g.to, k, n), cutIndex(g.from, k, n), n); err != nil {
			return err
		}
	}
	return nil
}

func (g *blockCopy) copyMadePart(p *pair, to, from backends.BlockIndex, n int) (err error) {
	gathered, free, err := g.runtime.besideBlocks(p.src, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	all := backends.BlockIndex{Extent: n}
	gather := blockCopy{runtime: g.runtime, count: n, to: all, from: from,
		pairs: []*pair{{g.runtime, gathered, p.src, deferred}}}
	if err := gather.copy(); err != nil {
		return err
	}
	//mutate:replace gathered blocks are read before they are there
	//mutate:with finishPairs([]pair{*gather.pairs[0]}) => error(nil)
	if err := finishPairs([]pair{*gather.pairs[0]}); err != nil {
		return err
	}
	if inner := p.dst.gathered(n); inner.layout.Equal(gathered.layout) && p.dst.onHost() == p.src.onHost() {
		return g.scatter(p, gathered, to, n)
	}
	made, freeMade, err := g.runtime.besideBlocks(p.dst, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, freeMade()) }()
	if err := g.runtime.copyElements(made, gathered, Async); err != nil {
		return err
	}
	return g.scatter(p, made, to, n)
}

func (g *blockCopy) scatter(p *pair, made piece, to backends.BlockIndex, n int) error {
	scatter := blockCopy{runtime: g.runtime, count: n, to: to, from: backends.BlockIndex{Extent: n},
		pairs: []*pair{{g.runtime, p.dst, made, p.transfer}}}
	return scatter.copy()
}

// besideBlocks is memory for n blocks as p has them, where p is. free ends its use.
func (r *Runtime) besideBlocks(p piece, n int) (made piece, free func() error, err error) {
	made = p.gathered(n)
	var m *Memory
	if !p.onHost() {
		m, err = r.scratch(p, made.layout.NBytes())
	}
	if p.onHost() || outOfMemory(err) {
		m, err = r.Allocate(backends.Malloc, backends.HostDevice, made.layout.NBytes(), 0, false)
		made.stream = 0
	}
	if err != nil {
		return piece{}, nil, err
	}
	made.memory, made.address = m, m.region.Address
	return made, m.Release, nil
}
