package cuda

import (
	"errors"
	"slices"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// blockLane is a lane for blocks of ordinary host memory. A kernel copies the blocks of a chunk.
type blockLane struct {
	lane
	copies  *blockCopy // of all blocks
	kernels blockKernels
	host    *staging.Blocks
	up      bool
	pairs   []blockPair      // of all blocks
	placed  backends.Address // where they are on the device, if they are
	free    func() error     // of what is there
	begun   bool
}

// staged copies between a device and ordinary host memory by way of page-locked chunks.
func (c *blockCopy) staged(k blockKernels) (backends.Progress, error) {
	up := c.Planes[0].Dst.Allocator.Kind() == backends.DeviceOnly
	if c.Size > mostStaged || c.Repeated || !c.b.staging.Gathers(c.Size*c.Count*len(c.Planes), c.Count*len(c.Planes)) {
		return backends.Complete, errors.ErrUnsupported
	}
	planes := make([]staging.BlockPlane, len(c.Planes))
	for i, p := range c.Planes {
		planes[i] = staging.BlockPlane{Address: p.Dst.Address, Stride: p.DstStride}
		if up {
			planes[i] = staging.BlockPlane{Address: p.Src.Address, Stride: p.SrcStride}
		}
		known, err := c.b.locate(planes[i].Address)
		if err != nil {
			return backends.Complete, err
		}
		//mutate:never page-locked memory in disguise is gathered by blocks before it is written
		if known.Allocator != backends.None {
			return backends.Complete, errors.ErrUnsupported
		}
	}
	// In a chunk blocks are counted.
	index, dense := c.To.List, *c.Blocks
	dense.To.List = nil
	if up {
		index = c.From.List
		dense.To, dense.From.List = c.To, nil
	}
	all := *c
	all.Blocks = &dense
	l := &blockLane{lane: lane{b: &c.b.stagingFloor, visit: c.v, device: c.d, stream: c.stream, stop: c.Stop},
		copies: &all, kernels: k, host: staging.NewBlocks(planes, index, c.Count, c.Size), up: up, pairs: all.pairs()}
	left, move := backends.Complete, c.b.staging.DownloadTo
	if up {
		left, move = backends.Writing, c.b.staging.UploadFrom
	}
	err := move(l, l.host)
	if l.free != nil {
		err = errors.Join(err, l.free())
	}
	return left, err
}

// mostStaged is the size of the largest blocks that are staged, of which a chunk has at least one.
const mostStaged = ofCopyEngine

// Up implements staging.Driver.
func (l *blockLane) Up(c *staging.Chunk, offset, _ int) error { return l.copyChunk(c, offset) }

// Down implements staging.Driver.
func (l *blockLane) Down(c *staging.Chunk, offset, _ int) error { return l.copyChunk(c, offset) }

func (l *blockLane) copyChunk(c *staging.Chunk, offset int) error {
	return l.enqueue(c, func() error {
		if err := l.place(); err != nil {
			return err
		}
		p, size := l.host.Load(offset), l.copies.Size
		planes := slices.Clone(l.copies.Planes[p.Plane : p.Plane+p.Planes])
		for i := range planes {
			// Block First is the chunk's first one.
			in := backends.Region{Address: c.Address + backends.Address((i*p.Count-p.First)*size)}
			if l.up {
				planes[i].Src, planes[i].SrcStride = in, size
			} else {
				planes[i].Dst, planes[i].DstStride = in, size
			}
		}
		part := *l.copies
		part.Blocks = &backends.Blocks{Planes: planes, Size: size, Count: p.Count}
		from := blockSource{listed: l.pairs[p.First : p.First+p.Count]}
		if l.placed != 0 {
			from = blockSource{pairs: l.placed + backends.Address(p.First*pairSize)}
		}
		return part.launch(l.kernels, from)
	})
}

// place has the pairs on the device before the first chunk, unless each chunk's are arguments.
func (l *blockLane) place() error {
	if l.begun {
		return nil
	}
	l.begun = true
	planes := min(len(l.copies.Planes), mostBlockWords/2/planeWords)
	apart, err := l.copies.readsLate()
	if err != nil || apart || l.host.Most()+planeWords*planes <= mostBlockWords {
		return err
	}
	l.placed, l.free, err = l.copies.uploaded(pairBytes(l.pairs))
	return err
}
