package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/setting"
)

// growthFloor is the floor of memory that grows.
type growthFloor struct {
	stagingFloor

	pauses  pauses
	reserve int // see GrowthSetting; zero is the default
}

const (
	leastUnit    = 0       // CU_MEM_ALLOC_GRANULARITY_MINIMUM
	mostReserved = 1 << 44 // bytes of addresses, of 1 << 47, that allocations reserve as many of as a device has
)

// managesAddresses reports whether the driver has the functions that CUDAVMM needs. It does not need
// cuMemRetainAllocationHandle.
func (f *EntryPoints) managesAddresses() bool {
	return !slices.Contains([]uintptr{f.MemAddressReserve, f.MemAddressFree, f.MemCreate, f.MemRelease,
		f.MemMap, f.MemUnmap, f.MemSetAccess, f.MemGetGranularity}, 0)
}

// units returns what a device's memory of CUDAVMM is made of, or why there is none.
func (b *growthFloor) units(d *device) (*units, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.units != nil {
		return d.units, nil
	}
	f := &b.driver
	if !f.managesAddresses() {
		return nil, b.lacks(d, "functions of the driver's that manage addresses", b.dialect.Allocators.Growing)
	}
	able, err := b.attributeLocked(d, AttributeVirtualMemory)
	if err != nil {
		return nil, err
	}
	if able == 0 {
		return nil, b.lacks(d, "virtual memory management", b.dialect.Allocators.Growing)
	}
	remote, err := b.attributeLocked(d, AttributeRemoteVirtualMemory)
	if err != nil {
		return nil, err
	}
	u := &units{properties: &allocationProperties{allocation: pinnedAllocation,
		location: location{deviceLocation, d.handle}, remote: uint8(min(remote, 1))}}
	v := scratch()
	if err := b.callWithPointers(f.MemGetGranularity, v.slot(0), uintptr(unsafe.Pointer(u.properties)),
		leastUnit); err != nil {
		return nil, err
	}
	u.bytes = int(v.out[0])
	if err := b.call(f.DeviceTotalMem, v.slot(0), uintptr(d.handle)); err != nil {
		return nil, err
	}
	u.total = int(v.out[0])
	d.units = u
	return u, nil
}

// readReserve reads GrowthSetting.
func (b *growthFloor) readReserve() (err error) {
	b.reserve, err = setting.Bytes(b.lookup, b.setting(GrowthSetting), 1, b.reserve)
	return err
}

// Grows reports true of CUDAVMM.
func (b *growthFloor) Grows(a backends.Allocator) bool {
	return a != backends.None && a == b.dialect.Allocators.Growing
}

// allocateGrowing serves the allocator CUDAVMM.
func (b *growthFloor) allocateGrowing(r backends.Request) (backends.Address, error) {
	d, err := b.device(r.Device)
	if err != nil {
		return 0, err
	}
	g, err := b.join(r.Tag)
	if err != nil {
		return 0, err
	}
	defer g.unlock()
	e, err := b.mapped(d, r.Size, true)
	if err != nil {
		return 0, err
	}
	if r.Zero {
		if err := b.zero(e.start, r); err != nil {
			_ = b.giveUp(e)
			return 0, err
		}
	}
	b.extents.enlist(e, g)
	return e.start, nil
}

// mapped returns a new extent that has memory.
func (b *growthFloor) mapped(d *device, size int, grows bool) (*extent, error) {
	u, err := b.units(d)
	if err != nil {
		return nil, err
	}
	e, err := b.newExtent(d, u, size, grows)
	if err != nil {
		return nil, err
	}
	if err := b.back(e, u.rounded(size), u); err != nil {
		_ = b.giveUp(e)
		return nil, err
	}
	return e, nil
}

// Grow maps more memory behind what there is. Where the addresses end, it asks for those
// behind them.
func (b *growthFloor) Grow(at backends.Region, _, size int) (int, error) {
	e, err := b.extents.startingAt(at)
	if err != nil {
		return 0, err
	}
	if err := e.group.lock(); err != nil {
		return 0, err
	}
	defer e.group.unlock()
	u, err := b.units(e.device)
	if err != nil {
		return 0, err
	}
	if size > u.total {
		return 0, b.outOf(at, size)
	}
	if err := b.reach(e, u.rounded(size)); err != nil {
		return 0, err
	}
	err = b.back(e, u.rounded(size), u)
	if isOutOfMemory(err) && b.trimForMore(b.dialect.Allocators.Growing) {
		err = b.back(e, u.rounded(size), u)
	}
	if isOutOfMemory(err) {
		return 0, b.outOf(at, size)
	}
	if err != nil {
		return 0, err
	}
	return sum(e.mapped), nil
}

func (b *growthFloor) outOf(at backends.Region, size int) error {
	return &backends.OutOfMemoryError{Allocator: at.Allocator, Device: at.Device, Size: size,
		Detail: fmt.Sprintf("%s (%d)", b.nameOf(outOfMemory), outOfMemory)}
}

// Relocate maps the memory once more, where there are more addresses.
func (b *growthFloor) Relocate(at backends.Region, _, size int) (backends.Address, int, error) {
	old, err := b.extents.startingAt(at)
	if err != nil {
		return 0, 0, err
	}
	if b.driver.MemRetainHandle == 0 {
		return 0, 0, errors.ErrUnsupported
	}
	if err := old.group.lock(); err != nil {
		return 0, 0, err
	}
	defer old.group.unlock()
	u, err := b.units(old.device)
	if err != nil {
		return 0, 0, err
	}
	if size > u.total {
		return 0, 0, b.outOf(at, size)
	}
	e, err := b.newExtent(old.device, u, max(size, sum(old.mapped)), true)
	if err == nil {
		if err = b.mapAgain(e, old); err == nil {
			err = b.back(e, u.rounded(size), u)
		}
		if err != nil {
			_ = b.giveUp(e)
		}
	}
	if isOutOfMemory(err) {
		return 0, 0, b.outOf(at, size)
	}
	if err != nil {
		return 0, 0, err
	}
	b.extents.enlist(e, old.group)
	return e.start, sum(e.mapped), nil
}

// freeGrowing waits for the devices that reach the memory before it unmaps it, since the driver does not. It reports
// earlier failures there, and frees the memory all the same, unless a device cannot be waited for.
func (b *growthFloor) freeGrowing(at backends.Region) error {
	e, err := b.extents.startingAt(at)
	if err != nil {
		return err
	}
	if g := e.group; g != nil {
		g.changing.Lock()
		defer g.changing.Unlock()
	}
	return b.endExtent(e)
}

// endExtent is called with the lock of the extent's group. What is paused is in nobody's use.
func (b *growthFloor) endExtent(e *extent) (late error) {
	if e.away == nil {
		if late = b.waitForUsers(e.device); refused(late) {
			return late
		}
	}
	if err := errors.Join(b.endAway(e), b.giveUp(e)); err != nil {
		return &backends.NotFreedError{Reason: errors.Join(late, err)}
	}
	b.leave(e)
	return late
}
