package cuda

import (
	"unsafe"

	"hamr/backends/internal/pool"
	"hamr/backends/internal/setting"
)

// What the driver counts of its pools.
const (
	reservedNow  = 5 // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
	reservedMost = 6 // CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
	usedNow      = 7 // CU_MEMPOOL_ATTR_USED_MEM_CURRENT
)

// ofDriver returns an attribute of the driver's pool of a device, in bytes; zero if there is none.
func (b *poolFloor) ofDriver(d *device, attribute uintptr) int {
	handle := d.pool.Load()
	v := scratch()
	defer visits.Put(v)
	if handle == 0 || b.callWithPointers(b.driver.MemPoolGetAttribute, handle, attribute,
		uintptr(unsafe.Pointer(&v.out[0]))) != nil {
		return 0
	}
	return int(v.out[0])
}

// limitOf is how many bytes may be taken on a device, or pool.NoLimit.
func (b *poolFloor) limitOf(d *device) (int, error) {
	if d.limited.Load() {
		return int(d.limit.Load()), nil
	}
	return b.poolLimitSetting()
}

func (d *device) limitNow(b *poolFloor) int64 {
	limit, err := b.limitOf(d)
	if err != nil || !d.limited.Load() {
		return pool.NoLimit // the setting speaks of plain memory
	}
	return int64(limit)
}

// takenOn is how many bytes the pools of a device have taken.
func (b *poolFloor) takenOn(d *device) int {
	taken := b.ofDriver(d, reservedNow)
	if p := d.reused.Load(); p != nil {
		taken += p.Statistics().Reserved
	}
	return taken
}

// makeRoom makes room for size bytes of the driver's pool under the limit that LimitPool has set. The
// caller holds d.limiting until they are taken.
func (b *poolFloor) makeRoom(d *device, size int) error {
	for trimmed := false; ; trimmed = true {
		limit := int(d.limit.Load())
		taken := b.ofDriver(d, usedNow)
		if p := d.reused.Load(); p != nil {
			taken += p.Statistics().Reserved
		}
		if !d.limited.Load() || limit < 0 || taken+size <= limit {
			return nil
		}
		if trimmed {
			return &pool.LimitError{Limit: limit, Reserved: taken, Size: size}
		}
		if err := b.trimDevice(d); err != nil {
			return err
		}
	}
}

// usedBeside returns how many bytes of the driver's pool count against the limit, beside others of the allocator
// CUDA. If the limit has no room for what the driver's pool keeps unused, that is given back.
func (b *poolFloor) usedBeside(d *device, others int) int {
	if !d.limited.Load() {
		return 0
	}
	if limit := int(d.limit.Load()); limit >= 0 && b.ofDriver(d, reservedNow)+others > limit && d.freed.Swap(false) {
		if b.trim(d, d.pool.Load()) != nil {
			d.freed.Store(true)
		}
	}
	return b.ofDriver(d, usedNow)
}

// trimDevice is Trim of the pools of a device.
func (b *poolFloor) trimDevice(d *device) error {
	if p := d.reused.Load(); p != nil {
		if err := p.Trim(); err != nil {
			return err
		}
	}
	if err := d.tagged.trim(); err != nil {
		return err
	}
	if handle := d.pool.Load(); handle != 0 {
		//mutate:skip memory that is parked is not given back
		if err := b.unpark(d); err != nil {
			return err
		}
		return b.trim(d, handle)
	}
	return nil
}

func (b *poolFloor) poolLimitSetting() (int, error) {
	return setting.Bytes(b.lookup, b.setting(PoolLimitSetting), 1, pool.NoLimit)
}
