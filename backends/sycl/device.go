package sycl

import (
	"fmt"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/queues"
)

// Numbers of dpctl_sycl_enum_types.h.
const (
	anyBackend = (1<<5 - 1) << 16
	anyDevice  = 1<<6 - 1

	typeAccelerator = 1 << 0
	typeCPU         = 1 << 2
	typeGPU         = 1 << 4

	backendCUDA      = 1 << 16
	backendLevelZero = 1 << 17
	backendOpenCL    = 1 << 18
	backendHIP       = 1 << 19

	aspectProfiling = 11
	aspectDevice    = 12
	aspectHost      = 13
	aspectShared    = 14

	queueProfiling = 1 << 0
	queueInOrder   = 1 << 1
)

// aspects is what a device must have for each allocator, and SYCL's name of it.
var aspects = map[backends.Allocator]struct {
	number uintptr
	name   string
}{
	backends.SYCLDevice: {aspectDevice, "usm_device_allocations"},
	backends.SYCLShared: {aspectShared, "usm_shared_allocations"},
	backends.SYCLHost:   {aspectHost, "usm_host_allocations"},
}

// device is a device of some platform, with the context that all its memory is of.
type device struct {
	number int
	handle uintptr
	kind   uint32
	timed  bool                        // its queues can keep the times of events
	lacks  map[backends.Allocator]bool // what it has no memory for

	start   sync.Once
	failed  error
	context uintptr
	queue   *queues.Queue // the default one
	aside   *queues.Queue // for copies through the host
}

// newDevice asks for facts that never change.
func (b *Backend) newDevice(handle uintptr) *device {
	d := &device{handle: handle, kind: uint32(dl.Call(b.library.DeviceType, handle)), lacks: map[backends.Allocator]bool{}}
	has := func(aspect uintptr) bool { return truth(dl.Call(b.library.HasAspect, handle, aspect)) }
	d.timed = has(aspectProfiling)
	for a, aspect := range aspects {
		if !has(aspect.number) {
			d.lacks[a] = true
		}
	}
	return d
}

// rank is the place among devices of other kinds.
func (d *device) rank() int {
	switch {
	case len(d.lacks) == len(aspects):
		return 3
	case d.kind&typeGPU != 0:
		return 0
	case d.kind&typeAccelerator != 0:
		return 1
	}
	return 2
}

func (d *device) kindName() string {
	switch {
	case d.kind&typeGPU != 0:
		return "gpu"
	case d.kind&typeAccelerator != 0:
		return "accelerator"
	case d.kind&typeCPU != 0:
		return "cpu"
	}
	return "other"
}

// OnProcessor reports whether a device is a CPU and nothing else.
func (b *Backend) OnProcessor(number int) bool {
	return number >= 0 && number < len(b.devices) && b.devices[number].kindName() == "cpu"
}

// text is what a function tells of an object, or "".
func (b *Backend) text(function, object uintptr) string {
	at := dl.Call(function, object)
	if at == 0 {
		return ""
	}
	defer dl.Call(b.library.DeleteString, at)
	first := *(*unsafe.Pointer)(unsafe.Pointer(&at)) // C's memory, which no collector moves
	length := 0
	for *(*byte)(unsafe.Add(first, length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(first), length))
}

// number returns a device that exists.
func (b *Backend) numbered(call string, number int) (*device, error) {
	if number < 0 || number >= len(b.devices) {
		return nil, invalid(call, fmt.Sprintf("there is no device %d", number))
	}
	return b.devices[number], nil
}

// device returns one, with its context and queues, which are made at the first call.
func (b *Backend) device(call string, number int) (*device, error) {
	d, err := b.numbered(call, number)
	if err != nil {
		return nil, err
	}
	d.start.Do(func() { d.failed = b.open(d) })
	return d, d.failed
}

// open takes the context that dpctl's queues are in by default; parts of a device have none.
func (b *Backend) open(d *device) (err error) {
	if d.context = dl.Call(b.library.CachedContext, d.handle); d.context == 0 {
		if d.context, err = b.made(b.library.CreateContext, d.handle, handler(), 0); err != nil {
			return err
		}
	}
	if d.queue, err = b.newQueue(d); err != nil {
		return err
	}
	d.aside, err = b.newQueue(d)
	return err
}

// Supports implements backends.Supporter.
func (b *Backend) Supports(a backends.Allocator, number int) error {
	d, err := b.numbered("Supports", number)
	if err == nil && d.lacks[a] {
		err = &backends.UnavailableError{Backend: name,
			Reason: fmt.Sprintf("device %d (%s) has no aspect %s, for allocator %s",
				number, b.text(b.library.DeviceName, d.handle), aspects[a].name, a)}
	}
	return err
}
