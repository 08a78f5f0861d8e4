package backendtest

import (
	"bytes"
	"encoding/binary"
	"errors"

	"hamr/backends"
)

// CopyBlocks queues the copies of all planes, the last one first. The indices that lie in memory are read and checked
// when it runs. With FakeOptions.NoBlocks it refuses everything.
func (f *fakeMemory) CopyBlocks(b *backends.Blocks, s backends.Stream) (all backends.Progress, err error) {
	f.onThread(func() { all, err = f.copyBlocks(b, s) })
	return all, err
}

// fakePlane is the bytes that a plane spans, and where its block 0 begins in them.
type fakePlane struct {
	to, from           memory
	lowTo, lowFrom     int
	strideTo, strideBy int
}

func (f *fakeMemory) copyBlocks(b *backends.Blocks, s backends.Stream) (backends.Progress, error) {
	if err := f.enter("CopyBlocks", "%d blocks of %d bytes of %d planes, stream %#x", b.Count, b.Size, len(b.Planes),
		s); err != nil {
		return backends.Complete, err
	}
	if f.options.NoBlocks {
		return backends.Complete, errors.ErrUnsupported
	}
	if err := f.checkBlocks(b); err != nil {
		return backends.Complete, err
	}
	var planes []fakePlane
	var used []memory
	for _, p := range b.Planes {
		view, err := f.viewPlane(p, b)
		if err != nil {
			return backends.Complete, err
		}
		if f.apart(view.to.block, view.from.block) {
			return backends.Complete, errors.ErrUnsupported
		}
		planes, used = append(planes, view), append(used, view.to, view.from)
	}
	to, readsTo, err := f.viewIndex(b.To, b.Count)
	if err != nil {
		return backends.Complete, err
	}
	from, readsFrom, err := f.viewIndex(b.From, b.Count)
	if err != nil {
		return backends.Complete, err
	}
	stream, err := f.streamFor("CopyBlocks", s, append(used, to.where, from.where)...)
	if err != nil {
		return backends.Complete, err
	}
	done, bad := false, (*backends.BadIndex)(nil)
	size, left := b.Size, backends.Reading|backends.Writing
	if planes[0].from.pageable && !f.options.Strict {
		for i := range planes {
			planes[i].from = memory{host: bytes.Clone(planes[i].from.host)}
		}
		left = backends.Writing
	}
	over := &point{stream: stream}
	f.enqueue(stream, task{point: over, run: func() {
		done = true
		targets, first := to.read(f)
		sources, second := from.read(f)
		if first >= 0 {
			bad = &backends.BadIndex{To: true, Position: first, Value: targets[first]}
		} else if second >= 0 {
			bad = &backends.BadIndex{Position: second, Value: sources[second]}
		}
		if bad != nil {
			return
		}
		for i := len(planes) - 1; i >= 0; i-- {
			f.movePlane(planes[i], size, targets, sources)
		}
	}})
	if readsTo || readsFrom {
		told := false
		b.Failed = func() *backends.BadIndex {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !done || told {
				_ = f.violate("CopyBlocks", "the failure is asked for twice, or before the stream has passed the copy")
			}
			told = true
			return bad
		}
	}
	if planes[0].to.pageable && !f.options.Strict {
		f.reach(over)
		return backends.Complete, stream.takeError()
	}
	return left, nil
}

// movePlane keeps the order of the indices: the last of those that name a block twice wins.
func (f *fakeMemory) movePlane(p fakePlane, size int, targets, sources []int64) {
	f.onBlock(p.to.block, "copy of blocks", func() {
		f.onBlock(p.from.block, "copy of blocks", func() {
			to, from := p.to.bytes(), p.from.bytes()
			for k := range targets {
				copy(to[int(targets[k])*p.strideTo-p.lowTo:][:size], from[int(sources[k])*p.strideBy-p.lowFrom:])
			}
		})
	})
}

