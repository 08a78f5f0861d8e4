package arrayiface

import (
	"cmp"
	"slices"
)

// axis is a dimension of more than one element: the distance of its elements, and their number.
type axis struct{ step, size int }

// interleaved returns the dimensions that may touch the same bytes, and the bytes that these span:
// sorted by their steps, all up to the last one that steps by less than the smaller ones
// together reach. What steps further repeats the others elsewhere.
func (l Layout) interleaved() ([]axis, int) {
	if l.Count() <= 1 {
		return nil, 0
	}
	axes := make([]axis, 0, l.NDim())
	for i, n := range l.Shape {
		if n > 1 {
			axes = append(axes, axis{int(distance(l.Strides[i])), n})
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.step, b.step) })
	reach, last, span := l.ItemSize(), -1, 0
	for i, a := range axes {
		near := a.step < reach
		reach += a.step * (a.size - 1)
		if near {
			last, span = i, reach
		}
	}
	return axes[:last+1], span
}

// OverlapsItself reports whether two different indices may touch the same byte, so that writing in parallel, or in
// another order, is not safe. False is certain. True is certain if a dimension larger than 1 has stride 0, or if only
// one dimension is larger than 1; otherwise it means that some dimension steps by less than the smaller steps together
// reach, which a few interleaved arrays do without overlapping: see ElementsOverlap.
func (l Layout) OverlapsItself() bool {
	axes, _ := l.interleaved()
	return len(axes) > 0
}

// ElementsOverlap reports whether two different indices touch the same byte, for certain. Where
// OverlapsItself is true, and more room than elements, it looks at each of these.
func (l Layout) ElementsOverlap() bool {
	axes, span := l.interleaved()
	if len(axes) == 0 {
		return false
	}
	room := span / l.ItemSize()
	count := 1
	for _, a := range axes {
		if count *= a.size; a.step == 0 || count > room {
			return true
		}
	}
	starts := make([]int, 1, count)
	for _, a := range axes {
		for i, known := 1, len(starts); i < a.size; i++ {
			for _, start := range starts[:known] {
				starts = append(starts, start+i*a.step)
			}
		}
	}
	slices.Sort(starts)
	for i, start := range starts[1:] {
		if start-starts[i] < l.ItemSize() {
			return true
		}
	}
	return false
}

// Overlap reports whether the spans of two arrays, whose elements zero lie at the given addresses of one address space,
// share a byte. False is certain; true may be two arrays that interleave without touching. An array without elements
// overlaps nothing. Neither span may leave the address space, which [ParseFields] checks.
func Overlap(addrA uintptr, a Layout, addrB uintptr, b Layout) bool {
	lowA, highA := a.Span()
	lowB, highB := b.Span()
	if lowA == highA || lowB == highB {
		return false
	}
	// The last byte instead of the end: the end of the address space is 0.
	firstA, lastA := addrA+uintptr(lowA), addrA+uintptr(highA-1)
	firstB, lastB := addrB+uintptr(lowB), addrB+uintptr(highB-1)
	return firstA <= lastB && firstB <= lastA
}
