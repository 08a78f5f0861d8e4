package cuda

import (
	"errors"
	"fmt"
	"math"

	"hamr/backends"
)

// Describe also says how copy_blocks goes.
func (b *copyFloor) Describe(number int) ([][2]string, error) {
	facts, err := b.memoryFloor.Describe(number)
	if err != nil {
		return nil, err
	}
	way := "one by one"
	if !b.withoutKernels {
		way = fmt.Sprintf("by a kernel of %d blocks of threads to the host and %d from there, "+
			"of 1 MiB or more by copy engines", b.gridAcrossBus(true), b.gridAcrossBus(false))
	}
	return append(facts, [2]string{"copy_blocks", way}), nil
}

// blockCopy is one call of CopyBlocks.
type blockCopy struct {
	*backends.Blocks
	b      *copyFloor
	v      *visit
	d      *device
	stream backends.Stream
	road   road
}

// road is where the blocks of a copy pass.
type road int

const (
	byPeers   road = iota // within a device, or between two
	byBus                 // between page-locked memory and a device
	byStaging             // between ordinary host memory and a device
)

// CopyBlocks implements backends.BlockCopier. Indices that the device reads are checked there. Those of lists are pairs
// in a kernel's arguments, or are uploaded.
func (b *copyFloor) CopyBlocks(blocks *backends.Blocks, stream backends.Stream) (backends.Progress, error) {
	number, road, err := b.deviceOfBlocks(blocks)
	if err != nil {
		return backends.Complete, err
	}
	d, err := b.device(number)
	if err != nil {
		return backends.Complete, err
	}
	v, err := b.enterHome(number, stream)
	if err != nil {
		return backends.Complete, err
	}
	defer v.leave()
	functions, err := b.blockKernels(number)
	if err != nil {
		return backends.Complete, err
	}
	c := &blockCopy{blocks, b, v, d, stream, road}
	//mutate:skip a kernel reads blocks of the host's that its device does not reach
	if err := c.reachBlocks(); err != nil {
		return backends.Complete, err
	}
	captured := v.captures(stream)
	if !captured { // or a question about a report would end the capture
		b.failures.collect(&b.memoryFloor)
	}
	if read(blocks.To) || read(blocks.From) {
		return c.byIndices(functions, captured)
	}
	switch {
	case road == byStaging && captured:
		return backends.Complete, errors.ErrUnsupported // what the host waits for is no part of a graph
	case road == byStaging:
		return c.staged(functions)
	case road == byBus && blocks.Size >= ofCopyEngine && !captured:
		return late, c.byCopyEngine()
	}
	return c.byLists(functions, captured)
}

