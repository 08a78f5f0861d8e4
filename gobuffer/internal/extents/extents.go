// Package extents divides a range of bytes among those who ask for parts of it. It knows no memory.
package extents

import (
	"slices"
	"sort"
)

// Unit is what offsets and sizes are multiples of, as the allocators of libraries for GPUs have them.
const Unit = 512

// extent is free. No two touch.
type extent struct {
	at, size int
	since    uint64 // when the last piece of it was given back
}

// Room is a range of bytes, in which some are taken. One goroutine uses it at a time.
type Room struct {
	free  []extent    // in order
	taken map[int]int // sizes by offset
	used  int
	size  int
}

// New returns a range of which nothing is taken; size is a multiple of Unit.
func New(size int) Room {
	r := Room{taken: map[int]int{}, size: size}
	if size > 0 {
		r.free = []extent{{size: size}}
	}
	return r
}

// rounded is what is taken for so many bytes, or a number below zero where an int has no room for it.
func rounded(size int) int { return (max(size, 1) + Unit - 1) / Unit * Unit }

func (r *Room) fit(size int) int {
	need := rounded(size)
	if need <= 0 {
		return -1
	}
	return slices.IndexFunc(r.free, func(e extent) bool { return e.size >= need })
}

// Fits returns where so many bytes fit, and when the last of what is free there was given back: 0 is never.
func (r *Room) Fits(size int) (at int, since uint64, ok bool) {
	i := r.fit(size)
	if i < 0 {
		return 0, 0, false
	}
	return r.free[i].at, r.free[i].since, true
}

// Take takes bytes where Fits has said that they fit.
func (r *Room) Take(at, size int) {
	i := r.before(at + 1)
	need := rounded(size)
	r.taken[at] = need
	r.used += need
	if e := &r.free[i]; e.size > need {
		e.at, e.size = e.at+need, e.size-need
		return
	}
	r.free = slices.Delete(r.free, i, i+1)
}

// before is the last free extent that begins before an offset, or -1.
func (r *Room) before(at int) int {
	return sort.Search(len(r.free), func(i int) bool { return r.free[i].at >= at }) - 1
}

// Give gives back what was taken at an offset, at some time.
func (r *Room) Give(at int, when uint64) {
	size := r.taken[at]
	delete(r.taken, at)
	r.used -= size
	made := extent{at, size, when}
	i := r.before(at)
	first, last := i+1, i+1
	if i >= 0 && r.free[i].at+r.free[i].size == at {
		first = i
		made.at, made.size = r.free[i].at, r.free[i].size+made.size
		made.since = max(made.since, r.free[i].since)
	}
	if last < len(r.free) && r.free[last].at == at+size {
		made.size += r.free[last].size
		made.since = max(made.since, r.free[last].since)
		last++
	}
	r.free = slices.Replace(r.free, first, last, made)
}

// Free is how many bytes are free.
func (r *Room) Free() int { return r.size - r.used }

// Largest is how many of these are in one piece.
func (r *Room) Largest() (largest int) {
	for _, e := range r.free {
		largest = max(largest, e.size)
	}
	return largest
}
