package gobuffer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// Pools returns the figures of the memory that backends keep for reuse: of each pool that is in
// use. What is not used any more is given back to them before.
func (r *Runtime) Pools() (list []backends.PoolStatistics) {
	if r.check() != nil {
		return nil
	}
	_ = r.collect(-1) // a device's failure is told by who uses it
	for _, b := range r.list {
		if p, ok := backends.As[backends.Pooler](b); ok {
			list = append(list, p.Pools()...)
		}
	}
	return list
}

// LimitKept limits how many bytes of ordinary host memory are kept for reuse once they were freed. It refuses nobody
// memory. backends.NoLimit and backends.DefaultLimit are limits, too.
func (r *Runtime) LimitKept(bytes int64) error {
	return r.LimitPool(backends.Malloc, backends.HostDevice, bytes)
}

// LimitPool limits how many bytes are taken for allocator a: of a device's memory, by all its
// allocators on that device; of page-locked memory, on all. That is memory in use and what is kept for reuse, which
// makes room. Of backends.Malloc it is LimitKept; LimitLibrary limits the host's memory in use. backends.NoLimit and backends.DefaultLimit are limits, too. What is
// more fails with a *backends.OutOfMemoryError, and what is kept beyond it is given back before
// LimitPool returns.
func (r *Runtime) LimitPool(a backends.Allocator, device int, bytes int64) error {
	if bytes < backends.DefaultLimit {
		return valueError("bytes", bytes, "a count of zero or more, backends.NoLimit and backends.DefaultLimit")
	}
	b, err := r.Backend(a)
	if err != nil {
		return err
	}
	if device, err = r.checkDevice(b, a, device); err != nil {
		return err
	}
	p, ok := backends.As[backends.Pooler](b)
	if !ok {
		return fmt.Errorf("memory of allocator %s cannot be limited", a)
	}
	_ = r.collect(-1)
	return p.LimitPool(a, device, bytes)
}

// callbacks are those of OnOutOfMemory.
type callbacks struct {
	mutex   sync.Mutex // of list, which is never changed in place
	list    []*callback
	running atomic.Bool
}

type callback struct {
	call func(device, bytes int) bool
}

// OnOutOfMemory has f called when memory of a device has run out, backends.HostDevice for the
// host's, and what hamr itself could give back was not enough: before the allocation fails it is
// tried again, if one of the callbacks returned true. bytes is what is asked for. Callbacks run one
// after the other on the goroutine that allocates; what fails meanwhile, as an allocation that a
// callback makes, calls none. The result ends it; it is nil where there is nothing to be called.
func (r *Runtime) OnOutOfMemory(f func(device, bytes int) bool) (remove func()) {
	if r.check() != nil || f == nil {
		return nil
	}
	added := &callback{f}
	r.callbacks.mutex.Lock()
	defer r.callbacks.mutex.Unlock()
	r.callbacks.list = append(slices.Clone(r.callbacks.list), added)
	return func() {
		r.callbacks.mutex.Lock()
		defer r.callbacks.mutex.Unlock()
		r.callbacks.list = slices.DeleteFunc(slices.Clone(r.callbacks.list), func(c *callback) bool { return c == added })
	}
}

// relieved reports whether a callback says that there is more memory now.
func (r *Runtime) relieved(err error) (some bool) {
	var full *backends.OutOfMemoryError
	if !errors.As(err, &full) {
		return false
	}
	r.callbacks.mutex.Lock()
	list := r.callbacks.list
	r.callbacks.mutex.Unlock()
	if len(list) == 0 || !r.callbacks.running.CompareAndSwap(false, true) {
		return false
	}
	defer r.callbacks.running.Store(false)
	for _, c := range list {
		some = c.call(full.Device, full.Size) || some
	}
	return some
}

// Segments returns how the memory of the pools is divided, of backends that can tell.
func (r *Runtime) Segments() (list []backends.Segment) {
	if r.check() != nil {
		return nil
	}
	for _, b := range r.list {
		if s, ok := backends.As[backends.SegmentReporter](b); ok {
			list = append(list, s.Segments()...)
		}
	}
	return list
}
