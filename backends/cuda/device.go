package cuda

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

// Attributes of devices, as CUDA's driver numbers them: see Dialect.Attributes.
const (
	AttributeMultiprocessors     = 16
	AttributeMajor               = 75
	AttributeMinor               = 76
	AttributeManagedMemory       = 83
	AttributeHostPageTables      = 100 // the device follows the host's page tables to pageable memory
	AttributeVirtualMemory       = 102
	AttributeSharedMemory        = 103 // processes share it by descriptor
	AttributeRemoteVirtualMemory = 110 // network cards reach it
	AttributeMemoryPools         = 115
	AttributeSharedPools         = 119 // how processes share pools: a bit for each kind of handle
)

const perThreadStreams = 16 // of each device; threads beyond share

const mostIdleEvents = 64 // of each device

// device is what is kept about one device. mu guards the fields below it and the
// setting of those that are atomic.
type device struct {
	number  int
	handle  int32 // CUdevice
	context *atomic.Uintptr
	pool    atomic.Uintptr // CUmemoryPool
	reused  atomic.Pointer[pool.Pool]
	parked  parked // of pool
	tagged  taggedPools

	limited  atomic.Bool  // by LimitPool
	limit    atomic.Int64 // bytes, or pool.NoLimit
	limiting sync.Mutex   // held while memory is taken from pool within the limit
	freed    atomic.Bool  // memory of pool, since it was trimmed for lack of room under the limit

	mu         sync.Mutex
	attributes map[int]int
	kernels    kernels
	units      *units // nil until they are asked for
	perThread  [perThreadStreams]backends.Stream
	collecting backends.Stream // see Collect

	events eventList
}

// device returns the device of that number; the first for memory that belongs to
// none.
func (b *contextFloor) device(number int) (*device, error) {
	number = max(number, 0)
	if number >= len(b.devices) {
		return nil, fmt.Errorf("the %s backend has no device %d: it has %d", b.Name(), number, len(b.devices))
	}
	return b.devices[number], nil
}

// primaryContext returns the primary context of a device, which is retained once and never released: a release could
// destroy it while other libraries use it.
func (b *contextFloor) primaryContext(number int) (uintptr, error) {
	d, err := b.device(number)
	if err != nil {
		return 0, err
	}
	if context := d.context.Load(); context != 0 {
		return context, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return b.retain(d)
}

// retain is called with d.mu held.
func (b *contextFloor) retain(d *device) (uintptr, error) {
	if context := d.context.Load(); context != 0 {
		return context, nil
	}
	v := scratch()
	if err := b.retainContext(v, d); err != nil {
		return 0, err
	}
	d.context.Store(uintptr(v.out[0]))
	return uintptr(v.out[0]), nil
}

// attribute returns a property of a device, which never changes.
func (b *contextFloor) attribute(d *device, which int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return b.attributeLocked(d, which)
}

func (b *contextFloor) attributeLocked(d *device, which int) (int, error) {
	if value, ok := d.attributes[which]; ok {
		return value, nil
	}
	number, known := b.dialect.nativeAttribute(which)
	if !known {
		return 0, nil
	}
	v := scratch()
	if err := b.call(b.driver.DeviceGetAttribute, v.slot(0), uintptr(number), uintptr(d.handle)); err != nil {
		return 0, err
	}
	if d.attributes == nil {
		d.attributes = map[int]int{}
	}
	d.attributes[which] = int(int32(v.out[0]))
	return d.attributes[which], nil
}

// lacks returns the error for an ability that a device does not have.
func (b *contextFloor) lacks(d *device, what string, a backends.Allocator) error {
	return &backends.UnavailableError{Backend: b.Name(),
		Reason: fmt.Sprintf("device %d has no %s, which allocator %s needs", d.number, what, a)}
}

// kernels are those that are loaded into a device's primary context. They have a lock of their own, since the driver
// may take seconds to compile.
type kernels struct {
	mu        sync.Mutex         // of what follows
	modules   map[string]uintptr // by kernel; that of "" has all
	failure   error              // of loading: it is not tried again
	functions map[string]uintptr
}

// eventList holds idle events of a device's primary context for reuse: to make an event costs more than all other
// calls for it.
type eventList struct {
	mu   sync.Mutex
	idle []uintptr
}

func (l *eventList) take() uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.idle) - 1
	if last < 0 {
		return 0
	}
	e := l.idle[last]
	l.idle = l.idle[:last]
	return e
}

func (l *eventList) put(e uintptr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == mostIdleEvents {
		return false
	}
	l.idle = append(l.idle, e)
	return true
}

func (b *contextFloor) deviceText(function uintptr, d *device) (string, error) {
	text := make([]byte, 256)
	err := b.callWithPointers(function, uintptr(unsafe.Pointer(unsafe.SliceData(text))), uintptr(len(text)),
		uintptr(d.handle))
	before, _, _ := bytes.Cut(text, []byte{0})
	return string(before), err
}
