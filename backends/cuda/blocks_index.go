package cuda

import (
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"

	"hamr/backends"
)

// readAtOnce is how much ordinary host memory the driver's asynchronous copy to a device takes without a wait for the
// stream.
const readAtOnce = 64 << 10

// pairs are those of lists, or of counting. Where two name one target, the later one stays.
func (c *blockCopy) pairs() []blockPair {
	pairs := make([]blockPair, c.Count)
	number := func(list []int64, k int) uint32 {
		if list == nil {
			return uint32(k)
		}
		return uint32(list[k])
	}
	for k := range pairs {
		pairs[k] = blockPair{number(c.To.List, k), number(c.From.List, k)}
	}
	if !c.Repeated {
		return pairs
	}
	seen := make(map[uint32]bool, len(pairs))
	for k, pair := range slices.Backward(pairs) {
		if seen[pair.to] {
			pairs[k].to = noBlock
		}
		seen[pair.to] = true
	}
	return pairs
}

// byLists copies what is named on the host. A graph may have pairs in arguments alone.
func (c *blockCopy) byLists(k blockKernels, captured bool) (backends.Progress, error) {
	pairs := c.pairs()
	apart, err := c.readsLate()
	if err != nil {
		return backends.Complete, err
	}
	if captured || apart || len(pairs)+planeWords*len(c.Planes) <= mostBlockWords {
		return late, c.launch(k.copy, blockSource{listed: pairs})
	}
	size := len(pairs) * int(unsafe.Sizeof(blockPair{}))
	scratch, err := c.takeScratch(size)
	if err != nil {
		return backends.Complete, err
	}
	err = c.upload(scratch.Address, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(pairs))), size))
	if err == nil {
		err = c.launch(k.copy, blockSource{pairs: scratch.Address})
	}
	return late, errors.Join(err, c.b.Free(scratch, size, c.stream))
}

// readsLate reports whether an asynchronous copy may read ordinary host memory after it has returned.
func (c *blockCopy) readsLate() (bool, error) {
	direct, err := c.b.attribute(c.d, AttributeHostPageTables)
	return direct != 0 || c.b.dialect.ReadsLate, err
}

// upload copies out of Go's memory, which is read before it returns.
func (c *blockCopy) upload(to backends.Address, data []byte) error {
	defer runtime.KeepAlive(data)
	for part := range slices.Chunk(data, readAtOnce) {
		if err := c.b.callWithPointers(c.b.driver.MemcpyToDevice, uintptr(to),
			uintptr(unsafe.Pointer(unsafe.SliceData(part))), uintptr(len(part)), c.b.native(c.stream)); err != nil {
			return err
		}
		to += backends.Address(len(part))
	}
	return nil
}

// takeScratch returns memory of the device's, which is given back in stream order.
func (c *blockCopy) takeScratch(size int) (backends.Region, error) {
	a := c.b.dialect.Allocators.Plain
	at, err := c.b.Allocate(backends.Request{Allocator: a, Device: c.d.number, Size: size, Stream: c.stream})
	return backends.Region{Address: at, Allocator: a, Device: c.d.number}, orAnotherWay(err)
}

// checkLayout says where scratch memory has what, from its start on.
type checkLayout struct {
	table, pairs, listed, size int // the state comes first
	bits                       int // of the table's size; zero without one
}

func (c *blockCopy) layout() (l checkLayout) {
	l.table = 16
	l.pairs = l.table
	if c.Repeated {
		l.bits = bits.Len(uint(2*c.Count - 1))
		l.pairs += 8 << l.bits
	}
	l.listed = l.pairs + 8*c.Count
	l.size = l.listed
	if c.To.List != nil || c.From.List != nil {
		l.size += 8 * c.Count
	}
	return l
}

// byIndices has the device check indices before it copies.
func (c *blockCopy) byIndices(k blockKernels) (backends.Progress, error) {
	if c.To.List != nil || c.From.List != nil {
		apart, err := c.readsLate()
		if err != nil {
			return backends.Complete, err
		}
		if apart {
			return backends.Complete, errors.ErrUnsupported
		}
	}
	l := c.layout()
	failure, err := c.b.failures.begin(&c.b.memoryFloor, c.d.number)
	if err != nil {
		return backends.Complete, err
	}
	scratch, err := c.takeScratch(l.size)
	if err != nil {
		return backends.Complete, errors.Join(err, failure.discard(&c.b.memoryFloor))
	}
	err = c.check(k, l, scratch.Address)
	if err == nil {
		err = c.launch(k.copy, blockSource{pairs: scratch.Address + backends.Address(l.pairs), state: scratch.Address,
			report: failure.report})
	}
	if err == nil {
		err = c.b.Record(c.d.number, failure.event, c.stream)
	}
	if err != nil {
		// Nothing stands for the kernels, which may write to the report.
		//mutate:remove a report is used again while a kernel may write to it
		err = errors.Join(err, c.v.finish(c.stream))
		return late, errors.Join(err, c.b.Free(scratch, l.size, c.stream), failure.discard(&c.b.memoryFloor))
	}
	c.Failed = c.b.failures.add(&c.b.memoryFloor, failure)
	return late, c.b.Free(scratch, l.size, c.stream)
}

// check enqueues what makes pairs of the indices.
func (c *blockCopy) check(k blockKernels, l checkLayout, scratch backends.Address) error {
	err := c.b.call(c.b.driver.Memset32, uintptr(scratch), allBits, uintptr(l.pairs/4), c.b.native(c.stream))
	if err != nil {
		return err
	}
	at := func(offset int) uint64 { return uint64(scratch) + uint64(offset) }
	a := &checkArgument{pairs: at(l.pairs), state: at(0), count: uint32(c.Count)}
	if l.bits > 0 {
		a.table, a.tableBits = at(l.table), uint32(l.bits)
	}
	for _, side := range []struct {
		from *backends.BlockIndex
		into *blockIndex
	}{{&c.To, &a.to}, {&c.From, &a.from}} {
		side.into.extent = uint32(side.from.Extent)
		switch {
		case side.from.List != nil:
			list := side.from.List
			data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), 8*c.Count)
			if err := c.upload(backends.Address(at(l.listed)), data); err != nil {
				return err
			}
			side.into.address, side.into.width = at(l.listed), 8
		case read(*side.from):
			side.into.address, side.into.width = uint64(side.from.Region.Address), uint32(side.from.Width)
		}
	}
	blocks := (c.Count + kernelThreads - 1) / kernelThreads
	err = c.b.launchBlocks(c.d.number, c.stream, k.check, blocks, unsafe.Pointer(a))
	if err == nil && l.bits > 0 {
		err = c.b.launchBlocks(c.d.number, c.stream, k.settle, blocks, unsafe.Pointer(a))
	}
	return err
}

const allBits = 1<<32 - 1
