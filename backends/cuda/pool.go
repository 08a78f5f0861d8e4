package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
	"hamr/backends/internal/setting"
)

const (
	releaseThreshold = 4 // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

	poolShare = 32 // the part of a device's memory that its pool keeps
)

// poolFloor is the floor of pools: the driver's, and those of plain and of page-locked memory.
type poolFloor struct {
	peerFloor

	pinned       atomic.Pointer[pool.Pool] // see pinnedPool
	ownPages     sync.Map                  // the size of each mapping that lock has made, by address
	sharedPools  bool                      // see PoolSharingSetting
	withoutReuse bool                      // see PoolSetting
	checksReuse  bool                      // likewise
}

// pool returns the pool of a device, made at its first use. It is the backend's own: no other library changes what it
// keeps, or who reaches it.
func (b *poolFloor) pool(number int) (uintptr, error) {
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

func (b *poolFloor) makePool(v *visit, d *device) (uintptr, error) {
	threshold, err := b.releaseThreshold(v, d)
	if err != nil {
		return 0, err
	}
	handles, err := b.poolHandles(d)
	if err != nil {
		return 0, err
	}
	properties := &poolProperties{allocation: pinnedAllocation, handles: handles,
		location: location{deviceLocation, d.handle}}
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
	if !b.withoutReuse && !b.checksReuse && !b.sharedPools {
		d.parked.mu.Lock()
		d.parked.most = int(min(threshold, math.MaxInt64) / parkedShare)
		d.parked.mu.Unlock()
	}
	d.pool.Store(pool)
	return pool, nil
}

func (b *poolFloor) releaseThreshold(v *visit, d *device) (uint64, error) {
	keep, chosen, err := setting.Number(b.lookup, b.setting(ThresholdSetting), "a number of bytes", 0, math.MaxUint64)
	if chosen || err != nil {
		return keep, err
	}
	err = b.call(b.driver.DeviceTotalMem, v.slot(0), uintptr(d.handle))
	return v.out[0] / poolShare, err
}

func (b *poolFloor) trim(d *device, pool uintptr) error {
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

// sharesPools reports whether the driver has the functions that pools need to be shared.
func (f *EntryPoints) sharesPools() bool {
	return !slices.Contains([]uintptr{f.MemPoolExport, f.MemPoolImport, f.MemPoolExportPointer, f.MemPoolImportPointer}, 0)
}

// checkPoolSharing says why a device's pools cannot be shared.
func (b *poolFloor) checkPoolSharing(d *device) error {
	able, err := b.attributeLocked(d, AttributeSharedPools)
	var unknown *backends.DeviceError
	if errors.As(err, &unknown) && unknown.Code == invalidValue {
		able, err = 0, nil // a driver before 11.3 does not know what it is asked for
	}
	if err != nil {
		return err
	}
	if able&byDescriptor == 0 || !b.driver.sharesPools() {
		return &backends.UnavailableError{Backend: b.Name(),
			Reason: fmt.Sprintf("device %d has no pools that processes share by descriptor", d.number)}
	}
	return nil
}

// poolHandles is how the pool of a device can be shared: not at all unless PoolSharingSetting asks for it.
func (b *poolFloor) poolHandles(d *device) (int32, error) {
	if !b.sharedPools {
		return 0, nil
	}
	err := b.checkPoolSharing(d)
	if errors.Is(err, backends.ErrUnavailable) {
		return 0, nil
	}
	return byDescriptor, err
}

// unpark gives the driver what is parked of a device.
func (b *poolFloor) unpark(d *device) error {
	blocks := d.parked.taken()
	if len(blocks) == 0 {
		return nil
	}
	v, err := b.enter(d.number, legacyStream)
	if err != nil {
		d.parked.back(blocks...)
		return err
	}
	defer v.leave()
	return b.freeParked(d, blocks)
}

// freeParked gives blocks to the driver in the context that is entered.
func (b *poolFloor) freeParked(d *device, blocks []parkedBlock) (failed error) {
	for _, block := range blocks {
		err := b.call(b.driver.MemFreeInStreamOrder, uintptr(block.at), b.native(legacyStream))
		if err != nil {
			d.parked.back(block)
			failed = errors.Join(failed, err)
		}
		d.freed.Store(true)
	}
	return failed
}
