package cuda

import (
	"math"
	"slices"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/setting"
)

const (
	pinnedAllocation = 1 // CU_MEM_ALLOCATION_TYPE_PINNED: in the driver's words, device memory
	deviceLocation   = 1 // CU_MEM_LOCATION_TYPE_DEVICE
	noAccess         = 0 // CU_MEM_ACCESS_FLAGS_PROT_NONE
	readWrite        = 3 // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	releaseThreshold = 4 // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

	poolShare = 32 // the part of a device's memory that its pool keeps
)

// location is the driver's CUmemLocation.
type location struct {
	kind, number int32
}

// poolProperties is the driver's CUmemPoolProps.
type poolProperties struct {
	allocation, handles int32
	location            location
	security            uintptr
	largest             uint64
	usage               uint16
	_                   [54]byte
}

// poolAccess is the driver's CUmemAccessDesc.
type poolAccess struct {
	location location
	flags    int32
}

// pool returns the pool of a device, made at its first use. It is the backend's
// own, as what it keeps and who may reach it is nobody else's business.
func (b *Backend) pool(number int) (uintptr, error) {
	d, err := b.device(number)
	if err != nil {
		return 0, err
	}
	if pool := d.pool.Load(); pool != 0 {
		return pool, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if pool := d.pool.Load(); pool != 0 {
		return pool, nil
	}
	able, err := b.attributeLocked(d, AttributeMemoryPools)
	if err != nil {
		return 0, err
	}
	if able == 0 || !b.driver.hasPools() {
		return 0, b.lacks(d, "memory pools", b.dialect.Allocators.Ordered)
	}
	context, err := b.retain(d)
	if err != nil {
		return 0, err
	}
	v, err := b.enterContext(context)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	return b.makePool(v, d)
}

// hasPools reports whether the library has the functions that the pool needs.
func (d *EntryPoints) hasPools() bool {
	return !slices.Contains([]uintptr{d.MemPoolCreate, d.MemPoolDestroy, d.MemPoolSetAttribute, d.MemPoolGetAttribute,
		d.MemPoolSetAccess, d.MemPoolTrimTo, d.MemAllocFromPool, d.MemFreeInStreamOrder}, 0)
}

func (b *Backend) makePool(v *visit, d *device) (uintptr, error) {
	threshold, err := b.releaseThreshold(v, d)
	if err != nil {
		return 0, err
	}
	handles, err := b.poolHandles(d)
	if err != nil {
		return 0, err
	}
	properties := &poolProperties{allocation: pinnedAllocation, handles: handles, location: location{deviceLocation, d.handle}}
	if err := b.callWithPointers(b.driver.MemPoolCreate, v.slot(0), uintptr(unsafe.Pointer(properties))); err != nil {
		return 0, err
	}
	pool := uintptr(v.out[0])
	v.out[1] = threshold
	err = b.callWithPointers(b.driver.MemPoolSetAttribute, pool, releaseThreshold, uintptr(unsafe.Pointer(&v.out[1])))
	if err == nil {
		//mutate:skip a pool that is not open to other devices from the start
		err = b.openPool(d, pool)
	}
	if err != nil {
		_ = b.call(b.driver.MemPoolDestroy, pool)
		return 0, err
	}
	d.pool.Store(pool)
	return pool, nil
}

func (b *Backend) releaseThreshold(v *visit, d *device) (uint64, error) {
	keep, chosen, err := setting.Number(b.lookup, b.setting(ThresholdSetting), "a number of bytes", 0, math.MaxUint64)
	if chosen || err != nil {
		return keep, err
	}
	err = b.call(b.driver.DeviceTotalMem, v.slot(0), uintptr(d.handle))
	return v.out[0] / poolShare, err
}

// Trim waits for all work on the devices whose pools are in use and gives back
// what these keep for reuse, and page-locked memory that no copy uses.
func (b *Backend) Trim() error {
	if err := b.trimStaging(); err != nil {
		return err
	}
	if p := b.pinned.Load(); p != nil {
		if err := p.Trim(); err != nil {
			return err
		}
	}
	for _, d := range b.devices {
		if err := b.trimDevice(d); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) trim(d *device, pool uintptr) error {
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	// Memory whose release is still queued cannot be trimmed.
	//mutate:skip pools are trimmed while their memory is still being given back
	if err := b.call(b.driver.CtxSynchronize); err != nil {
		return err
	}
	return b.call(b.driver.MemPoolTrimTo, pool, 0)
}

// trimForMore reports whether there is more memory now, perhaps.
func (b *Backend) trimForMore(of backends.Allocator) bool {
	if of == b.dialect.Allocators.Pinned {
		// The pool has given back what nobody uses.
		return b.staging.Held() > 0 && b.trimStaging() == nil
	}
	for _, d := range b.devices {
		if d.pool.Load() != 0 || d.reused.Load() != nil {
			return b.Trim() == nil
		}
	}
	return false
}
