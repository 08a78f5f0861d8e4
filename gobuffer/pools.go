package gobuffer

import (
	"errors"
	"fmt"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
)

// Pools returns the figures of the memory that backends keep for reuse, one for each pool in use. Memory that is no
// longer used goes back to the pools first.
func (r *Runtime) Pools() (list []backends.PoolStatistics) {
	if r.check() != nil {
		return nil
	}
	_ = r.collect(-1) // a device's failure is told by who uses it
	for _, b := range r.backends.List() {
		if p, ok := backends.As[backends.Pooler](b); ok {
			list = append(list, p.Pools()...)
		}
	}
	return list
}

// LimitKept limits how many bytes of ordinary host memory are kept for reuse after they were freed. It never makes an
// allocation fail. backends.NoLimit and backends.DefaultLimit are accepted, too.
func (r *Runtime) LimitKept(bytes int64) error {
	return r.LimitPool(backends.Malloc, backends.HostDevice, bytes)
}

// LimitPool limits how many bytes are taken for allocator a. The limit of a device's memory counts all its allocators
// on that device, and that of page-locked memory counts all devices. Both count memory in use and memory kept for
// reuse, which is freed to make room. For backends.Malloc it is LimitKept; LimitLibrary limits host memory in use.
// backends.NoLimit and backends.DefaultLimit are accepted, too. An allocation beyond the limit fails with a
// *backends.OutOfMemoryError. Before LimitPool returns it frees what is kept beyond the limit.
func (r *Runtime) LimitPool(a backends.Allocator, device int, bytes int64) error {
	if bytes < backends.DefaultLimit {
		return valueError("bytes", bytes, "a count of zero or more, backends.NoLimit and backends.DefaultLimit")
	}
	b, err := r.Backend(a)
	if err != nil {
		return err
	}
	if device, err = backing.Device(b, a, device); err != nil {
		return err
	}
	p, ok := backends.As[backends.Pooler](b)
	if !ok {
		return fmt.Errorf("memory of allocator %s cannot be limited", a)
	}
	_ = r.collect(-1)
	return p.LimitPool(a, device, bytes)
}

// OnOutOfMemory registers f, which is called when a device runs out of memory and hamr has nothing left to give back.
// device is backends.HostDevice for host memory, and bytes is the size asked for. The allocation is tried again if a
// callback returned true. Callbacks run one after the other, on the goroutine that allocates. If a callback's own
// allocation fails, it calls no callbacks. Other goroutines that run out of memory meanwhile wait for the callbacks and
// then try again, so a callback must not wait for another goroutine that allocates. remove unregisters f. It is nil if
// f is nil or there is no Runtime.
func (r *Runtime) OnOutOfMemory(f func(device, bytes int) bool) (remove func()) {
	if r.check() != nil || f == nil {
		return nil
	}
	return r.callbacks.Add(f)
}

// givenBack counts what libraries and callbacks have given back so far.
type givenBack struct{ byLibraries, byCallbacks uint64 }

func (r *Runtime) givenBack() givenBack {
	return givenBack{r.grants.Ended(), r.callbacks.Helped()}
}

// takeAgain takes memory again after err, each time that room was made for it: by what libraries have
// given back since before, by what hamr itself can do without, and by callbacks.
func (r *Runtime) takeAgain(before givenBack, b backends.Backend, err error, take func() error) error {
	if outOfMemory(err) && r.grants.WaitSince(before.byLibraries) {
		err = take()
	}
	if err != nil && r.madeRoom(b, err) {
		err = take()
	}
	return r.callbacks.Relieve(err, before.byCallbacks, take)
}

// Segments returns how the memory of the pools is divided, of backends that can tell.
func (r *Runtime) Segments() (list []backends.Segment) {
	if r.check() != nil {
		return nil
	}
	for _, b := range r.backends.List() {
		if s, ok := backends.As[backends.SegmentReporter](b); ok {
			list = append(list, s.Segments()...)
		}
	}
	return list
}

func outOfMemory(err error) bool {
	if err == nil { // what errors.As needs takes memory
		return false
	}
	var full *backends.OutOfMemoryError
	return errors.As(err, &full)
}

// madeRoom reports whether memory of a backend that ran out may have come back, by this call or by another goroutine
// since.
func (r *Runtime) madeRoom(b backends.Backend, err error) bool {
	if !outOfMemory(err) {
		return false
	}
	dropped := r.kept.dropOf(b)
	if c := r.checked(); c != nil {
		dropped = c.giveBack(true) || dropped
	}
	dropped = r.grants.Drop() || r.grants.Pending() || dropped
	r.grants.Wait()
	if _, ever := r.postponed.Some(); !ever && !r.aside.Some() {
		return dropped
	}
	// One device's failure says nothing of the others.
	_ = r.ReleasePostponed()
	if c := r.checked(); c != nil {
		c.giveBack(true) // what came back by that
	}
	return true
}
