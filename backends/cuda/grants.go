package cuda

import (
	"unsafe"

	"hamr/backends"
)

// openToUsers lets an extent's device, and those that reach it, use some of its memory. peers.mu is held.
func (b *peerFloor) openToUsers(e *extent, at backends.Address, size int) error {
	err := b.grant(e, at, size, e.device, readWrite)
	for pair, enabled := range b.peers.pairs {
		if err == nil && enabled && pair[1] == e.device.number {
			err = b.grant(e, at, size, b.devices[pair[0]], readWrite)
		}
	}
	return err
}

// grant gives a device the right to an extent's mapped memory, as far as it has one. peers.mu is held.
func (b *peerFloor) grant(e *extent, at backends.Address, size int, to *device, right int32) error {
	access := &poolAccess{location{deviceLocation, to.handle}, right}
	if e.readOnly && right == readWrite {
		//mutate:replace a device writes to shared memory that is for reading
		//mutate:with readOnly => readWrite
		access.flags = readOnly
	}
	return b.callWithPointers(b.driver.MemSetAccess, uintptr(at), uintptr(size), uintptr(unsafe.Pointer(access)), 1)
}

// grantAll gives a device the right to all memory of another one's extents. peers.mu is held.
func (x *extents) grantAll(b *peerFloor, of, to *device, right int32) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, e := range x.list {
		at := e.start
		for _, size := range e.mapped {
			if e.device != of || e.away != nil {
				break
			}
			if err := b.grant(e, at, size, to, right); err != nil {
				return err
			}
			at += backends.Address(size)
		}
	}
	return nil
}
