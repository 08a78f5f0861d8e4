package bridge

import (
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/hetero"
)

// caching is the caching allocators that Python has.
var caching = newNumbered[*hetero.CachingAllocator](func(number uint64) error {
	return fmt.Errorf("%w (caching allocator %#x)", gobuffer.ErrFreed, number)
})

// NewCachingAllocator makes an allocator of memory of a, or, if that is less than zero, of what is
// preferred on a device of a backend: page-locked memory or the device's own. It returns its number and
// which allocator's memory it is. limit is as in hetero.CachingAllocatorOptions.
func NewCachingAllocator(a backends.Allocator, backend string, device int, pinned bool,
	limit int64) (_ Rows, err error) {
	defer Guard(&err)
	if a < 0 {
		kind := backends.DeviceOnly
		if pinned {
			kind = backends.Pinned
		}
		if a, err = Scheduler.Preferred(hetero.Place{Backend: backend, Device: device}, kind); err != nil {
			return nil, err
		}
	}
	made, err := Scheduler.NewCachingAllocator(hetero.CachingAllocatorOptions{Allocator: a, Device: device, Limit: limit})
	if err != nil {
		return nil, err
	}
	announceDevices()
	return one(caching.keep(made), a), nil
}

// CreateCached is Create of memory of a caching allocator's, without a value. It goes back there with
// its last reference.
func CreateCached(number uint64, d *Descriptor) (err error) {
	defer Guard(&err)
	a, err := caching.get(number)
	if err != nil {
		return err
	}
	t := arrayiface.ElementType(d.Element)
	count, err := arrayiface.CountElements(t, d.borrowedShape())
	if err != nil {
		return err
	}
	var m *gobuffer.Memory
	if count == 0 {
		m, err = Runtime.NewElements(t, 0, d.Options(), gobuffer.Value{})
	} else {
		m, err = a.Memory(backends.Stream(d.Stream), count*t.Size())
	}
	if err != nil {
		return err
	}
	d.describeNew(m, t, count)
	return nil
}

// CachingStatistics returns the numbers of hetero.AllocatorStatistics.
func CachingStatistics(number uint64) (_ Rows, err error) {
	defer Guard(&err)
	a, err := caching.get(number)
	if err != nil {
		return nil, err
	}
	s := a.Stats()
	return one(s.Live, s.LiveBytes, s.RequestedBytes, s.Cached, s.CachedBytes, s.Limit, s.Hits, s.Misses), nil
}

// TrimCachingAllocator gives back what it keeps.
func TrimCachingAllocator(number uint64) (err error) {
	defer Guard(&err)
	a, err := caching.get(number)
	if err != nil {
		return err
	}
	return a.Trim()
}

// CloseCachingAllocator ends the number. What of the allocator's memory is in use goes back later.
func CloseCachingAllocator(number uint64) (err error) {
	defer Guard(&err)
	a, err := caching.take(number)
	if err != nil {
		return err
	}
	return a.Close()
}
