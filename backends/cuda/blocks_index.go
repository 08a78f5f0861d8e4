package cuda

import (
	"errors"
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
		return late, c.launch(k.copy, blockSource{listed: pairs})
	}
	at, free, err := c.uploaded(pairBytes(pairs))
	if err != nil {
		return backends.Complete, err
	}
	return late, errors.Join(c.launch(k.copy, blockSource{pairs: at}), free())
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
	a := c.b.dialect.Allocators.Plain
	at, err = c.b.Allocate(backends.Request{Allocator: a, Device: c.d.number, Size: len(data), Stream: c.stream})
	if err != nil {
		return 0, nil, orAnotherWay(err)
	}
	free = func() error {
		return c.b.Free(backends.Region{Address: at, Allocator: a, Device: c.d.number}, len(data), c.stream)
	}
	if err = c.upload(at, data); err != nil {
		err = errors.Join(err, free())
	}
	return at, free, err
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
		return late, c.launch(k.indexed, source) // nobody learns what failed when the graph runs
	}
	failure, err := c.b.failures.begin(&c.b.memoryFloor, c.d.number)
	if err != nil {
		return backends.Complete, err
	}
	source.report = failure.report
	err = c.launch(k.indexed, source)
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
