//go:build cgo

package host

import (
	"fmt"
	"math"

	"hamr/backends"
)

// Pools returns what is known of the blocks of Malloc that wait for reuse.
func (b *Backend) Pools() []backends.PoolStatistics {
	s := backends.PoolStatistics{Allocator: backends.Malloc, Device: backends.HostDevice}
	for i := range b.spare.classes {
		c := &b.spare.classes[i]
		c.mutex.Lock()
		size := int64(i+1) * alignment
		s.Cached += int64(c.count) * size
		s.Hits += c.hits
		s.Misses += c.misses
		if c.count > 0 {
			s.LargestFree = size
		}
		c.mutex.Unlock()
	}
	b.medium.addTo(&s)
	b.large.addTo(&s)
	s.Peak = max(s.Peak, s.Cached)
	return []backends.PoolStatistics{s}
}

func (s *largeSpares) addTo(sum *backends.PoolStatistics) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	sum.Limit += int64(s.limitNow())
	sum.Peak += int64(s.most)
	sum.Cached += int64(s.bytes)
	sum.Hits += s.hits
	sum.Misses += s.misses
	for _, block := range s.blocks {
		sum.LargestFree = max(sum.LargestFree, int64(block.size))
	}
}

// LimitPool limits how many bytes of large blocks wait for reuse. Small ones, half a mebibyte in all, always may,
// unless the limit is zero.
func (b *Backend) LimitPool(a backends.Allocator, device int, bytes int64) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	if a != backends.Malloc {
		return fmt.Errorf("memory of allocator %s is not kept for reuse", a)
	}
	whole := int(bytes)
	if bytes == backends.NoLimit {
		whole = math.MaxInt
	}
	part := min(mediumBytes, whole/mediumShare)
	b.medium.setLimit(bytes != backends.DefaultLimit, part, b.c.free)
	b.large.setLimit(bytes != backends.DefaultLimit, whole-part, b.c.free)
	b.spare.close(bytes == 0, b.c.free)
	return nil
}

func (s *largeSpares) setLimit(limited bool, limit int, free func(backends.Address)) {
	s.mutex.Lock()
	s.limited, s.limit = limited, limit
	out := s.surplus()
	s.mutex.Unlock()
	for _, block := range out {
		free(block.at)
	}
}
