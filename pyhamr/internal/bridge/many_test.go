package bridge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// smallArrays is arrays on the host, as Python describes them.
func smallArrays(t testing.TB, count int) (list []*Descriptor) {
	for range count {
		a, err := Runtime.NewArray(arrayiface.Float64, []int{16}, gobuffer.Options{Allocator: backends.Malloc, Device: -1})
		require.NoError(t, err)
		d := &Descriptor{Shape: &make([]int64, 64)[0], Strides: &make([]int64, 64)[0]}
		d.Store(a, nil)
		list = append(list, d)
	}
	return list
}

// BenchmarkCopyMany is what 500 small arrays on the host cost beside their copies.
func BenchmarkCopyMany(b *testing.B) {
	to, from := smallArrays(b, 500), smallArrays(b, 500)
	b.ReportAllocs()
	for b.Loop() {
		if err := CopyMany(to, from, nil, nil, -1); err != nil {
			b.Fatal(err)
		}
	}
}

// TestManyCopiesMakeFewObjects: else thousands of arrays leave megabytes to Go's collector each time.
func TestManyCopiesMakeFewObjects(t *testing.T) {
	const count = 500
	to, from := smallArrays(t, count), smallArrays(t, count)
	assert.Less(t, testing.AllocsPerRun(20, func() {
		require.NoError(t, CopyMany(to, from, nil, nil, -1))
	}), count/10.0)
}
