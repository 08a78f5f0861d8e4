package released

import (
	"sync"
	"sync/atomic"
)

// Aside is memory without references that its backend hands out again, to the host, which writes at once. Devices may
// still use it, and it is given back when they are done.
type Aside[M any] struct {
	some  atomic.Int64 // how much, so that allocations need not look where there is none
	mutex sync.Mutex
	list  []M // those that were asked after longest ago first
}

// Some reports whether there is any.
func (d *Aside[M]) Some() bool { return d.some.Load() != 0 }

// Add puts memory aside.
func (d *Aside[M]) Add(list ...M) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.list = append(d.list, list...)
	d.some.Store(int64(len(d.list)))
}

// Take removes and returns up to most of them, or all if most is negative.
func (d *Aside[M]) Take(most int) []M {
	if d.some.Load() == 0 {
		return nil
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if most < 0 || most > len(d.list) {
		most = len(d.list)
	}
	taken := d.list[:most:most]
	if d.list = d.list[most:]; len(d.list) == 0 {
		d.list = nil
	}
	d.some.Store(int64(len(d.list)))
	return taken
}
