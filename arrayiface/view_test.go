package arrayiface_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// shifted gives the offsets of a view, from element zero of what it views.
func shifted(view arrayiface.Layout, by int) []int {
	at := offsets(view)
	for i := range at {
		at[i] += by
	}
	return at
}

// pick gives the offsets of the elements whose index in dim is i.
func pick(l arrayiface.Layout, dim, i int) []int {
	inner := 1
	for _, n := range l.Shape[dim+1:] {
		inner *= n
	}
	picked := []int{}
	for k, at := range offsets(l) {
		if k/inner%l.Shape[dim] == i {
			picked = append(picked, at)
		}
	}
	return picked
}

func TestIndexAgainstEveryIndex(t *testing.T) {
	smallLayouts(t, func(l arrayiface.Layout) {
		for dim, n := range l.Shape {
			for i := range n {
				view, by, err := l.Index(dim, i)
				require.NoError(t, err)
				require.Equal(t, pick(l, dim, i), shifted(view, by), "%v[%d: %d]", l, dim, i)
			}
		}
	})
}

func TestIndexRefuses(t *testing.T) {
	l := layout(t, arrayiface.Int32, []int{2, 3}, nil)
	for _, c := range [][2]int{{0, 2}, {0, -1}, {1, 3}, {-1, 0}, {2, 0}} {
		_, _, err := l.Index(c[0], c[1])
		requireError(t, err, "index", false, "dimension")
	}
	_, _, err := layout(t, arrayiface.Int32, nil, nil).Index(0, 0)
	requireError(t, err, "index", false, "no dimension 0 in an array of 0 dimensions")
}

// TestSliceAgainstEveryIndex walks every normalised slice of one dimension, of
// a matrix whose other dimension is kept.
func TestSliceAgainstEveryIndex(t *testing.T) {
	for _, size := range []int{0, 1, 2, 5} {
		for _, stride := range []int{-40, 0, 8, 40} {
			l := layout(t, arrayiface.Int64, []int{size, 2}, []int{stride, 16})
			for _, step := range []int{math.MinInt, -3, -2, -1, 1, 2, 3, math.MaxInt} {
				low, high := 0, size
				if step < 0 {
					low, high = -1, size-1
				}
				for start := low; start <= high; start++ {
					for stop := low; stop <= high; stop++ {
						checkSlice(t, l, start, stop, step)
					}
				}
			}
		}
	}
}

func checkSlice(t *testing.T, l arrayiface.Layout, start, stop, step int) {
	name := fmt.Sprintf("%v[%d:%d:%d]", l, start, stop, step)
	view, by, err := l.Slice(0, start, stop, step)
	require.NoError(t, err, name)
	want := []int{}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); {
		want = append(want, i*l.Strides[0], i*l.Strides[0]+l.Strides[1])
		next := i + step
		if (next > i) != (step > 0) {
			break // it wrapped around
		}
		i = next
	}
	require.Equal(t, want, shifted(view, by), name)
	require.Equal(t, len(want)/2, view.Shape[0], name)
	if len(want) == 0 {
		require.Zero(t, by, name)
	}
	_, err = arrayiface.NewLayout(view.Type, view.Shape, view.Strides)
	require.NoError(t, err, name)
}

func TestSliceRefuses(t *testing.T) {
	l := layout(t, arrayiface.Int32, []int{4}, nil)
	for _, c := range [][4]int{
		{0, 0, 4, 0}, {0, -1, 4, 1}, {0, 5, 4, 1}, {0, 0, 5, 1}, {0, 0, -1, 1},
		{0, 4, -1, -1}, {0, 3, -2, -1}, {0, 3, 4, -1}, {1, 0, 4, 1}, {-1, 0, 4, 1},
		{0, math.MaxInt, math.MinInt, -1},
	} {
		_, _, err := l.Slice(c[0], c[1], c[2], c[3])
		requireError(t, err, "slice", false, "")
	}
	assert.Equal(t, []int{4}, l.Shape)
}

func TestTranspose(t *testing.T) {
	l := layout(t, arrayiface.Int32, []int{2, 3, 4}, []int{100, -8, 4})
	tr := l.Transpose()
	assert.Equal(t, []int{4, 3, 2}, tr.Shape)
	assert.Equal(t, []int{4, -8, 100}, tr.Strides)
	assert.True(t, l.Equal(tr.Transpose()))
	assert.Equal(t, []int{2, 3, 4}, l.Shape, "the original is left alone")
}

func TestWithType(t *testing.T) {
	l := layout(t, arrayiface.Int8, []int{3, 2}, []int{1, 3})
	wide, err := l.WithType(arrayiface.Complex128)
	require.NoError(t, err)
	assert.True(t, wide.Equal(layout(t, arrayiface.Complex128, []int{3, 2}, nil)))

	_, err = l.WithType(arrayiface.Invalid)
	requireError(t, err, "dtype", true, "not an element type")
	_, err = layout(t, arrayiface.Int8, []int{1 << 60}, nil).WithType(arrayiface.Complex128)
	requireError(t, err, "shape", false, "too large")
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct{ from, to, want []int }{
		{[]int{}, []int{2, 3}, []int{0, 0}},
		{[]int{3}, []int{2, 3}, []int{0, 4}},
		{[]int{2, 1}, []int{2, 3}, []int{4, 0}},
		{[]int{2, 3}, []int{2, 3}, []int{12, 4}},
		{[]int{1}, []int{0}, []int{0}},
		{[]int{0}, []int{2, 0}, []int{0, 4}},
	} {
		b, err := layout(t, arrayiface.Int32, c.from, nil).Broadcast(c.to)
		require.NoError(t, err)
		assert.Equal(t, c.to, b.Shape)
		assert.Equal(t, c.want, b.Strides)
	}
	for _, c := range []struct{ from, to []int }{
		{[]int{3}, []int{2}}, {[]int{2, 3}, []int{3}}, {[]int{3}, []int{3, 2}}, {[]int{0}, []int{1}},
		{[]int{3}, []int{1}}, {[]int{1}, []int{-1}}, {[]int{}, []int{1 << 40, 1 << 40}}, {[]int{}, make([]int, 65)},
	} {
		_, err := layout(t, arrayiface.Int32, c.from, nil).Broadcast(c.to)
		requireError(t, err, "shape", false, "")
	}
}
