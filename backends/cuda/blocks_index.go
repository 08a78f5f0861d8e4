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
			pairs[k].from = noBlock
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
		return late, c.launch(k, blockSource{listed: pairs})
	}
	at, free, err := c.uploaded(pairBytes(pairs))
	if err != nil {
		return backends.Complete, err
	}
	return late, errors.Join(c.launch(k, blockSource{pairs: at}), free())
}

func pairBytes(pairs []blockPair) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(pairs))), len(pairs)*pairSize)
}

// readsLate reports whether an asynchronous copy may read ordinary host memory after it has returned.
func (c *blockCopy) readsLate() (bool, error) {
	direct, err := c.b.attribute(c.d, AttributeHostPageTables)
	return direct != 0 || c.b.dialect.ReadsLate, err
}

// uploaded is scratch memory with a copy of Go's memory. free gives it back in stream order.
func (c *blockCopy) uploaded(data []byte) (at backends.Address, free func() error, err error) {
	if at, free, err = c.scratch(len(data)); err != nil {
		return 0, nil, err
	}
	if err = c.upload(at, data); err != nil {
		err = errors.Join(err, free())
	}
	return at, free, err
}

// scratch is memory of the device's. free gives it back in stream order.
func (c *blockCopy) scratch(size int) (at backends.Address, free func() error, err error) {
	a := c.b.dialect.Allocators.Plain
	at, err = c.b.Allocate(backends.Request{Allocator: a, Device: c.d.number, Size: size, Stream: c.stream})
	if err != nil {
		return 0, nil, orAnotherWay(err)
	}
	return at, func() error {
		return c.b.Free(backends.Region{Address: at, Allocator: a, Device: c.d.number}, size, c.stream)
	}, nil
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

// byIndices has the device check indices before it copies.
func (c *blockCopy) byIndices(k blockKernels, captured bool) (_ backends.Progress, err error) {
	to, free, err := c.index(&c.To, captured)
	if err != nil {
		return backends.Complete, err
	}
	from, freeFrom, err := c.index(&c.From, captured)
	if err != nil {
		return backends.Complete, errors.Join(err, free())
	}
	defer func() { err = errors.Join(err, free(), freeFrom()) }()
	source := blockSource{to: to, from: from}
	if captured {
		//mutate:replace a graph uses memory that is lent to it alone
		//mutate:with c.checkedTogether() => true
		if !c.checkedTogether() {
			return backends.Complete, errors.ErrUnsupported
		}
		return late, c.launch(k, source) // nobody learns what failed when the graph runs
	}
	failure, err := c.b.failures.begin(&c.b.memoryFloor, c.d.number)
	if err != nil {
		return backends.Complete, err
	}
	source.report = failure.report
	err = c.copyIndexed(k, source)
	if err == nil {
		err = c.b.Record(c.d.number, failure.event, c.stream)
	}
	if err != nil {
		// Nothing stands for the kernels, which may write to the report.
		//mutate:remove a report is used again while a kernel may write to it
		err = errors.Join(err, c.v.finish(c.stream))
		return late, errors.Join(err, failure.discard(&c.b.memoryFloor))
	}
	c.Failed = c.b.failures.add(&c.b.memoryFloor, failure)
	return late, nil
}

// checkedTogether reports whether one launch for some planes can check the indices, in the memory of its blocks.
func (c *blockCopy) checkedTogether() bool {
	return c.Count <= mostChecked && c.Count*(c.Size/c.wordSize()) <= mostInLaunch
}

// copyIndexed copies by one launch, or has many indices made pairs in scratch memory before.
func (c *blockCopy) copyIndexed(k blockKernels, from blockSource) error {
	if c.checkedTogether() {
		return c.launch(k, from)
	}
	a := &checkArgument{to: *from.to, from: *from.from, count: uint32(c.Count)}
	pairs := stateSize // behind the state, and the table
	if c.Repeated {
		a.tableBits = uint32(bits.Len(uint(2*c.Count - 1)))
		pairs += 8 << a.tableBits
	}
	at, free, err := c.scratch(pairs + pairSize*c.Count)
	if err != nil {
		return err
	}
	a.state, a.pairs = uint64(at), uint64(at)+uint64(pairs)
	if c.Repeated {
		a.table = uint64(at) + stateSize
	}
	err = c.check(k, a, pairs)
	if err == nil {
		from.state, from.pairs = at, backends.Address(a.pairs)
		err = c.launch(k, from)
	}
	return errors.Join(err, free())
}

// check enqueues what makes pairs of indices. The first bytes of scratch memory become ones.
func (c *blockCopy) check(k blockKernels, a *checkArgument, ones int) error {
	err := c.b.call(c.b.driver.Memset32, uintptr(a.state), allBits, uintptr(ones/4), c.b.native(c.stream))
	if err != nil {
		return err
	}
	blocks := (c.Count + kernelThreads - 1) / kernelThreads
	err = c.b.launchBlocks(c.d.number, c.stream, k.check, blocks, unsafe.Pointer(a))
	if err == nil && c.Repeated {
		err = c.b.launchBlocks(c.d.number, c.stream, k.settle, blocks, unsafe.Pointer(a))
	}
	return err
}

const (
	allBits   = 1<<32 - 1
	stateSize = 16 // of which the rest aligns what follows
)

// index is what a kernel is told of indices. A list is uploaded; free gives that memory back in stream order.
func (c *blockCopy) index(given *backends.BlockIndex, captured bool) (_ *blockIndex, free func() error, err error) {
	nothing := func() error { return nil }
	index := &blockIndex{extent: uint32(given.Extent)}
	if given.List == nil {
		if read(*given) {
			index.address, index.width = uint64(given.Region.Address), uint32(given.Width)
		}
		return index, nothing, nil
	}
	apart, err := c.readsLate()
	if err == nil && (apart || captured) {
		err = errors.ErrUnsupported // a graph would use the scratch memory, too
	}
	if err != nil {
		return nil, nil, err
	}
	at, free, err := c.uploaded(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(given.List))), 8*c.Count))
	index.address, index.width = uint64(at), 8
	return index, free, err
}
