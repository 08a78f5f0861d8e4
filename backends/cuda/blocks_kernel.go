package cuda

import (
	"unsafe"

	"hamr/backends"
)

// checkedThreads are those of a block that checks all indices, and checkedOnMultiprocessor is how many of them a
// multiprocessor runs at a time.
const checkedThreads, checkedOnMultiprocessor = 1024, 2

// blockSource says where a kernel finds the pairs: listed on the host, at an address, or in indices that it checks.
// Pairs at an address with a state were indices, which have been checked.
type blockSource struct {
	listed       []blockPair
	pairs, state backends.Address
	to, from     *blockIndex
	report       backends.Address
}

// indexed reports whether hamr_copy_indexed copies, whose blocks of threads check the indices.
func (from blockSource) indexed() bool { return from.to != nil && from.pairs == 0 }

// launch enqueues the copies by as few launches as can be.
func (c *blockCopy) launch(k blockKernels, from blockSource) error {
	word := c.wordSize()
	inBlock := c.Size / word
	planes, count := min(len(c.Planes), mostBlockWords/planeWords), c.Count
	if from.listed != nil {
		planes = min(planes, mostBlockWords/2/planeWords)
		count = min(count, mostBlockWords-planeWords*planes)
	}
	count = min(count, mostInLaunch/inBlock)
	planes = min(planes, mostInLaunch/(inBlock*count))
	a := &blocksArgument{wordSize: uint32(word), wordsOfBlock: dimensionOf(dim{n: inBlock}), state: uint64(from.state),
		report: uint64(from.report)}
	if from.to != nil {
		a.to, a.from = *from.to, *from.from
	}
	if c.Repeated {
		a.repeated = 1
	}
	for plane := 0; plane < len(c.Planes); plane += planes {
		some := c.Planes[plane:min(plane+planes, len(c.Planes))]
		for first := 0; first < c.Count; first += count {
			a.fill(some, from, first, min(count, c.Count-first))
			if err := c.launchOne(k, a, from.indexed()); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill sets what differs between launches.
func (a *blocksArgument) fill(planes []backends.Plane, from blockSource, first, count int) {
	a.planes, a.pairsOfPlane = uint32(len(planes)), dimensionOf(dim{n: count})
	a.words = uint32(len(planes)*count) * a.wordsOfBlock.count
	for i, p := range planes {
		copy(a.room[planeWords*i:], []uint64{uint64(p.Dst.Address), uint64(p.Src.Address), uint64(p.DstStride),
			uint64(p.SrcStride)})
	}
	if from.pairs != 0 {
		a.pairs = uint64(from.pairs) + uint64(first*pairSize)
	}
	if from.listed == nil {
		return
	}
	for i, pair := range from.listed[first : first+count] {
		a.room[planeWords*len(planes)+i] = uint64(pair.from)<<32 | uint64(pair.to)
	}
}

// launchOne leaves most multiprocessors to others where the bus is the limit. Within a device, each block of threads
// that checks all indices is large, and there are few.
func (c *blockCopy) launchOne(k blockKernels, a *blocksArgument, indexed bool) error {
	kernel, threads := k.copy, kernelThreads
	if indexed {
		kernel = k.indexed
	}
	if indexed && c.road == byPeers {
		threads = checkedThreads
	}
	blocks := (int(a.words) + threads*wordsInFlight - 1) / (threads * wordsInFlight)
	switch {
	case c.road != byPeers:
		blocks = min(blocks, c.b.gridAcrossBus(c.Planes[0].Dst.Allocator.Kind() != backends.DeviceOnly))
	case threads == kernelThreads:
		return c.b.launchBlocks(c.d.number, c.stream, kernel, blocks, unsafe.Pointer(a))
	default:
		multiprocessors, err := c.b.attribute(c.d, AttributeMultiprocessors)
		if err != nil {
			return err
		}
		blocks = min(blocks, checkedOnMultiprocessor*max(multiprocessors, 1))
	}
	return c.b.launch(c.d.number, c.stream, kernel, uint32(blocks), uint32(threads), unsafe.Pointer(a))
}

// wordSize is the bytes of a word: all that addresses, strides and the size of blocks are multiples of.
func (c *blockCopy) wordSize() int {
	all := backends.Address(c.Size)
	for _, p := range c.Planes {
		all |= p.Dst.Address | p.Src.Address | backends.Address(p.DstStride) | backends.Address(p.SrcStride)
	}
	return wordSize(all)
}
