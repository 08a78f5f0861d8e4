package cuda

import (
	"unsafe"

	"hamr/backends"
)

// blockSource says where a kernel finds the pairs: listed on the host, or at an address, and then whether they were
// checked.
type blockSource struct {
	listed               []blockPair
	pairs, state, report backends.Address
}

// launch enqueues the copies by as few launches as can be.
func (c *blockCopy) launch(kernel uintptr, from blockSource) error {
	word := c.wordSize()
	inBlock := c.Size / word
	planes, count := min(len(c.Planes), mostBlockWords/planeWords), c.Count
	if from.pairs == 0 {
		planes = min(planes, mostBlockWords/2/planeWords)
		count = min(count, mostBlockWords-planeWords*planes)
	}
	count = min(count, mostInLaunch/inBlock)
	planes = min(planes, mostInLaunch/(inBlock*count))
	a := &blocksArgument{wordSize: uint32(word), wordsOfBlock: dimensionOf(dim{n: inBlock}), allPairs: uint64(from.pairs),
		state: uint64(from.state), report: uint64(from.report)}
	for plane := 0; plane < len(c.Planes); plane += planes {
		some := c.Planes[plane:min(plane+planes, len(c.Planes))]
		for first := 0; first < c.Count; first += count {
			a.fill(some, from, first, min(count, c.Count-first))
			if err := c.launchOne(kernel, a); err != nil {
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
		a.pairs = uint64(from.pairs) + uint64(first)*uint64(unsafe.Sizeof(blockPair{}))
		return
	}
	for i, pair := range from.listed[first : first+count] {
		a.room[planeWords*len(planes)+i] = uint64(pair.from)<<32 | uint64(pair.to)
	}
}

// launchOne leaves most multiprocessors to others where the bus is the limit.
func (c *blockCopy) launchOne(kernel uintptr, a *blocksArgument) error {
	blocks := (int(a.words) + kernelThreads*wordsInFlight - 1) / (kernelThreads * wordsInFlight)
	if !c.bus {
		return c.b.launchBlocks(c.d.number, c.stream, kernel, blocks, unsafe.Pointer(a))
	}
	grid := min(blocks, c.b.gridAcrossBus(c.Size))
	return c.b.launch(c.d.number, c.stream, kernel, uint32(grid), kernelThreads, unsafe.Pointer(a))
}

// wordSize is the bytes of a word: all that addresses, strides and the size of blocks are multiples of.
func (c *blockCopy) wordSize() int {
	all := backends.Address(c.Size)
	for _, p := range c.Planes {
		all |= p.Dst.Address | p.Src.Address | backends.Address(p.DstStride) | backends.Address(p.SrcStride)
	}
	return wordSize(all)
}
