package cuda

import (
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

const memoryTypeHost = 1

// pointerQuery is one question to the driver about an address: which attributes
// it should tell, where to, and its answers.
type pointerQuery struct {
	attributes [7]int32
	targets    [7]uintptr
	answers    [7]uint64
}

// The places of the answers, and the driver's numbers of what is asked.
const (
	memoryType = iota
	deviceOrdinal
	isManaged
	rangeStart
	rangeSize
	poolHandle
	ofContext
)

var queries = sync.Pool{New: func() any {
	q := &pointerQuery{attributes: [7]int32{memoryType: 2, deviceOrdinal: 9, isManaged: 8, rangeStart: 11, rangeSize: 12, poolHandle: 17, ofContext: 1}}
	for i := range q.answers {
		q.targets[i] = uintptr(unsafe.Pointer(&q.answers[i]))
	}
	return q
}}

// Locate asks the driver, whichever library allocated the memory. Memory from a
// pool is CUDAAsync's; page-locked memory, and memory that was page-locked later,
// is CUDAHost's. CUDAVMM's is what the backend has mapped itself. Only plain device memory is
// of a context.
func (b *Backend) Locate(at backends.Address) (backends.Location, error) {
	found, err := b.locate(at)
	var p *pool.Pool
	switch {
	case err != nil || b.extents.locate(&found):
	case found.Allocator == b.dialect.Allocators.Plain:
		p = b.devices[found.Device].reused.Load()
	case found.Allocator == b.dialect.Allocators.Pinned:
		p = b.pinned.Load()
	}
	if p == nil {
		return found, err
	}
	start, size, ours := p.Find(at)
	switch {
	case ours && size == 0: // it was freed
		return nowhere(at), nil
	case ours:
		found.Base, found.Size = start, size
	}
	return found, nil
}

// Reaches asks the driver what it knows of the address, whoever has taken the memory: OpenMP's and
// others' runtimes take theirs from it. Managed memory serves all devices.
func (b *Backend) Reaches(device int, at backends.Region) (bool, error) {
	if at.Allocator == b.dialect.Allocators.Managed {
		return true, nil
	}
	found, err := b.locate(at.Address)
	switch {
	case err != nil || found.Allocator == backends.None:
		return false, err
	case found.Allocator == b.dialect.Allocators.Managed:
		return true, nil
	}
	return found.Allocator != b.dialect.Allocators.Pinned && found.Device == device, nil
}

func nowhere(at backends.Address) backends.Location {
	return backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
}

func (b *Backend) locate(at backends.Address) (backends.Location, error) {
	if !b.hasContexts() {
		return b.locateOnDevices(at)
	}
	found := nowhere(at)
	q := queries.Get().(*pointerQuery)
	defer queries.Put(q)
	q.answers = [7]uint64{}
	err := b.call(b.driver.PointerGetAttributes, uintptr(len(q.answers)),
		uintptr(unsafe.Pointer(&q.attributes)), uintptr(unsafe.Pointer(&q.targets)), uintptr(at))
	kind := int32(q.answers[memoryType])
	if err != nil || kind == 0 {
		return found, err
	}
	found.Base, found.Size = backends.Address(q.answers[rangeStart]), int(q.answers[rangeSize])
	device := int(int32(q.answers[deviceOrdinal]))
	switch {
	case q.answers[isManaged] != 0:
		found.Allocator, found.Device = b.dialect.Allocators.Managed, max(device, 0)
	case kind == memoryTypeHost:
		found.Allocator = b.dialect.Allocators.Pinned
	case q.answers[poolHandle] != 0:
		found.Allocator, found.Device = b.dialect.Allocators.Ordered, device
	default:
		found.Allocator, found.Device, found.Context = b.dialect.Allocators.Plain, device, uintptr(q.answers[ofContext])
	}
	return found, nil
}
