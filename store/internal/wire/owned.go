package wire

import "sync/atomic"

// Descriptor is one that several goroutines may be sending; the last that lets go closes it.
type Descriptor struct {
	Number int
	users  atomic.Int32
}

func NewDescriptor(number int) *Descriptor {
	Record(number)
	d := &Descriptor{Number: number}
	d.users.Store(1)
	return d
}

func (d *Descriptor) Retain() *Descriptor {
	d.users.Add(1)
	return d
}

func (d *Descriptor) Release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = CloseRecorded(d.Number)
	}
}
