//go:build cgo

package host

import (
	"fmt"

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
	l := &b.large
	l.mutex.Lock()
	defer l.mutex.Unlock()
	s.Limit, s.Peak = int64(l.limitNow()), int64(l.most)
	s.Cached += int64(l.bytes)
	s.Hits += l.hits
	s.Misses += l.misses
	for _, block := range l.blocks {
		s.LargestFree = max(s.LargestFree, int64(block.size))
	}
	s.Peak = max(s.Peak, s.Cached)
	return []backends.PoolStatistics{s}
}

// LimitPool limits how many bytes of large blocks wait for reuse; small ones, half a mebibyte in
// all, always may, save for a limit of zero.
func (b *Backend) LimitPool(a backends.Allocator, device int, bytes int64) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	if a != backends.Malloc {
		return fmt.Errorf("memory of allocator %s is not kept for reuse", a)
	}
	l := &b.large
	l.mutex.Lock()
	l.limited, l.limit = bytes != backends.DefaultLimit, int(bytes)
	if bytes == backends.NoLimit {
		l.limit = int(^uint(0) >> 1)
	}
	out := l.surplus()
	l.mutex.Unlock()
	for _, block := range out {
		b.c.free(block.at)
	}
	b.spare.close(bytes == 0, b.c.free)
	return nil
}
