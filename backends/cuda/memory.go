package cuda

import (
	"errors"
	"fmt"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

const attachGlobal = 1 // managed memory that any stream of any device may use

// memoryFloor is the floor of all memory, that of other processes too.
type memoryFloor struct {
	growthFloor

	foreignPools       foreignPools
	foreignAllocations foreignAllocations
}

// Allocate returns memory of the device's primary context, or of its pool. Zeroing
// is work on r.Stream, save for page-locked memory, which is zero at return.
func (b *memoryFloor) Allocate(r backends.Request) (backends.Address, error) {
	at, err := b.allocate(r)
	if isOutOfMemory(err) && b.trimForMore(r.Allocator) {
		at, err = b.allocate(r)
	}
	if isOutOfMemory(err) {
		detail := fmt.Sprintf("%s (%d)", b.nameOf(outOfMemory), outOfMemory)
		limited := (*pool.LimitError)(nil)
		if errors.As(err, &limited) {
			detail = limited.Error()
		}
		if locked := (*lockError)(nil); errors.As(err, &locked) {
			detail = fmt.Sprintf("%s (%d)", locked.Name, locked.Code)
		}
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size, Detail: detail,
			Limited: limited != nil}
	}
	return at, err
}

func (b *memoryFloor) allocate(r backends.Request) (backends.Address, error) {
	switch r.Allocator {
	case b.dialect.Allocators.Plain:
		if r.Tag != backends.NoTag {
			return b.allocateTagged(r)
		}
		return b.allocatePlain(r)
	case b.dialect.Allocators.Ordered:
		return b.allocateFromPool(r)
	case b.dialect.Allocators.Managed:
		if err := b.checkManaged(r.Device); err != nil {
			return 0, err
		}
		return b.allocateHere(r, b.driver.MemAllocManaged, attachGlobal)
	case b.dialect.Allocators.Pinned:
		return b.allocatePinned(r)
	case b.dialect.Allocators.Growing:
		return b.allocateGrowing(r)
	}
	return 0, b.notServed(r.Allocator)
}

func (b *memoryFloor) checkManaged(number int) error {
	d, err := b.device(number)
	if err != nil {
		return err
	}
	able, err := b.attribute(d, AttributeManagedMemory)
	if err == nil && able == 0 {
		err = b.lacks(d, "managed memory", b.dialect.Allocators.Managed)
	}
	return err
}

func (b *memoryFloor) allocateFromPool(r backends.Request) (backends.Address, error) {
	pool, err := b.pool(r.Device)
	if err != nil {
		return 0, err
	}
	if at, ok := b.AllocateAtOnce(r); ok {
		return at, nil
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
	if err := b.call(b.driver.MemAllocFromPool, v.slot(0), uintptr(r.Size), pool, b.native(r.Stream)); err != nil {
		return 0, err
	}
	at := uintptr(v.out[0])
	if !r.Zero {
		return backends.Address(at), nil
	}
	if err := b.call(b.driver.Memset8, at, 0, uintptr(r.Size), b.native(r.Stream)); err != nil {
		_ = b.freeToPool(backends.Region{Address: backends.Address(at), Device: r.Device}, r.Stream)
		return 0, err
	}
	return backends.Address(at), nil
}

// Supports knows that old devices lack memory pools, managed memory or memory that grows.
func (b *memoryFloor) Supports(a backends.Allocator, device int) error {
	switch a {
	case b.dialect.Allocators.Ordered:
		_, err := b.pool(device)
		return err
	case b.dialect.Allocators.Managed:
		return b.checkManaged(device)
	case b.dialect.Allocators.Growing:
		d, err := b.device(device)
		if err == nil {
			_, err = b.units(d)
		}
		return err
	}
	return nil
}

// FreeWaits returns true for memory that is not freed in stream order: cuMemFree and cuMemFreeHost wait until the
// device is idle, and Free waits before it unmaps memory.
func (b *memoryFloor) FreeWaits(a backends.Allocator) bool { return !a.Ordered() && !b.Reuses(a) }

// Free gives memory back: that of CUDAAsync and CUDA in stream order, any other at once. Where Reuses is true, all
// work on page-locked memory is over before.
func (b *memoryFloor) Free(at backends.Region, size int, stream backends.Stream) error {
	switch at.Allocator {
	case b.dialect.Allocators.Plain:
		return b.freePlain(at, size, stream)
	case b.dialect.Allocators.Managed:
		return b.freeHere(at, b.driver.MemFree)
	case b.dialect.Allocators.Pinned:
		return b.freePinned(at, size)
	case b.dialect.Allocators.Growing:
		return b.freeGrowing(at)
	case b.dialect.Allocators.Ordered:
		v, err := b.enter(at.Device, stream)
		if err != nil {
			return &backends.NotFreedError{Reason: err}
		}
		defer v.leave()
		return b.freeToPool(at, stream)
	}
	return b.notServed(at.Allocator)
}

// freeToPool gives memory of the library's pool back, in the context of the stream.
func (b *memoryFloor) freeToPool(at backends.Region, s backends.Stream) error {
	err := b.call(b.driver.MemFreeInStreamOrder, uintptr(at.Address), b.native(s))
	if d, failed := b.device(at.Device); failed == nil {
		d.freed.Store(true)
		if err == nil && shared(s) == legacyStream {
			// What the driver does not take stays parked: this memory is free all the same.
			_ = b.freeParked(d, d.parked.superseded())
		}
	}
	return err
}

// Locate asks the driver, whichever library allocated the memory. Memory from a
// pool is CUDAAsync's; page-locked memory, and memory that was page-locked later,
// is CUDAHost's. CUDAVMM's is what the backend has mapped itself. Only plain device memory is
// of a context.
func (b *memoryFloor) Locate(at backends.Address) (backends.Location, error) {
	found, err := b.locate(at)
	var p *pool.Pool
	switch {
	case err != nil || b.extents.locate(&found):
	case found.Allocator == b.dialect.Allocators.Ordered && b.devices[found.Device].parked.has(at):
		return nowhere(at), nil // it was freed
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

// Reaches asks the driver about the address, whichever library allocated the memory: OpenMP's runtimes and others
// allocate theirs from the driver, too. All devices reach managed memory.
func (b *memoryFloor) Reaches(device int, at backends.Region) (bool, error) {
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
