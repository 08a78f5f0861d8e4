package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/counts"
)

// Statistics counts the memory of one allocator.
type Statistics struct {
	Allocator backends.Allocator
	Live      int64 // allocations not yet freed
	Current   int64 // bytes in them, without memory that is paused
	// Peak is the most that Current ever was. What one goroutine frees while
	// another allocates may count as still there.
	Peak    int64
	Made    int64 // allocations since the start
	Adopted int64 // foreign arrays in use now; their bytes are not counted
	Kept    int64 // bytes in temporaries that are kept, see Array.Cached
	Reused  int64 // how often one was handed out again, since the start
}

// Statistics returns the counters of every allocator that was ever used. The
// figures of one allocator are read one after the other, not at one instant.
func (r *Runtime) Statistics() []Statistics {
	if r.check() != nil {
		return nil
	}
	var list []Statistics
	for _, a := range backends.Allocators() {
		c := &r.counters[a]
		s := Statistics{Allocator: a, Adopted: c.Adopted.Load()}
		s.Made, s.Live = c.Allocations()
		if s.Made == 0 && s.Adopted == 0 {
			continue
		}
		s.Current, s.Peak = c.Bytes()
		s.Kept, s.Reused = r.kept.bytes(a), r.kept.reused[a].Load()
		list = append(list, s)
	}
	return list
}

// ResetPeaks makes every peak the present value.
func (r *Runtime) ResetPeaks() {
	if r.check() != nil {
		return
	}
	for i := range r.counters {
		r.counters[i].ResetPeak()
	}
}

// living is memory that is not freed yet.
type living = counts.Living[Memory]

func (r *Runtime) eachLiving(f func(l *living)) {
	for a := range r.counters {
		r.counters[a].Each(f)
	}
}

// countAway has statistics count memory of a tag as it is now: in use unless it is paused.
func (r *Runtime) countAway(t backends.Tag) {
	for a := range r.counters {
		for _, away := range []bool{true, false} {
			r.counters[a].SetAway(away, func(m *Memory) int {
				if m.tag != t || m.pauser.IsPaused(t) != away {
					return 0
				}
				return m.Size()
			})
		}
	}
}

// bytesAway are the bytes of memory that is paused, as far as counts says so.
func (r *Runtime) bytesAway(counts func(m *Memory) bool) (bytes int64) {
	if r.pauses.ever.Load() == 0 {
		return 0
	}
	r.eachLiving(func(l *living) {
		if m := l.Memory; m.tag != backends.NoTag && counts(m) && m.pauser.IsPaused(m.tag) {
			bytes += int64(m.Size())
		}
	})
	return bytes
}
