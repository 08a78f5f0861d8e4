package hetero

import (
	"errors"
	"slices"

	"hamr/backends"
	"hamr/gobuffer"
)

// sweep gives back those of the condemned blocks whose work is over.
func (a *CachingAllocator) sweep() (failed error) {
	a.mutex.Lock()
	list := a.condemned
	a.condemned = nil
	a.mutex.Unlock()
	for _, b := range list {
		over, err := b.settled(0)
		if over {
			err = a.discard(b)
		} else {
			a.condemn(b)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Trim gives the kept blocks back to the Runtime whose work is over. It may wait for a device where the
// driver does so when memory is taken from it.
func (a *CachingAllocator) Trim() error {
	if a == nil || a.scheduler == nil {
		return zeroError("allocator", "what NewCachingAllocator returns")
	}
	a.mutex.Lock()
	var kept []*Block
	for bin := range a.bins {
		kept = append(kept, a.bins[bin]...)
		a.bins[bin] = nil
	}
	a.counts.Cached, a.counts.CachedBytes = 0, 0
	a.mutex.Unlock()
	var failed error
	for _, b := range kept {
		over, err := b.settled(0)
		switch {
		case err != nil:
			a.condemn(b)
		case over:
			err = a.discard(b)
		default:
			a.keep(b)
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, a.sweep())
}

// Close has the allocator hand out and keep nothing any more, and gives back what it keeps. What is
// pending or handed out, it gives back when it is over: a later Free or Trim sees to that.
func (a *CachingAllocator) Close() error {
	if a == nil || a.scheduler == nil {
		return zeroError("allocator", "what NewCachingAllocator returns")
	}
	a.mutex.Lock()
	before := a.closed
	a.closed = true
	a.mutex.Unlock()
	failed := a.Trim()
	if a.own != nil && !before {
		failed = errors.Join(failed, a.own.release())
	}
	a.mutex.Lock()
	left := len(a.all)
	a.mutex.Unlock()
	if left == 0 {
		s := a.scheduler
		s.mutex.Lock()
		s.allocators = slices.DeleteFunc(slices.Clone(s.allocators), func(other *CachingAllocator) bool { return other == a })
		s.mutex.Unlock()
	}
	return failed
}

// Stats returns what there is now.
func (a *CachingAllocator) Stats() AllocatorStatistics {
	if a == nil || a.scheduler == nil {
		return AllocatorStatistics{}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	counts := a.counts
	counts.Limit = a.limit
	return counts
}

// forget makes blocks do without a stream that is about to end. What it did on them is over.
func (a *CachingAllocator) forget(c *cache, stream backends.Stream) (failed error) {
	if a.backend != c.place.Backend {
		return nil
	}
	a.mutex.Lock()
	var using []*gobuffer.Memory
	for m := range a.all {
		if m.Uses(stream) {
			using = append(using, m.Retain())
		}
	}
	a.mutex.Unlock()
	for _, m := range using {
		failed = errors.Join(failed, m.Forget(stream), m.Release())
	}
	return failed
}

// forget makes memory do without a stream that is about to end.
func (c *cache) forget(stream backends.Stream) (over bool, err error) {
	s := c.scheduler
	if err := s.runtime.LeaveKept(stream); err != nil {
		return false, err
	}
	s.mutex.Lock()
	allocators := s.allocators
	s.mutex.Unlock()
	for _, a := range allocators {
		if err := a.forget(c, stream); err != nil {
			return false, err
		}
	}
	if f := s.retire.Load(); f != nil && *f != nil {
		return (*f)(stream)
	}
	return true, nil
}
