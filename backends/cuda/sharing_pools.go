package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"hamr/backends"
)

// exportedSize is that of the driver's CUmemPoolPtrExportData, in bytes.
const exportedSize = 64

// foreignPools are pools of other processes, and what was imported of them, and how often.
type foreignPools struct {
	devices map[uintptr]*device // by pool; peers.mu guards it
	mu      sync.Mutex
	times   map[backends.Address]int
}

func (b *memoryFloor) sharingDevice(number int) (*device, error) {
	if number < 0 {
		return nil, fmt.Errorf("the %s backend has no device %d", b.Name(), number)
	}
	d, err := b.device(number)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d, b.checkPoolSharing(d)
}

// SharedPool serves CUDAAsync where PoolSharingSetting asks for it.
func (b *memoryFloor) SharedPool(a backends.Allocator, number int) (descriptor int, err error) {
	d, err := b.sharingDevice(number)
	if err != nil {
		return -1, err
	}
	if a != b.dialect.Allocators.Ordered || !b.sharedPools {
		return -1, &backends.UnavailableError{Backend: b.Name(),
			Reason: fmt.Sprintf("memory of allocator %s is of no pool that processes share: %s=1 makes that of %s one",
				a, b.setting(PoolSharingSetting), b.dialect.Allocators.Ordered)}
	}
	pool, err := b.pool(number)
	if err != nil {
		return -1, err
	}
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return -1, err
	}
	defer v.leave()
	if err := b.call(b.driver.MemPoolExport, v.slot(0), pool, byDescriptor, 0); err != nil {
		return -1, err
	}
	descriptor = int(int32(v.out[0]))
	if err := closeOnExec(descriptor); err != nil {
		return -1, errors.Join(err, closeDescriptor(descriptor))
	}
	return descriptor, nil
}

// ExportPooled asks the driver where the allocation starts.
func (b *memoryFloor) ExportPooled(at backends.Region) (exported []byte, offset int, err error) {
	if _, err := b.sharingDevice(at.Device); err != nil {
		return nil, 0, err
	}
	found, err := b.locate(at.Address)
	if err != nil {
		return nil, 0, err
	}
	if found.Allocator != b.dialect.Allocators.Ordered || found.Device != at.Device {
		return nil, 0, fmt.Errorf("the memory at %#x is not of allocator %s on device %d", at.Address,
			b.dialect.Allocators.Ordered, at.Device)
	}
	offset = int(at.Address - found.Base)
	at.Address = found.Base
	exported, err = b.ExportAllocated(at)
	return exported, offset, err
}

// ExportAllocated asks the driver once.
func (b *memoryFloor) ExportAllocated(at backends.Region) (exported []byte, err error) {
	if b.driver.MemPoolExportPointer == 0 {
		return nil, &backends.UnavailableError{Backend: b.Name(), Reason: "its driver has no pools that processes share"}
	}
	v, err := b.enter(at.Device, defaultStream)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	data := new([exportedSize]byte)
	if err := b.callWithPointers(b.driver.MemPoolExportPointer, uintptr(unsafe.Pointer(data)),
		uintptr(at.Address)); err != nil {
		return nil, err
	}
	return data[:], nil
}

// ImportPool lets the devices that can reach this one's memory reach the pool's, too.
func (b *memoryFloor) ImportPool(descriptor, number int) (uintptr, error) {
	d, err := b.sharingDevice(number)
	if err != nil {
		return 0, err
	}
	if err := checkDescriptor(descriptor); err != nil {
		return 0, err
	}
	v, err := b.enter(number, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if err := b.call(b.driver.MemPoolImport, v.slot(0), uintptr(descriptor), byDescriptor, 0); err != nil {
		return 0, fmt.Errorf("importing the pool of descriptor %d: %w", descriptor, err)
	}
	pool := uintptr(v.out[0])
	if err := b.openPool(d, pool); err != nil {
		return 0, errors.Join(err, b.call(b.driver.MemPoolDestroy, pool))
	}
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	if b.foreignPools.devices == nil {
		b.foreignPools.devices = map[uintptr]*device{}
	}
	b.foreignPools.devices[pool] = d
	return pool, nil
}

func (b *memoryFloor) foreignPool(pool uintptr) (*device, error) {
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	d := b.foreignPools.devices[pool]
	if d == nil {
		return nil, fmt.Errorf("no pool %#x was imported", pool)
	}
	return d, nil
}

// ImportPooled returns memory of CUDAAsync. It counts the imports: the driver returns the same address for each, and
// the first free ends all of them.
func (b *memoryFloor) ImportPooled(pool uintptr, exported []byte) (backends.Region, error) {
	d, err := b.foreignPool(pool)
	if err != nil {
		return backends.Region{}, err
	}
	if len(exported) != exportedSize {
		return backends.Region{},
			fmt.Errorf("%d bytes stand for an allocation: accepted are the %d of ExportPooled", len(exported), exportedSize)
	}
	data := (*[exportedSize]byte)(slices.Clone(exported))
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return backends.Region{}, err
	}
	defer v.leave()
	f := &b.foreignPools
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := b.callWithPointers(b.driver.MemPoolImportPointer, v.slot(0), pool,
		uintptr(unsafe.Pointer(data))); err != nil {
		return backends.Region{}, err
	}
	at := backends.Region{Address: backends.Address(v.out[0]), Allocator: b.dialect.Allocators.Ordered, Device: d.number}
	if f.times == nil {
		f.times = map[backends.Address]int{}
	}
	f.times[at.Address]++
	return at, nil
}

// ClosePooled waits for the devices that reach the memory, gives it back, and waits until that is done, since the
// memory's owner may free it then.
func (b *memoryFloor) ClosePooled(at backends.Region) error {
	d, err := b.device(at.Device)
	if err != nil {
		return err
	}
	late := b.waitForUsers(d)
	if refused(late) {
		return late
	}
	f := &b.foreignPools
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.times[at.Address] {
	case 0:
		return errors.Join(late, fmt.Errorf("no allocation was imported at %#x", at.Address))
	case 1:
		err := b.freeForeign(at)
		if !refused(err) {
			delete(f.times, at.Address)
		}
		return errors.Join(late, err)
	}
	f.times[at.Address]--
	return late
}

func (b *memoryFloor) freeForeign(at backends.Region) error {
	v, err := b.enter(at.Device, defaultStream)
	if err != nil {
		return &backends.NotFreedError{Reason: err}
	}
	defer v.leave()
	if err := b.call(b.driver.MemFreeInStreamOrder, uintptr(at.Address), b.native(legacyStream)); err != nil {
		return &backends.NotFreedError{Reason: err}
	}
	return b.call(b.driver.StreamSynchronize, b.native(legacyStream))
}

// ClosePool ends a pool of ImportPool.
func (b *memoryFloor) ClosePool(pool uintptr) error {
	d, err := b.foreignPool(pool)
	if err != nil {
		return err
	}
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	if err := b.call(b.driver.MemPoolDestroy, pool); err != nil {
		return err
	}
	delete(b.foreignPools.devices, pool)
	return nil
}
