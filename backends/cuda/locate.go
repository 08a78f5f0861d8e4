package cuda

import (
	"sync"
	"unsafe"

	"hamr/backends"
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
// is CUDAHost's. Only plain device memory is of a
// context.
func (b *Backend) Locate(at backends.Address) (backends.Location, error) { return b.locate(at) }

func (b *Backend) locate(at backends.Address) (backends.Location, error) {
	found := backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
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
		found.Allocator, found.Device = backends.CUDAUnified, max(device, 0)
	case kind == memoryTypeHost:
		found.Allocator = backends.CUDAHost
	case q.answers[poolHandle] != 0:
		found.Allocator, found.Device = backends.CUDAAsync, device
	default:
		found.Allocator, found.Device, found.Context = backends.CUDA, device, uintptr(q.answers[ofContext])
	}
	return found, nil
}
