package gobuffer

import (
	"sync/atomic"

	"hamr/backends"
)

type counter struct {
	live    atomic.Int64
	current atomic.Int64
	peak    atomic.Int64
	made    atomic.Int64
	adopted atomic.Int64
}

func (c *counter) add(size int) {
	c.made.Add(1)
	c.live.Add(1)
	now := c.current.Add(int64(size))
	for {
		peak := c.peak.Load()
		if now <= peak || c.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}

func (c *counter) remove(size int) {
	c.live.Add(-1)
	c.current.Add(int64(-size))
}

// Statistics counts the memory of one allocator.
type Statistics struct {
	Allocator backends.Allocator
	Live      int64 // allocations not yet freed
	Current   int64 // bytes in them
	Peak      int64 // the most bytes there ever were at once
	Made      int64 // allocations since the start
	Adopted   int64 // foreign arrays in use now; their bytes are not counted
}

// Statistics returns the counters of every allocator that was ever used. The
// figures of one allocator are read one after the other, not at one instant.
func (r *Runtime) Statistics() []Statistics {
	var list []Statistics
	for _, a := range backends.Allocators() {
		c := &r.counters[a]
		s := Statistics{a, c.live.Load(), c.current.Load(), c.peak.Load(), c.made.Load(), c.adopted.Load()}
		if s.Made != 0 || s.Adopted != 0 {
			list = append(list, s)
		}
	}
	return list
}

// ResetPeaks makes every peak the present value.
func (r *Runtime) ResetPeaks() {
	for i := range r.counters {
		r.counters[i].peak.Store(r.counters[i].current.Load())
	}
}
