package hetero

import (
	"errors"
	"maps"

	"hamr/backends"
	"hamr/gobuffer"
)

// keep keeps a block for reuse if it is within the limit; else it is given back when its work is over.
func (a *CachingAllocator) keep(b *Block) error {
	a.mutex.Lock()
	within := a.limit == backends.NoLimit || a.counts.CachedBytes+b.room() <= a.limit
	kept := b.bin != 0 && !a.closed && within
	if kept {
		a.bins[b.bin] = append(a.bins[b.bin], b)
		a.counts.Cached++
		a.counts.CachedBytes += b.room()
	}
	a.mutex.Unlock()
	if kept {
		return nil
	}
	return a.dispose(b)
}

// dispose gives a block back to the Runtime that is not to be kept: now if its work is over, else when
// somebody calls sweep, for whom there is nobody to count on once the allocator was closed.
func (a *CachingAllocator) dispose(b *Block) (failed error) {
	over, err := b.settled(nil)
	for ; err != nil; over, err = b.settled(nil) {
		failed = errors.Join(failed, err)
	}
	//mutate:always blocks that are not kept are given to the driver whose work is pending
	if over {
		return errors.Join(failed, a.discard(b))
	}
	a.mutex.Lock()
	closed := a.closed
	if !closed {
		a.condemned = append(a.condemned, b)
	}
	a.mutex.Unlock()
	if closed {
		first, c := b.marks[0].event, b.marks[0].user.cache
		ask := func() (bool, error) { return c.streams.Done(c.place.Device, first) }
		a.scheduler.watcher.add(&watched{ask: ask, told: func(error) {
			// Memory may have to be waited for, and others are told by this goroutine.
			go func() { _ = a.dispose(b) }()
		}})
	}
	return failed
}

// discard gives memory back to the Runtime that nobody uses.
func (a *CachingAllocator) discard(b *Block) error {
	late := a.release(b.memory)
	return errors.Join(late, a.end())
}

func (a *CachingAllocator) release(m *gobuffer.Memory) error {
	defer a.leaving.End(a.leaving.Begin())
	a.mutex.Lock()
	delete(a.all, m)
	a.mutex.Unlock()
	return m.Release()
}

// sweep gives back those of the condemned blocks whose work is over.
func (a *CachingAllocator) sweep() (failed error) {
	a.mutex.Lock()
	list := a.condemned
	a.condemned = nil
	a.mutex.Unlock()
	for _, b := range list {
		failed = errors.Join(failed, a.dispose(b))
	}
	return failed
}

// Trim gives the kept blocks back to the Runtime whose work is over. It may wait for a device where the
// driver does so when memory is taken from it.
func (a *CachingAllocator) Trim() error {
	if a == nil || a.scheduler == nil {
		return errNoAllocator
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
		over, err := b.settled(nil)
		switch {
		case err != nil:
			err = errors.Join(err, a.dispose(b))
		//mutate:always blocks are given to the driver whose work is pending
		case over:
			err = a.discard(b)
		default:
			err = a.keep(b)
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, a.sweep())
}

func (a *CachingAllocator) blocks() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.all)
}

// Close has the allocator hand out and keep nothing any more, and gives back what it keeps. It does not
// wait: what is pending or handed out goes back when that is over.
func (a *CachingAllocator) Close() error {
	if a == nil || a.scheduler == nil {
		return errNoAllocator
	}
	a.mutex.Lock()
	a.closed = true
	a.mutex.Unlock()
	return errors.Join(a.Trim(), a.end())
}

// end lets go of what a closed allocator needs for its last memory, once that is back.
func (a *CachingAllocator) end() error {
	a.mutex.Lock()
	over := a.closed && !a.ended && len(a.all) == 0 && a.taking == 0
	if over {
		a.ended = true
		clear(a.users)
	}
	a.mutex.Unlock()
	if !over {
		return nil
	}
	a.scheduler.remove(a)
	if a.own == nil {
		return nil
	}
	return a.own.release()
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

// forget makes blocks do without a stream that is about to end, and be nobody's whose handle is the same
// later.
func (a *CachingAllocator) forget(stream backends.Stream) (failed error) {
	a.mutex.Lock()
	maps.DeleteFunc(a.users, func(h handle, _ *user) bool { return h.stream == stream })
	var using []*gobuffer.Memory
	for m := range a.all {
		//mutate:never blocks keep a stream that ends
		if m.Uses(stream) {
			using = append(using, m.Retain())
		}
	}
	a.mutex.Unlock()
	for _, m := range using {
		failed = errors.Join(failed, m.Forget(stream), m.Release())
	}
	// Whoever is giving some of it back, which is not in all any more, may still have to do with the stream.
	a.leaving.Wait()
	return failed
}
