package bridge

import (
	"testing"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// BenchmarkCopyMany is what 500 small arrays on the host cost beside their copies.
func BenchmarkCopyMany(b *testing.B) {
	var to, from []*Descriptor
	for range 1000 {
		a, err := Runtime.NewArray(arrayiface.Float64, []int{16}, gobuffer.Options{Allocator: backends.Malloc, Device: -1})
		if err != nil {
			b.Fatal(err)
		}
		d := &Descriptor{Shape: &make([]int64, 64)[0], Strides: &make([]int64, 64)[0]}
		d.Store(a, nil)
		if len(to) < 500 {
			to = append(to, d)
		} else {
			from = append(from, d)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := CopyMany(to, from, nil, nil, -1); err != nil {
			b.Fatal(err)
		}
	}
}
