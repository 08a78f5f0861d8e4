package arrayiface

import (
	"cmp"
	"slices"
)

// OverlapsItself reports whether two different indices may touch the same
// byte, so that writing in parallel, or in another order, is not safe. False
// is certain. True is certain if a dimension larger than 1 has stride 0, or if
// only one dimension is larger than 1; otherwise it means that some dimension
// steps by less than the smaller steps together reach, which a few interleaved
// arrays do without overlapping.
func (l Layout) OverlapsItself() bool {
	if l.Count() <= 1 {
		return false
	}
	type axis struct{ step, size int }
	axes := make([]axis, 0, l.NDim())
	for i, n := range l.Shape {
		if n > 1 {
			axes = append(axes, axis{int(distance(l.Strides[i])), n})
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.step, b.step) })
	reach := l.ItemSize()
	for _, a := range axes {
		if a.step < reach {
			return true
		}
		reach += a.step * (a.size - 1)
	}
	return false
}

// Overlap reports whether the spans of two arrays, whose elements zero lie at
// the given addresses of one address space, share a byte. False is certain;
// true may be two arrays that interleave without touching. An array without
// elements overlaps nothing. Neither span may leave the address space, which
// [ParseFields] checks.
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
