package store

import "sync/atomic"

// descriptor is one that several goroutines may be sending; the last that lets go closes it.
type descriptor struct {
	number int
	users  atomic.Int32
}

func newDescriptor(number int) *descriptor {
	record(number)
	d := &descriptor{number: number}
	d.users.Store(1)
	return d
}

func (d *descriptor) retain() *descriptor {
	d.users.Add(1)
	return d
}

func (d *descriptor) release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = closeRecorded(d.number)
	}
}