// reachBlocks is reach of the ends of planes that are in page-locked memory, and of indices.
func (c *blockCopy) reachBlocks() error {
	var known mappedHost
	reach := func(at backends.Region, low, size int) error {
		if at.Allocator.Kind() != backends.Pinned {
			return nil
		}
		return known.reach(c.v, backends.Address(int(at.Address)+low), size)
	}
	for _, p := range c.Planes {
		for _, end := range []struct {
			at             backends.Region
			stride, extent int
		}{{p.Dst, p.DstStride, c.To.Extent}, {p.Src, p.SrcStride, c.From.Extent}} {
			across := end.stride * (end.extent - 1)
			if err := reach(end.at, min(0, across), max(across, -across)+c.Size); err != nil {
				return err
			}
		}
	}
	for _, x := range []backends.BlockIndex{c.To, c.From} {
		if read(x) {
			if err := reach(x.Region, 0, c.Count*x.Width); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reports whether a device reads the indices.
func read(i backends.BlockIndex) bool { return i.List == nil && i.Region.Address != 0 }

// deviceOfBlocks returns the device whose kernel copies, and where the blocks pass.
func (b *copyFloor) deviceOfBlocks(blocks *backends.Blocks) (number int, by road, err error) {
	dst, src := blocks.Planes[0].Dst, blocks.Planes[0].Src
	number = b.copyDevice(dst, src)
	to, from := dst.Allocator.Kind(), src.Allocator.Kind()
	switch {
	case b.withoutKernels || !b.ownOrOrdinary(dst) || !b.ownOrOrdinary(src):
		err = errors.ErrUnsupported
	case blocks.Count > mostInLaunch || blocks.Size > mostInLaunch ||
		max(blocks.To.Extent, blocks.From.Extent) > math.MaxInt32:
		err = errors.ErrUnsupported // the kernels count in 32 bits
	case to == backends.DeviceOnly && from == backends.DeviceOnly:
		if dst.Device != src.Device {
			err = b.checkPeers(blocks)
		}
	case to == backends.DeviceOnly && from == backends.Pinned, to == backends.Pinned && from == backends.DeviceOnly:
		by = byBus
	case to == backends.DeviceOnly && from == backends.Pageable, to == backends.Pageable && from == backends.DeviceOnly:
		by = byStaging
	default:
		err = errors.ErrUnsupported
	}
	for _, i := range []backends.BlockIndex{blocks.To, blocks.From} {
		//mutate:never a device reads indices that it does not reach
		if read(i) && (by == byStaging || !b.reachesIndex(number, i.Region)) {
			err = errors.ErrUnsupported
		}
	}
	return number, by, err
}

func (b *copyFloor) ownOrOrdinary(at backends.Region) bool {
	return at.Allocator.Backend() == b.Name() || at.Allocator.Kind() == backends.Pageable
}

func (b *copyFloor) reachesIndex(number int, at backends.Region) bool {
	if at.Allocator.Backend() != b.Name() {
		return false
	}
	switch at.Allocator.Kind() {
	case backends.DeviceOnly:
		return at.Device == number
	case backends.Pinned, backends.Managed:
		return true
	}
	return false
}

// checkPeers returns nil if the target's device reaches all sources, of another device. Nothing but the memory that
// the backend has made, or that is of the other device's primary context, is sure to be reached: a kernel that meets
// other memory ends all work of its context.
func (b *copyFloor) checkPeers(blocks *backends.Blocks) error {
	to, from := blocks.Planes[0].Dst.Device, blocks.Planes[0].Src.Device
	b.connect(to, from)
	b.peers.mu.Lock()
	reached := b.peers.pairs[[2]int{to, from}]
	b.peers.mu.Unlock()
	if !reached {
		return errors.ErrUnsupported
	}
	d, err := b.device(from)
	if err != nil {
		return err
	}
	var last backends.Location
	for _, p := range blocks.Planes {
		if at := p.Src.Address; at >= last.Base && at < last.Base+backends.Address(last.Size) {
			continue
		}
		found, pool, err := b.locateInPool(p.Src.Address)
		if err != nil {
			return err
		}
		own := b.extents.locate(&found) || pool != 0 && pool == d.pool.Load()
		//mutate:never a kernel reads memory of another device that it does not reach
		if !own && found.Context != d.context.Load() {
			return errors.ErrUnsupported
		}
		last = found
	}
	return nil
}

// byCopyEngine enqueues a copy of each block.
func (c *blockCopy) byCopyEngine() error {
	pairs := c.pairs()
	runs := make([]run, 0, len(pairs)*len(c.Planes))
	for _, p := range c.Planes {
		for _, pair := range pairs {
			if pair.from != noBlock {
				runs = append(runs, run{p.Dst.Address + backends.Address(p.DstStride*int(pair.to)),
					p.Src.Address + backends.Address(p.SrcStride*int(pair.from)), c.Size})
			}
		}
	}
	by := c.b.manyBy
	if by == byDefault {
		by = byBatch
	}
	return c.v.copyBeside(c.d, by, c.stream, func(s backends.Stream) error {
		return c.b.copyRuns(c.v, c.d, runs, s, c.b.driver.MemcpyAsync, by)
	})
}

// blockKernels are the functions that CopyBlocks launches.
type blockKernels struct{ check, settle, copy, indexed uintptr }

func (b *copyFloor) blockKernels(number int) (k blockKernels, err error) {
	for _, each := range [...]struct {
		name string
		into *uintptr
	}{{checkBlocksKernel, &k.check}, {settleBlocksKernel, &k.settle}, {copyBlocksKernel, &k.copy},
		{copyIndexedKernel, &k.indexed}} {
		if *each.into, err = b.kernel(number, each.name); err != nil {
			return k, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	return k, nil
}
