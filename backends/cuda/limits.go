package cuda

import (
	"fmt"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/pool"
	"hamr/backends/internal/setting"
)

// What the driver counts of its pools.
const (
	reservedNow  = 5 // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
	reservedMost = 6 // CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
	usedNow      = 7 // CU_MEMPOOL_ATTR_USED_MEM_CURRENT
)

// Pools returns the figures of the pools that are in use. The driver's own tell neither hits nor
// what is free side by side.
func (b *Backend) Pools() (list []backends.PoolStatistics) {
	if !b.ready.Load() {
		return nil
	}
	if p := b.pinned.Load(); p != nil {
		list = append(list, figures(b.dialect.Allocators.Pinned, backends.HostDevice, p))
	}
	for _, d := range b.devices {
		if p := d.reused.Load(); p != nil {
			list = append(list, figures(b.dialect.Allocators.Plain, d.number, p))
		} else if d.limited.Load() {
			list = append(list, backends.PoolStatistics{Allocator: b.dialect.Allocators.Plain, Device: d.number, Limit: d.limitNow(b)})
		}
		if d.pool.Load() != 0 {
			reserved, used := b.ofDriver(d, reservedNow), b.ofDriver(d, usedNow)
			list = append(list, backends.PoolStatistics{Allocator: b.dialect.Allocators.Ordered, Device: d.number, Limit: d.limitNow(b),
				Current: int64(used), Peak: int64(b.ofDriver(d, reservedMost)), Cached: int64(max(reserved-used, 0))})
		}
	}
	return list
}

func figures(a backends.Allocator, device int, p *pool.Pool) backends.PoolStatistics {
	s := p.Statistics()
	return backends.PoolStatistics{Allocator: a, Device: device, Limit: int64(p.Limit()), Current: int64(s.Lent), Peak: int64(s.MostReserved),
		Cached: int64(s.Cached), LargestFree: int64(s.LargestFree), Hits: s.Hits, Misses: s.Misses}
}

// ofDriver returns an attribute of the driver's pool of a device, in bytes; zero if there is none.
func (b *Backend) ofDriver(d *device, attribute uintptr) int {
	handle := d.pool.Load()
	v := scratch()
	defer visits.Put(v)
	if handle == 0 || b.callWithPointers(b.driver.MemPoolGetAttribute, handle, attribute, uintptr(unsafe.Pointer(&v.out[0]))) != nil {
		return 0
	}
	return int(v.out[0])
}

// LimitPool limits what is taken from the driver: page-locked memory in all, or memory of one device
// by the allocators CUDA and CUDAAsync together. What is kept beyond that is given back at once. Of
// CUDAAsync it counts what is in use: the driver's pool takes memory in units of its own, and keeps the
// rest of the last one.
func (b *Backend) LimitPool(a backends.Allocator, number int, bytes int64) error {
	switch a {
	case b.dialect.Allocators.Pinned:
		p, err := b.pinnedPool()
		if err != nil {
			return err
		}
		if p == nil {
			return b.withoutAny()
		}
		limit := int(bytes)
		if bytes == backends.DefaultLimit {
			if limit, err = setting.Bytes(b.lookup, PinnedPoolLimitSetting, 0, pool.NoLimit); err != nil {
				return err
			}
		}
		p.SetLimit(limit)
		if limit < 0 || p.Statistics().Reserved <= limit {
			return nil
		}
		if err := b.trimStaging(); err != nil {
			return err
		}
		return p.Trim()
	case b.dialect.Allocators.Plain, b.dialect.Allocators.Ordered:
		d, err := b.device(number)
		if err != nil {
			return err
		}
		if b.withoutReuse {
			return b.withoutAny()
		}
		d.limited.Store(bytes != backends.DefaultLimit)
		d.limit.Store(bytes)
		limit, err := b.limitOf(d)
		if err != nil {
			return err
		}
		p := d.reused.Load()
		if p != nil {
			p.SetLimit(limit)
		}
		if limit < 0 || b.takenOn(d) <= limit {
			return nil
		}
		return b.trimDevice(d)
	}
	return b.notServed(a)
}

func (b *Backend) withoutAny() error {
	return fmt.Errorf("%s is %q: there is no pool to be limited", b.setting(PoolSetting), withoutPool)
}

// limitOf is how many bytes may be taken on a device, or pool.NoLimit.
func (b *Backend) limitOf(d *device) (int, error) {
	if d.limited.Load() {
		return int(d.limit.Load()), nil
	}
	return b.poolLimitSetting()
}

func (d *device) limitNow(b *Backend) int64 {
	limit, err := b.limitOf(d)
	if err != nil || !d.limited.Load() {
		return pool.NoLimit // the setting speaks of plain memory
	}
	return int64(limit)
}

// takenOn is how many bytes the pools of a device have taken.
func (b *Backend) takenOn(d *device) int {
	taken := b.ofDriver(d, reservedNow)
	if p := d.reused.Load(); p != nil {
		taken += p.Statistics().Reserved
	}
	return taken
}

// makeRoom makes room for size bytes of the driver's pool under the limit that LimitPool has set. The
// caller holds d.limiting until they are taken.
func (b *Backend) makeRoom(d *device, size int) error {
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

// usedBeside returns how many bytes of the driver's pool count beside others of the allocator CUDA. If
// there is no room under the limit for these and for what the pool keeps, too, that is given back.
func (b *Backend) usedBeside(d *device, others int) int {
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
func (b *Backend) trimDevice(d *device) error {
	if p := d.reused.Load(); p != nil {
		if err := p.Trim(); err != nil {
			return err
		}
	}
	if handle := d.pool.Load(); handle != 0 {
		return b.trim(d, handle)
	}
	return nil
}

// Segments returns how the memory of the pools is divided. Of its own the driver does not tell.
func (b *Backend) Segments() (list []backends.Segment) {
	if !b.ready.Load() {
		return nil
	}
	if p := b.pinned.Load(); p != nil {
		list = append(list, p.Segments(b.dialect.Allocators.Pinned, backends.HostDevice)...)
	}
	for _, d := range b.devices {
		if p := d.reused.Load(); p != nil {
			list = append(list, p.Segments(b.dialect.Allocators.Plain, d.number)...)
		}
	}
	return list
}
