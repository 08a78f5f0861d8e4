package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"hamr/backends"
)

// sharesMemory reports whether the driver has the functions that memory needs to be shared by
// descriptor, beside those of managesAddresses.
func (f *EntryPoints) sharesMemory() bool {
	return !slices.Contains([]uintptr{f.MemExport, f.MemImport}, 0)
}

// sharedUnits returns what a device's memory is made of that is shared by descriptor, or why there is
// none.
func (b *growthFloor) sharedUnits(number int) (*device, *units, error) {
	if number < 0 {
		return nil, nil, fmt.Errorf("the %s backend has no device %d", b.Name(), number)
	}
	d, err := b.device(number)
	if err != nil {
		return nil, nil, err
	}
	able, err := b.attribute(d, AttributeSharedMemory)
	if err != nil {
		return nil, nil, err
	}
	if able == 0 || !b.driver.sharesMemory() {
		return nil, nil, &backends.UnavailableError{Backend: b.Name(),
			Reason: fmt.Sprintf("device %d has no memory that processes share by descriptor", number)}
	}
	u, err := b.units(d)
	if err != nil {
		return nil, nil, err
	}
	shared := *u
	properties := *u.properties
	properties.handles = byDescriptor
	shared.properties = &properties
	return d, &shared, nil
}

// Shares asks the driver, which has such memory since 10.2.
func (b *growthFloor) Shares(device int) error {
	_, _, err := b.sharedUnits(device)
	return err
}

// SharedUnit is that of CUDAVMM's.
func (b *growthFloor) SharedUnit(device int) (int, error) {
	_, u, err := b.sharedUnits(device)
	if err != nil {
		return 0, err
	}
	return u.bytes, nil
}

func (u *units) checkShared(size int) error {
	if size <= 0 || size%u.bytes != 0 {
		return fmt.Errorf("shared memory of %d bytes: accepted are multiples of %d", size, u.bytes)
	}
	return nil
}

// NewShared returns memory of CUDAVMM, which devices reach as they do all of it.
func (b *growthFloor) NewShared(device, size int) (at backends.Region, descriptor int, err error) {
	d, u, err := b.sharedUnits(device)
	if err == nil {
		err = u.checkShared(size)
	}
	if err != nil {
		return backends.Region{}, -1, err
	}
	at = backends.Region{Allocator: b.dialect.Allocators.Growing, Device: device}
	if size > u.total {
		return backends.Region{}, -1, b.outOf(at, size)
	}
	at.Address, descriptor, err = b.newShared(d, u, size)
	if isOutOfMemory(err) && b.trimForMore(at.Allocator) {
		at.Address, descriptor, err = b.newShared(d, u, size)
	}
	if isOutOfMemory(err) {
		err = b.outOf(at, size)
	}
	if err != nil {
		return backends.Region{}, -1, err
	}
	return at, descriptor, nil
}

func (b *growthFloor) newShared(d *device, u *units, size int) (at backends.Address, descriptor int, err error) {
	handle, descriptor, err := b.createShared(d, u, size)
	if err != nil {
		return 0, -1, err
	}
	if at, err = b.mapShared(d, size, handle, false); err != nil {
		return 0, -1, errors.Join(err, closeDescriptor(descriptor))
	}
	return at, descriptor, nil
}

// createShared makes memory, and a descriptor of it.
func (b *growthFloor) createShared(d *device, u *units, size int) (handle uintptr, descriptor int, err error) {
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return 0, -1, err
	}
	defer v.leave()
	if err := b.callWithPointers(b.driver.MemCreate, v.slot(0), uintptr(size), uintptr(unsafe.Pointer(u.properties)),
		0); err != nil {
		return 0, -1, err
	}
	handle = uintptr(v.out[0])
	if err := b.call(b.driver.MemExport, v.slot(1), handle, byDescriptor, 0); err != nil {
		return 0, -1, errors.Join(err, b.release(handle))
	}
	descriptor = int(int32(v.out[1]))
	if err := closeOnExec(descriptor); err != nil {
		return 0, -1, errors.Join(err, closeDescriptor(descriptor), b.release(handle))
	}
	return handle, descriptor, nil
}

// mapShared maps all memory of a handle, which it gives back in any case, to addresses of its own.
func (b *growthFloor) mapShared(d *device, size int, handle uintptr, readOnly bool) (backends.Address, error) {
	at, _, err := b.addresses(d, size, 0)
	if err != nil {
		return 0, errors.Join(err, b.release(handle))
	}
	e := &extent{device: d, start: at, reserved: []int{size}, shared: true, readOnly: readOnly}
	b.extents.add(e)
	if err := b.mapHandle(e, size, handle); err != nil {
		return 0, errors.Join(err, b.giveUp(e))
	}
	return at, nil
}

// MapShared maps all of the memory that a descriptor is of: size is how much it has. What was made
// on another device than the one named is refused, as far as the driver can tell.
func (b *growthFloor) MapShared(descriptor, device, size int, readOnly bool) (backends.Region, error) {
	d, u, err := b.sharedUnits(device)
	if err == nil {
		err = u.checkShared(size)
	}
	if err != nil {
		return backends.Region{}, err
	}
	if err := checkDescriptor(descriptor); err != nil {
		return backends.Region{}, err
	}
	at, err := b.importShared(d, size, descriptor, readOnly)
	if err != nil {
		return backends.Region{},
			fmt.Errorf("mapping %d bytes of the shared memory of descriptor %d: %w", size, descriptor, err)
	}
	return backends.Region{Address: at, Allocator: b.dialect.Allocators.Growing, Device: device}, nil
}

func (b *growthFloor) importShared(d *device, size, descriptor int, readOnly bool) (backends.Address, error) {
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if err := b.call(b.driver.MemImport, v.slot(0), uintptr(descriptor), byDescriptor); err != nil {
		return 0, err
	}
	handle := uintptr(v.out[0])
	made := new(allocationProperties)
	if b.driver.MemGetProperties != 0 &&
		b.callWithPointers(b.driver.MemGetProperties, uintptr(unsafe.Pointer(made)), handle) == nil &&
		made.location.kind == deviceLocation && made.location.number != d.handle {
		return 0, errors.Join(fmt.Errorf("it is memory of another device than %d", d.number), b.release(handle))
	}
	return b.mapShared(d, size, handle, readOnly)
}

// ProtectShared takes the right to write from all devices.
func (b *growthFloor) ProtectShared(at backends.Region, size int) error {
	p := &b.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := b.extents.sharedAt(at, size)
	if err != nil || e.readOnly {
		return err
	}
	v, err := b.enter(e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	e.readOnly = true
	if err := b.openToUsers(e, e.start, size); err != nil {
		e.readOnly = false
		return errors.Join(err, b.openToUsers(e, e.start, size))
	}
	return nil
}

// UnmapShared waits for the devices that reach the memory, as freeing of CUDAVMM's does.
func (b *growthFloor) UnmapShared(at backends.Region, size int) error {
	e, err := b.extents.sharedAt(at, size)
	if err != nil {
		return err
	}
	return b.endExtent(e)
}