func (f *fakeMemory) checkBlocks(b *backends.Blocks) error {
	if len(b.Planes) == 0 || b.Size < 1 || b.Count < 1 {
		return f.violate("CopyBlocks", "%d planes of %d blocks of %d bytes", len(b.Planes), b.Count, b.Size)
	}
	alike := func(a, b backends.Region) bool {
		return a.Allocator.Kind() == b.Allocator.Kind() && a.Device == b.Device
	}
	for i, p := range b.Planes {
		if !alike(p.Dst, b.Planes[0].Dst) || !alike(p.Src, b.Planes[0].Src) {
			return f.violate("CopyBlocks", "plane %d, %s from %s, is of another kind", i, describe(p.Dst), describe(p.Src))
		}
	}
	named := map[int64]bool{}
	for _, x := range []backends.BlockIndex{b.To, b.From} {
		if x.List == nil {
			if x.Region.Address == 0 && x.Extent < b.Count {
				return f.violate("CopyBlocks", "%d blocks of %d", b.Count, x.Extent)
			}
			continue
		}
		if len(x.List) != b.Count {
			return f.violate("CopyBlocks", "%d indices instead of %d", len(x.List), b.Count)
		}
		for _, i := range x.List {
			if i < 0 || i >= int64(x.Extent) {
				return f.violate("CopyBlocks", "index %d of %d blocks", i, x.Extent)
			}
		}
	}
	for _, i := range b.To.List {
		if named[i] {
			return f.violate("CopyBlocks", "block %d is named twice", i)
		}
		named[i] = true
	}
	if b.Repeated && b.To.Region.Address == 0 {
		return f.violate("CopyBlocks", "repeated numbers of a list")
	}
	return nil
}

func (f *fakeMemory) viewPlane(p backends.Plane, b *backends.Blocks) (view fakePlane, err error) {
	end := func(at backends.Region, stride, extent int) (m memory, low int, err error) {
		low = min(0, stride*(extent-1))
		at.Address = backends.Address(int(at.Address) + low)
		m, err = f.view("CopyBlocks", at, max(0, stride*(extent-1))-low+b.Size)
		if err == nil && m.pageable && b.To.Region.Address|b.From.Region.Address != 0 {
			err = f.violate("CopyBlocks", "indices in memory say what is copied to or from pageable memory")
		}
		return m, low, err
	}
	view.strideTo, view.strideBy = p.DstStride, p.SrcStride
	if view.to, view.lowTo, err = end(p.Dst, p.DstStride, b.To.Extent); err != nil {
		return view, err
	}
	if view.from, view.lowFrom, err = end(p.Src, p.SrcStride, b.From.Extent); err != nil {
		return view, err
	}
	if view.to.block == nil && view.from.block == nil {
		return view, f.violate("CopyBlocks", "neither %s nor %s is memory of %s", describe(p.Dst), describe(p.Src), f.Name())
	}
	return view, f.checkWritable("CopyBlocks", view.to)
}

// fakeIndex is indices that are read late.
type fakeIndex struct {
	list   []int64
	where  memory
	width  int
	extent int
}

func (f *fakeMemory) viewIndex(x backends.BlockIndex, count int) (index fakeIndex, reads bool, err error) {
	index.extent, index.width = x.Extent, x.Width
	if x.List != nil {
		index.list = append(index.list, x.List...)
		return index, false, nil
	}
	if x.Region.Address == 0 {
		for k := range count {
			index.list = append(index.list, int64(k))
		}
		return index, false, nil
	}
	if x.Width != 4 && x.Width != 8 {
		return index, false, f.violate("CopyBlocks", "indices of %d bytes", x.Width)
	}
	index.where, err = f.view("CopyBlocks", x.Region, count*x.Width)
	if err == nil && index.where.pageable {
		err = f.violate("CopyBlocks", "a device does not reach pageable memory")
	}
	return index, true, err
}

// read returns the numbers of blocks, and where one is out of range, or -1.
func (x *fakeIndex) read(f *fakeMemory) (list []int64, bad int) {
	if x.list != nil {
		return x.list, -1
	}
	f.onBlock(x.where.block, "read of indices", func() {
		for data := x.where.bytes(); len(data) > 0; data = data[x.width:] {
			if x.width == 4 {
				list = append(list, int64(int32(binary.NativeEndian.Uint32(data))))
			} else {
				list = append(list, int64(binary.NativeEndian.Uint64(data)))
			}
		}
	})
	for k, i := range list {
		if i < -int64(x.extent) || i >= int64(x.extent) {
			return list, k
		}
		if i < 0 {
			list[k] += int64(x.extent)
		}
	}
	return list, -1
}
