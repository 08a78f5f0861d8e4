package cuda

import "hamr/backends"

// Threads work in contexts or, where a library has none, on devices. There the device's number plus one stands for a
// context, so that zero is none.

func contextOfDevice(number int) uintptr { return uintptr(number) + 1 }

func deviceOfContext(context uintptr) uintptr { return context - 1 }

// getCurrent returns the code of asking which context is current, and leaves it in v.out[0].
func (b *contextFloor) getCurrent(v *visit) (function uintptr, code int32) {
	if b.hasContexts() {
		return b.driver.CtxGetCurrent, b.try(b.driver.CtxGetCurrent, v.slot(0))
	}
	code = b.try(b.driver.CtxGetDevice, v.slot(0))
	v.out[0] = uint64(contextOfDevice(int(int32(v.out[0]))))
	return b.driver.CtxGetDevice, code
}

// push makes a context current until pop.
func (b *contextFloor) push(context uintptr) error {
	if b.hasContexts() {
		return b.call(b.driver.CtxPushCurrent, context)
	}
	return b.setCurrent(context)
}

// pop ends push, before which another context was current.
func (b *contextFloor) pop(v *visit) int32 {
	if b.hasContexts() {
		return b.try(b.driver.CtxPopCurrent, v.slot(0))
	}
	return b.try(b.onDevices.SetDevice, deviceOfContext(v.before))
}

// setCurrent makes a context current; zero is none, or the first device.
func (b *contextFloor) setCurrent(context uintptr) error {
	if b.hasContexts() {
		return b.call(b.driver.CtxSetCurrent, context)
	}
	return b.call(b.onDevices.SetDevice, deviceOfContext(max(context, contextOfDevice(0))))
}

// retainContext leaves a device's context in v.out[0].
func (b *contextFloor) retainContext(v *visit, d *device) error {
	if b.hasContexts() {
		return b.call(b.driver.DevicePrimaryCtxRetain, v.slot(0), uintptr(d.handle))
	}
	v.out[0] = uint64(contextOfDevice(d.number))
	return nil
}

// place returns what functions for two devices take for one of them.
func (b *contextFloor) place(context uintptr) uintptr {
	if b.hasContexts() {
		return context
	}
	return deviceOfContext(context)
}

// contextOfStream asks for the context of somebody else's stream, and leaves it in v.out[0]. Where the library cannot
// tell, it is the context of the device that the caller named.
func (b *contextFloor) contextOfStream(v *visit, device int, stream backends.Stream) (function uintptr, code int32) {
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
