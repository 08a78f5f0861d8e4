package cuda

import (
	"fmt"

	"hamr/backends"
	"hamr/backends/internal/pool"
	"hamr/backends/internal/setting"
)

// Pools returns the figures of the pools that are in use, those of all tags together. The driver's pools report neither
// hits nor the largest free block.
func (b *stagingFloor) Pools() (list []backends.PoolStatistics) {
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
			list = append(list, backends.PoolStatistics{Allocator: b.dialect.Allocators.Plain, Device: d.number,
				Limit: d.limitNow(&b.poolFloor)})
		}
		if tagged := d.tagged.all(); len(tagged) > 0 {
			all := backends.PoolStatistics{Allocator: b.dialect.Allocators.Growing, Device: d.number, Limit: pool.NoLimit}
			for _, p := range tagged {
				one := figures(all.Allocator, d.number, p.Pool)
				all.Current, all.Peak, all.Cached = all.Current+one.Current, all.Peak+one.Peak, all.Cached+one.Cached
				all.Hits, all.Misses = all.Hits+one.Hits, all.Misses+one.Misses
				all.LargestFree = max(all.LargestFree, one.LargestFree)
			}
			list = append(list, all)
		}
		if d.pool.Load() != 0 {
			// Others may park memory between the two questions.
			reserved, used := b.ofDriver(d, reservedNow), max(b.ofDriver(d, usedNow)-d.parked.hold(), 0)
			list = append(list, backends.PoolStatistics{Allocator: b.dialect.Allocators.Ordered, Device: d.number,
				Limit:   d.limitNow(&b.poolFloor),
				Current: int64(used), Peak: int64(b.ofDriver(d, reservedMost)), Cached: int64(max(reserved-used, 0))})
		}
	}
	return list
}

func figures(a backends.Allocator, device int, p *pool.Pool) backends.PoolStatistics {
	s := p.Statistics()
	return backends.PoolStatistics{Allocator: a, Device: device, Limit: int64(p.Limit()), Current: int64(s.Lent),
		Peak:   int64(s.MostReserved),
		Cached: int64(s.Cached), LargestFree: int64(s.LargestFree), Hits: s.Hits, Misses: s.Misses}
}

// LimitPool limits what is taken from the driver: page-locked memory in all, or memory of one device by the
// allocators CUDA and CUDAAsync together. What is kept beyond that is given back at once. For CUDAAsync it counts
// what is in use, since the driver's pool takes memory in units of its own, and keeps the rest of the last one.
func (b *stagingFloor) LimitPool(a backends.Allocator, number int, bytes int64) error {
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
		// The limit holds for both allocators also where memory cannot be given back.
		if p := d.reused.Load(); p != nil {
			p.SetLimit(limit)
		}
		if err := b.unpark(d); err != nil { // it would count against the limit
			return err
		}
		if limit < 0 || b.takenOn(d) <= limit {
			return nil
		}
		return b.trimDevice(d)
	}
	return b.notServed(a)
}

func (b *stagingFloor) withoutAny() error {
	return fmt.Errorf("%s is %q: there is no pool to be limited", b.setting(PoolSetting), withoutPool)
}

// Segments returns how the memory of the pools is divided. The driver does not report it for its own pools.
func (b *stagingFloor) Segments() (list []backends.Segment) {
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
		for _, p := range d.tagged.all() {
			list = append(list, p.Segments(b.dialect.Allocators.Plain, d.number)...)
		}
	}
	return list
}
