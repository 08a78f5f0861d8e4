package cuda

import (
	"sync"
	"unsafe"

	"hamr/backends"
)

const memoryTypeHost = 1

// pointerQuery is one question to the driver about an address: the attributes asked for, where each answer goes, and
// the answers.
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
	q := &pointerQuery{attributes: [7]int32{memoryType: 2, deviceOrdinal: 9, isManaged: 8, rangeStart: 11, rangeSize: 12,
		poolHandle: 17, ofContext: 1}}
	for i := range q.answers {
		q.targets[i] = uintptr(unsafe.Pointer(&q.answers[i]))
	}
	return q
}}

func nowhere(at backends.Address) backends.Location {
	return backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
}

func (b *contextFloor) locate(at backends.Address) (backends.Location, error) {
	found, _, err := b.locateInPool(at)
	return found, err
}

// locateInPool returns the driver's pool that memory is of, too; zero if it is of none.
func (b *contextFloor) locateInPool(at backends.Address) (found backends.Location, pool uintptr, err error) {
	if !b.hasContexts() {
		found, err = b.locateOnDevices(at)
		return found, 0, err
	}
	found = nowhere(at)
	q := queries.Get().(*pointerQuery)
	defer queries.Put(q)
	q.answers = [7]uint64{}
	err = b.call(b.driver.PointerGetAttributes, uintptr(len(q.answers)),
		uintptr(unsafe.Pointer(&q.attributes)), uintptr(unsafe.Pointer(&q.targets)), uintptr(at))
	kind := int32(q.answers[memoryType])
	if err != nil || kind == 0 {
		return found, 0, err
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
	return found, uintptr(q.answers[poolHandle]), nil
}

// pointerAttributes is what DeviceEntryPoints.PointerQuery writes: the struct that CUDA's and HIP's
// runtimes call cudaPointerAttributes and hipPointerAttribute_t, of which HIP 6 changed the numbers of
// kind, and nothing else.
type pointerAttributes struct {
	kind, device         int32
	onDevice, onHost     uintptr
	managed, allocatedBy int32
}

var pointers = sync.Pool{New: func() any {
	return new(struct {
		attributes  pointerAttributes
		start, size uintptr
	})
}}

// locateOnDevices is locate by DeviceEntryPoints. Some versions report unknown memory as an error, which is dropped.
func (b *contextFloor) locateOnDevices(at backends.Address) (backends.Location, error) {
	found := nowhere(at)
	q := pointers.Get().(*struct {
		attributes  pointerAttributes
		start, size uintptr
	})
	defer pointers.Put(q)
	q.attributes, q.start, q.size = pointerAttributes{kind: -1, device: -1}, 0, 0
	switch code := b.try(b.onDevices.PointerQuery, uintptr(unsafe.Pointer(&q.attributes)), uintptr(at)); code {
	case success:
	case invalidValue:
		return found, nil
	default:
		return found, b.finish(b.onDevices.PointerQuery, code)
	}
	serves := &b.dialect.Allocators
	host, onDevice, managed := b.dialect.MemoryTypes(b.version)
	switch a := &q.attributes; {
	case a.managed != 0 || a.kind == managed:
		found.Allocator, found.Device = serves.Managed, int(max(a.device, 0))
	case a.kind == host:
		found.Allocator = serves.Pinned
	case a.kind == onDevice && int(a.device) >= 0 && int(a.device) < len(b.devices):
		found.Allocator, found.Device = serves.Plain, int(a.device)
	default:
		return found, nil
	}
	code := b.try(b.onDevices.MemGetRange, uintptr(unsafe.Pointer(&q.start)), uintptr(unsafe.Pointer(&q.size)),
		uintptr(at))
	if code == success { // else the library cannot tell, as of memory that was locked later
		found.Base, found.Size = backends.Address(q.start), int(q.size)
	}
	return found, nil
}
