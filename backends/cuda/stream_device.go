package cuda

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"hamr/backends"
)

// lowestAddress is where mappings begin: vm.mmap_min_addr of every distribution.
const lowestAddress = 1 << 16

// StreamDevice asks the driver in whose context a stream is. The driver follows the
// handle without checking it (cuStreamGetCtx of a handle that is not a stream's is
// undefined), so it is not asked of one that cannot be an address.
func (b *contextFloor) StreamDevice(s backends.Stream) (int, error) {
	if s <= perThreadStream {
		return backends.HostDevice, nil
	}
	context, own := b.streams.contextOf(s)
	for _, d := range b.devices {
		if own && d.context.Load() == context {
			return d.number, nil
		}
	}
	if !own {
		if !b.mayBeStream(s) {
			return 0, backends.ErrNoStream
		}
		v := scratch()
		v.b = b
		var err error
		context, err = v.contextOfForeign(0, s)
		visits.Put(v)
		if err != nil {
			return 0, noStream(err)
		}
	}
	v, err := b.enterContext(context)
	if err != nil {
		return 0, noStream(err)
	}
	defer v.leave()
	return b.CurrentDevice()
}

// noStream makes ErrNoStream of what the driver says of a handle that is no stream's.
func noStream(err error) error {
	var failure *backends.DeviceError
	if errors.As(err, &failure) &&
		(failure.Code == invalidValue || failure.Code == invalidContext || failure.Code == invalidHandle) {
		return errors.Join(backends.ErrNoStream, err)
	}
	return err
}

// mayBeStream reports whether a handle can be a stream's. Those of NVIDIA's drivers
// are addresses; where one that exists is none, as the emulator's, the driver checks
// handles itself.
func (b *contextFloor) mayBeStream(s backends.Stream) bool {
	if s < lowestAddress {
		return false
	}
	handle := b.anyHandle()
	return handle == 0 || !isMapped(handle) || isMapped(uintptr(s))
}

// anyHandle returns a stream of the backend's, or else a context, without making one;
// zero if none is known.
func (b *contextFloor) anyHandle() uintptr {
	if own := b.streams.contexts.Load(); own != nil {
		for s := range *own {
			return uintptr(s)
		}
	}
	v := scratch()
	defer visits.Put(v)
	if _, code := b.getCurrent(v); code == success && v.out[0] != 0 {
		return uintptr(v.out[0])
	}
	for _, d := range b.devices {
		if context := d.context.Load(); context != 0 {
			return context
		}
	}
	return 0
}

var pageSize = uintptr(os.Getpagesize())

// isMapped reports whether there is memory at an address: mincore(2) fails with ENOMEM where there is none. Any other
// failure tells nothing. The call may wait for another thread that maps memory, so it is no raw system call.
func isMapped(address uintptr) bool {
	var resident [1]byte
	_, _, code := syscall.Syscall(syscall.SYS_MINCORE, address&^(pageSize-1), pageSize,
		uintptr(unsafe.Pointer(&resident[0])))
	return code != syscall.ENOMEM && code != syscall.EINVAL
}
