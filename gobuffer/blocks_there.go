package gobuffer

import (
	"errors"
	"slices"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// copyBlocksThere is CopyBlocks by indices that stay where they are, of which a device has at least one list. The error
// is errors.ErrUnsupported where they must be read first. What was copied then is copied again.
func (r *Runtime) copyBlocksThere(list []pair, to, from *blockIndex) error {
	g := &blockCopy{runtime: r, count: to.count}
	blocksTo, blocksFrom := list[0].dst.layout.Shape[0], list[0].src.layout.Shape[0]
	var lots grouped[blockLot, planned]
	for i := range list {
		p := &list[i]
		if p.dst.layout.Shape[0] != blocksTo || p.src.layout.Shape[0] != blocksFrom || p.dst.layout.Count() == 0 ||
			p.src.layout.Count() == 0 {
			return errors.ErrUnsupported
		}
		planes, size, flat := p.planes()
		if g.way(p, size, flat) != blocksByDevice || !to.staysFor(p) || !from.staysFor(p) {
			return errors.ErrUnsupported
		}
		lots.at(blockLot{lot: p.lot(), size: size}).add(p, planes)
		g.pairs = append(g.pairs, p)
	}
	if !blocksApart(g.pairs) {
		return errors.ErrUnsupported
	}
	var err error
	if g.to, err = to.there(blocksTo); err != nil {
		return err
	}
	if g.from, err = from.there(blocksFrom); err != nil {
		return err
	}
	if to.list != nil {
		if last, _ := lastOfEach(g.to.List, g.to.List, blocksTo); len(last) < to.count {
			return errors.ErrUnsupported // where the device would have to leave some out
		}
	}
	for _, key := range lots.order {
		if err := g.copyByIndicesThere(lots.at(key), key.size, to, from); err != nil {
			return err
		}
	}
	return nil
}

// staysFor reports whether the device that copies a pair's blocks can read the indices.
func (x *blockIndex) staysFor(p *pair) bool {
	//mutate:replace indices are overwritten while a device reads them
	//mutate:with !p.dst.mayShare(x.where) => true
	return x.list != nil || x.forDevice() && p.side().reaches(x.where) && !p.dst.mayShare(x.where)
}

func (g *blockCopy) copyByIndicesThere(list *planned, size int, to, from *blockIndex) error {
	side := list.pairs[0].side()
	var reads []piece
	for _, x := range []*blockIndex{to, from} {
		if x.list == nil {
			reads = append(reads, x.where)
		}
	}
	g.trace("by the device, which has the indices", list.pairs)
	return enqueueTogether(side, list.pairs, reads,
		func(w *order.Work) (_ *order.Work, all backends.Progress, err error) {
			var looks []backends.BlockFailure
			for planes := range slices.Chunk(list.planes, mostPlanes) {
				b := backends.Blocks{Planes: planes, Size: size, Count: g.count, To: g.to, From: g.from,
					Repeated: to.list == nil && g.count > 1}
				left, err := side.memory.blocks.CopyBlocks(&b, w.Stream)
				if errors.Is(err, errors.ErrUnsupported) {
					return w, all, err
				}
				all |= left
				if b.Failed != nil {
					looks = append(looks, b.Failed)
				}
				if err != nil {
					if len(looks) > 0 {
						all |= backends.Reading
					}
					return w, all, err
				}
			}
			if len(looks) == 0 {
				return w, all, nil
			}
			watched, err := g.watch(w, looks, to, from)
			return watched, all, err
		})
}

// watch is the work of copies whose indices a device checks. It takes over the looks.
func (g *blockCopy) watch(w *order.Work, looks []backends.BlockFailure, to, from *blockIndex) (*order.Work, error) {
	name := func(bad *backends.BadIndex) error {
		x, extent := from, g.from.Extent
		if bad.To {
			x, extent = to, g.to.Extent
		}
		return badBlockIndex(x.name, bad.Position, bad.Value, false, extent)
	}
	event, err := w.Record()
	if err != nil {
		return w, nil // whoever waits for the stream is not told
	}
	f := &blockFault{Event: event, looks: looks, name: name, on: w}
	return w.With(f), g.runtime.blockFaults.add(f)
}
