package arrayiface_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// shapesOf calls f with the shapes of so many elements, of up to three dimensions.
func shapesOf(count int, f func(shape []int)) {
	var grow func(shape []int, left int)
	grow = func(shape []int, left int) {
		if left == 1 {
			f(slices.Clone(shape))
		}
		if len(shape) == 3 {
			return
		}
		for n := 1; n <= left; n++ {
			if left%n == 0 {
				grow(append(slices.Clone(shape), n), left/n)
			}
		}
	}
	grow([]int{}, count)
}

// stridesFor finds the strides that make the elements at the offsets, in C order, an
// array of a shape, from its first few elements alone.
func stridesFor(at, shape []int) (strides []int, ok bool) {
	strides = make([]int, len(shape))
	inner := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			strides[i] = at[inner] - at[0]
		}
		inner *= shape[i]
	}
	return strides, slices.Equal(at, offsets(arrayiface.Layout{Type: arrayiface.Int16, Shape: shape, Strides: strides}))
}

func TestReshapeAgainstEveryElement(t *testing.T) {
	views, copies := 0, 0
	smallLayouts(t, func(l arrayiface.Layout) {
		if l.Count() == 0 {
			return
		}
		at := offsets(l)
		shapesOf(l.Count(), func(shape []int) {
			r, inPlace, err := l.Reshape(shape)
			require.NoError(t, err)
			require.Equal(t, shape, r.Shape)
			if _, possible := stridesFor(at, shape); possible != inPlace {
				require.Equal(t, possible, inPlace, "%v as %v", l, shape)
			}
			if !inPlace {
				copies++
				require.True(t, r.ContiguousC())
				return
			}
			views++
			if !slices.Equal(at, offsets(r)) {
				require.Equal(t, at, offsets(r), "%v as %v", l, shape)
			}
			_, err = arrayiface.NewLayout(r.Type, r.Shape, r.Strides)
			require.NoError(t, err)
		})
	})
	assert.Greater(t, views, 10_000)
	assert.Greater(t, copies, 10_000)
}

func TestReshapeInfersOneSize(t *testing.T) {
	l := layout(t, arrayiface.Int32, []int{2, 6}, []int{48, 4})
	for _, c := range []struct{ shape, want []int }{
		{[]int{-1}, []int{12}}, {[]int{3, -1}, []int{3, 4}}, {[]int{-1, 12}, []int{1, 12}}, {[]int{2, -1, 2}, []int{2, 3, 2}},
	} {
		r, _, err := l.Reshape(c.shape)
		require.NoError(t, err)
		assert.Equal(t, c.want, r.Shape)
	}
	assert.Equal(t, []int{2, 6}, l.Shape)
	none, inPlace, err := layout(t, arrayiface.Int32, []int{0, 5}, []int{77, 77}).Reshape([]int{-1, 3})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 3}, none.Shape)
	assert.True(t, inPlace, "there is nothing to copy")
}

func TestReshapeRefuses(t *testing.T) {
	for _, c := range []struct {
		from, to []int
		contains string
	}{
		{[]int{3, 2}, []int{4}, "shape (4,): has 4 elements, the array of shape (3, 2) has 6"},
		{[]int{3, 2}, []int{}, "shape (): has 1 elements"},
		{[]int{3, 2}, []int{-1, 4}, "shape (-1, 4): no size in place of -1 makes it the 6 elements of shape (3, 2)"},
		{[]int{3, 2}, []int{-1, -1}, "only one size can be -1"},
		{[]int{3, 2}, []int{-2, -3}, "negative"},
		{[]int{3, 2}, []int{-1, -3}, "negative"},
		{[]int{3, 2}, []int{0, -1}, "no size in place of -1"},
		{[]int{0, 2}, []int{0, -1}, "no size in place of -1"},
		{[]int{0, 2}, []int{1}, "has 1 elements"},
		{[]int{3, 2}, []int{math.MaxInt, 2}, "too large"},
		{[]int{3, 2}, []int{-1, math.MaxInt, 2}, "too large"},
		{[]int{1}, slices.Repeat([]int{1}, arrayiface.MaxDimensions+1), "at most 64"},
	} {
		_, _, err := layout(t, arrayiface.Int8, c.from, nil).Reshape(c.to)
		requireError(t, err, "shape", false, c.contains)
	}
}
