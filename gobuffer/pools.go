package gobuffer

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

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

// OnOutOfMemory has f called when memory of a device has run out, backends.HostDevice for the
// host's, and what hamr itself could give back was not enough: before the allocation fails it is
// tried again, if one of the callbacks returned true. bytes is what is asked for. Callbacks run one
// after the other on the goroutine that allocates; an allocation that a callback makes and that
// fails calls none. Other goroutines that run out meanwhile wait for the callbacks, and then try
// again; so a callback must not wait for another goroutine that allocates. The result ends it; it is
// nil where there is nothing to be called.
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

// relieve takes memory again after err, if callbacks have given some back: those that were called for
// others since helped, as often as there were any, and then once those that it calls.
func (r *Runtime) relieve(err error, helped uint64, take func() error) error {
	for asked, some := false, false; err != nil && !asked; {
		some, asked = r.relieved(err, &helped)
		if !some {
			return err
		}
		err = take()
	}
	return err
}

// relieved reports whether callbacks gave memory back, and whether they were asked to for err.
func (r *Runtime) relieved(err error, helped *uint64) (some, asked bool) {
	var full *backends.OutOfMemoryError
	if !errors.As(err, &full) {
		return false, false
	}
	c := &r.callbacks
	c.mutex.Lock()
	list := c.list
	c.mutex.Unlock()
	// Nobody else is on this thread while callbacks run on it.
	if len(list) == 0 || c.thread.Load() == int64(unix.Gettid()) {
		return false, false
	}
	//mutate:replace who runs out of memory does not wait for another's callbacks
	//mutate:with c.turn.Lock() => if !c.turn.TryLock() { return false, false }
	c.turn.Lock()
	defer c.turn.Unlock()
	if now := c.helped.Load(); now != *helped {
		*helped = now
		return true, false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.thread.Store(int64(unix.Gettid()))
	defer c.thread.Store(0)
	for _, each := range list {
		some = each.call(full.Device, full.Size) || some
	}
	if some {
		c.helped.Add(1)
	}
	return some, true
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

func outOfMemory(err error) bool {
	var full *backends.OutOfMemoryError
	return errors.As(err, &full)
}

// madeRoom reports whether a backend's memory that ran out has come back, perhaps: by this
// call, or by another goroutine's since.
func (r *Runtime) madeRoom(b backends.Backend, err error) bool {
	if !outOfMemory(err) {
		return false
	}
	dropped := r.kept.dropOf(b)
	if c := r.checked(); c != nil {
		dropped = c.giveBack(true) || dropped
	}
	dropped = r.dropGranted() || r.grants.pending() || dropped
	r.grants.wait()
	if _, ever := r.postponed.some(); !ever && r.aside.some.Load() == 0 {
		return dropped
	}
	// One device's failure says nothing of the others.
	_ = r.ReleasePostponed()
	if c := r.checked(); c != nil {
		c.giveBack(true) // what came back by that
	}
	return true
}
