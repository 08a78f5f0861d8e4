package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

const (
	attachGlobal = 1 // managed memory that any stream of any device may use
	portable     = 1 // pinned for all contexts
	mapped       = 2 // at an address that devices can use, too
)

// Allocate returns memory of the device's primary context, or of its pool. Zeroing
// is work on r.Stream, save for page-locked memory, which is zero at return.
func (b *Backend) Allocate(r backends.Request) (backends.Address, error) {
	at, err := b.allocate(r)
	if isOutOfMemory(err) && b.trimForMore(r.Allocator) {
		at, err = b.allocate(r)
	}
	if isOutOfMemory(err) {
		detail := fmt.Sprintf("%s (%d)", codeNames[outOfMemory], outOfMemory)
		limited := (*pool.LimitError)(nil)
		if errors.As(err, &limited) {
			detail = limited.Error()
		}
		if locked := (*lockError)(nil); errors.As(err, &locked) {
			detail = fmt.Sprintf("%s (%d)", locked.Name, locked.Code)
		}
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size, Detail: detail, Limited: limited != nil}
	}
	return at, err
}

func isOutOfMemory(err error) bool {
	if err == nil {
		return false
	}
	var failed *backends.DeviceError
	var limited *pool.LimitError
	var locked *lockError
	return errors.As(err, &limited) || errors.As(err, &locked) || (errors.As(err, &failed) && failed.Code == outOfMemory)
}

func (b *Backend) allocate(r backends.Request) (backends.Address, error) {
	switch r.Allocator {
	case backends.CUDA:
		return b.allocatePlain(r)
	case backends.CUDAAsync:
		return b.allocateFromPool(r)
	case backends.CUDAUnified:
		if err := b.checkManaged(r.Device); err != nil {
			return 0, err
		}
		return b.allocateHere(r, b.driver.MemAllocManaged, attachGlobal)
	case backends.CUDAHost:
		return b.allocatePinned(r)
	case backends.CUDAVMM:
		return b.allocateGrowing(r)
	}
	return 0, notServed(r.Allocator)
}

func notServed(a backends.Allocator) error {
	return fmt.Errorf("the cuda backend does not serve allocator %s", a)
}

func (b *Backend) checkManaged(number int) error {
	d, err := b.device(number)
	if err != nil {
		return err
	}
	able, err := b.attribute(d, attributeManagedMemory)
	if err == nil && able == 0 {
		err = d.lacks("managed memory", backends.CUDAUnified)
	}
	return err
}

// allocateHere serves the allocators without a stream. The memory becomes part of
// the device's own context, whichever context the stream is of.
func (b *Backend) allocateHere(r backends.Request, function uintptr, flags ...uintptr) (backends.Address, error) {
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

func (b *Backend) zero(at backends.Address, r backends.Request) error {
	v, err := b.enter(r.Device, r.Stream)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.Memset8, uintptr(at), 0, uintptr(r.Size), uintptr(r.Stream))
}

func (b *Backend) allocateFromPool(r backends.Request) (backends.Address, error) {
	pool, err := b.pool(r.Device)
	if err != nil {
		return 0, err
	}
	if d, _ := b.device(r.Device); d.limited.Load() {
		d.limiting.Lock()
		defer d.limiting.Unlock()
		if err := b.makeRoom(d, r.Size); err != nil {
			return 0, err
		}
	}
	v, err := b.enter(r.Device, r.Stream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if err := b.call(b.driver.MemAllocFromPool, v.slot(0), uintptr(r.Size), pool, uintptr(r.Stream)); err != nil {
		return 0, err
	}
	at := uintptr(v.out[0])
	if !r.Zero {
		return backends.Address(at), nil
	}
	if err := b.call(b.driver.Memset8, at, 0, uintptr(r.Size), uintptr(r.Stream)); err != nil {
		_ = b.freeToPool(backends.Region{Address: backends.Address(at), Device: r.Device}, r.Stream)
		return 0, err
	}
	return backends.Address(at), nil
}

// Supports knows that old devices lack memory pools, managed memory or memory that grows.
func (b *Backend) Supports(a backends.Allocator, device int) error {
	switch a {
	case backends.CUDAAsync:
		_, err := b.pool(device)
		return err
	case backends.CUDAUnified:
		return b.checkManaged(device)
	case backends.CUDAVMM:
		d, err := b.device(device)
		if err == nil {
			_, err = b.units(d)
		}
		return err
	}
	return nil
}

// FreeWaits reports true of what is not freed in stream order: cuMemFree and
// cuMemFreeHost take memory away once the device has come to rest, and Free waits before it
// unmaps memory.
func (b *Backend) FreeWaits(a backends.Allocator) bool { return !a.Ordered() && !b.Reuses(a) }

// Free gives memory back: that of CUDAAsync and CUDA in stream order, any other at once. All work
// on page-locked memory that Reuses speaks of is over.
func (b *Backend) Free(at backends.Region, size int, stream backends.Stream) error {
	switch at.Allocator {
	case backends.CUDA:
		return b.freePlain(at, size, stream)
	case backends.CUDAUnified:
		return b.freeHere(at, b.driver.MemFree)
	case backends.CUDAHost:
		return b.freePinned(at, size)
	case backends.CUDAVMM:
		return b.freeGrowing(at)
	case backends.CUDAAsync:
		v, err := b.enter(at.Device, stream)
		if err != nil {
			return &backends.NotFreedError{Reason: err}
		}
		defer v.leave()
		return b.freeToPool(at, stream)
	}
	return notServed(at.Allocator)
}

// freeToPool gives memory of CUDAAsync back, in the context of the stream.
func (b *Backend) freeToPool(at backends.Region, s backends.Stream) error {
	err := b.call(b.driver.MemFreeInStreamOrder, uintptr(at.Address), uintptr(s))
	if d, failed := b.device(at.Device); failed == nil {
		d.freed.Store(true)
	}
	return err
}

func (b *Backend) freeHere(at backends.Region, function uintptr) error {
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
