package gobuffer

import "hamr/backends"

// Allocation is memory of our own that is not freed yet. What is zero of Thread, Time and Stack is not
// known: the memory was taken before a Recorder was there.
type Allocation struct {
	Library Library
	Region  backends.Region
	Size    int
	Stream  backends.Stream
	Thread  int
	Time    int64 // nanoseconds since 1970
	Stack   int64 // as Recorder's caller numbers them
}

// Allocations lists the memory that is not freed yet: what callers have, and temporaries that are kept
// (see Array.Cached). What Statistics counts as in use is the sum of them.
func (r *Runtime) Allocations() (list []Allocation) {
	if r.check() != nil {
		return nil
	}
	r.eachLiving(func(l *living) {
		m, known := l.Memory, l.Record
		a := Allocation{Library: m.library, Region: m.region, Size: m.Size(), Stream: m.ordered()}
		if known != nil {
			a.Thread, a.Time, a.Stack = known.Thread, known.Time, known.Stack
		}
		list = append(list, a)
	})
	return list
}
