package cuda

import (
	"sync"
	"unsafe"

	"hamr/backends"
)

// Where threads work: in contexts or, for libraries that have none, on devices. Then a device's number
// and one, which is not zero, stands for a context.

func (b *Backend) hasContexts() bool { return b.dialect.DeviceEntryPoints == nil }

func contextOfDevice(number int) uintptr { return uintptr(number) + 1 }

func deviceOfContext(context uintptr) uintptr { return context - 1 }

// getCurrent returns the code of asking which context is current, and leaves it in v.out[0].
func (b *Backend) getCurrent(v *visit) (function uintptr, code int32) {
	if b.hasContexts() {
		return b.driver.CtxGetCurrent, b.try(b.driver.CtxGetCurrent, v.slot(0))
	}
	code = b.try(b.driver.CtxGetDevice, v.slot(0))
	v.out[0] = uint64(contextOfDevice(int(int32(v.out[0]))))
	return b.driver.CtxGetDevice, code
}

// push makes a context current until pop.
func (b *Backend) push(context uintptr) error {
	if b.hasContexts() {
		return b.call(b.driver.CtxPushCurrent, context)
	}
	return b.setCurrent(context)
}

// pop ends push, before which another context was current.
func (b *Backend) pop(v *visit) int32 {
	if b.hasContexts() {
		return b.try(b.driver.CtxPopCurrent, v.slot(0))
	}
	return b.try(b.onDevices.SetDevice, deviceOfContext(v.before))
}

// setCurrent makes a context current; zero is none, or the first device.
func (b *Backend) setCurrent(context uintptr) error {
	if b.hasContexts() {
		return b.call(b.driver.CtxSetCurrent, context)
	}
	return b.call(b.onDevices.SetDevice, deviceOfContext(max(context, contextOfDevice(0))))
}

// retainContext leaves a device's context in v.out[0].
func (b *Backend) retainContext(v *visit, d *device) error {
	if b.hasContexts() {
		return b.call(b.driver.DevicePrimaryCtxRetain, v.slot(0), uintptr(d.handle))
	}
	v.out[0] = uint64(contextOfDevice(d.number))
	return nil
}

// place is what functions about two devices name one of them by.
func (b *Backend) place(context uintptr) uintptr {
	if b.hasContexts() {
		return context
	}
	return deviceOfContext(context)
}

// contextOfStream asks for the context of somebody else's stream, and leaves it in v.out[0]. Where the
// library cannot tell it is that of the device, which is what whoever named the stream has said.
func (b *Backend) contextOfStream(v *visit, device int, stream backends.Stream) (function uintptr, code int32) {
	switch of := &b.onDevices; {
	case b.hasContexts():
		return b.driver.StreamGetCtx, b.try(b.driver.StreamGetCtx, uintptr(stream), v.slot(0))
	case of.StreamGetDevice != 0:
		code = b.try(of.StreamGetDevice, uintptr(stream), v.slot(0))
		v.out[0] = uint64(contextOfDevice(int(int32(v.out[0]))))
		return of.StreamGetDevice, code
	case of.StreamDevice != 0:
		number := b.try(of.StreamDevice, uintptr(stream))
		v.out[0] = uint64(contextOfDevice(int(max(number, 0))))
		if number < 0 {
			return of.StreamDevice, invalidHandle
		}
		return of.StreamDevice, success
	}
	v.out[0] = uint64(contextOfDevice(max(0, min(device, len(b.devices)-1))))
	return 0, success
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

// locateOnDevices is locate by DeviceEntryPoints. Memory that nobody knows is an error to some versions,
// of which nothing is left behind.
func (b *Backend) locateOnDevices(at backends.Address) (backends.Location, error) {
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
	code := b.try(b.onDevices.MemGetRange, uintptr(unsafe.Pointer(&q.start)), uintptr(unsafe.Pointer(&q.size)), uintptr(at))
	if code == success { // else the library cannot tell, as of memory that was locked later
		found.Base, found.Size = backends.Address(q.start), int(q.size)
	}
	return found, nil
}
