package arrayiface_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

func layout(t testing.TB, e arrayiface.ElementType, shape, strides []int) arrayiface.Layout {
	t.Helper()
	l, err := arrayiface.NewLayout(e, shape, strides)
	require.NoError(t, err)
	return l
}

// offsets gives the byte offset of every element, the last index fastest.
func offsets(l arrayiface.Layout) []int {
	all := []int{0}
	for dim, n := range l.Shape {
		next := make([]int, 0, len(all)*n)
		for _, at := range all {
			for i := range n {
				next = append(next, at+i*l.Strides[dim])
			}
		}
		all = next
	}
	return all
}

// smallLayouts calls f with many arrays of up to three dimensions: dimensions
// of size 0 and 1, negative, zero, overlapping and unaligned strides.
func smallLayouts(t *testing.T, f func(l arrayiface.Layout)) {
	sizes, steps := []int{0, 1, 2, 3}, []int{-6, -4, -2, 0, 1, 2, 4, 6, 12}
	var grow func(shape, strides []int)
	grow = func(shape, strides []int) {
		f(layout(t, arrayiface.Int16, shape, strides))
		if len(shape) == 3 {
			return
		}
		for _, n := range sizes {
			for _, s := range steps {
				grow(append(slices.Clone(shape), n), append(slices.Clone(strides), s))
			}
		}
	}
	grow([]int{}, []int{})
}

func TestNewLayoutRefuses(t *testing.T) {
	many := slices.Repeat([]int{1}, arrayiface.MaxDimensions+1)
	for _, c := range []struct {
		name           string
		shape, strides []int
		key, contains  string
	}{
		{"negative", []int{3, -1}, nil, "shape", "shape (3, -1): a dimension must not be negative"},
		{"dimensions", many, nil, "shape", "has 65 dimensions; at most 64"},
		{"product", []int{1 << 40, 1 << 40}, nil, "shape", "too large"},
		{"wraps to small", []int{1 << 32, 1 << 32}, nil, "shape", "too large"},
		{"bytes", []int{1 << 60}, nil, "shape", "shape (1152921504606846976,): too large"},
		{"empty", []int{1 << 40, 0, 1 << 40}, nil, "shape", "too large"},
		{"empty first", []int{0, math.MaxInt}, nil, "shape", "too large"},
		{"few strides", []int{2, 3}, []int{8}, "strides", "each of the 2 dimensions"},
		{"no strides", []int{2}, []int{}, "strides", "each of the 1 dimensions"},
		{"more strides", []int{}, []int{8}, "strides", "each of the 0 dimensions"},
		{"stride", []int{3}, []int{math.MaxInt}, "strides", "too large"},
		{"reach", []int{2}, []int{math.MaxInt - 7}, "strides", "too large"},
		{"both ways", []int{2, 2}, []int{1 << 62, -1 << 62}, "strides", "too large"},
		{"least", []int{2}, []int{math.MinInt}, "strides", "too large"},
		{"least of empty", []int{2, 0}, []int{math.MinInt, 8}, "strides", "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := arrayiface.NewLayout(arrayiface.Float64, c.shape, c.strides)
			assert.Zero(t, l)
			requireError(t, err, c.key, false, c.contains)
		})
	}
	_, err := arrayiface.NewLayout(arrayiface.Invalid, nil, nil)
	requireError(t, err, "dtype", true, "not an element type")
	_, err = arrayiface.NewLayout(99, nil, nil)
	requireError(t, err, "dtype", true, "not an element type")
}

func TestNewLayout(t *testing.T) {
	shape, strides := []int{2, 3}, []int{-64, 16}
	l := layout(t, arrayiface.Float64, shape, strides)
	shape[0], strides[0] = 99, 99
	assert.Equal(t, []int{2, 3}, l.Shape, "the layout keeps its own copy")
	assert.Equal(t, []int{-64, 16}, l.Strides)
	assert.Equal(t, 2, l.NDim())
	assert.Equal(t, 6, l.Count())
	assert.Equal(t, 48, l.NBytes())

	l = layout(t, arrayiface.Float64, []int{math.MaxInt / 8}, []int{8})
	low, high := l.Span()
	assert.Equal(t, [2]int{0, math.MaxInt / 8 * 8}, [2]int{low, high}, "the largest array")

	l = layout(t, arrayiface.Int8, []int{2}, []int{math.MinInt + 2})
	low, high = l.Span()
	assert.Equal(t, [2]int{math.MinInt + 2, 1}, [2]int{low, high})

	l = layout(t, arrayiface.Float64, []int{1, 1}, []int{math.MinInt, math.MaxInt})
	assert.True(t, l.ContiguousC(), "strides of dimensions of size 1 mean nothing")
	assert.True(t, l.ContiguousF())

	scalar := layout(t, arrayiface.Float32, nil, nil)
	assert.Zero(t, scalar.NDim())
	assert.Equal(t, 1, scalar.Count())
	assert.Equal(t, 4, scalar.NBytes())
	assert.True(t, scalar.ContiguousC())
	assert.True(t, scalar.Equal(layout(t, arrayiface.Float32, []int{}, []int{})))
}

func TestStrides(t *testing.T) {
	assert.Equal(t, []int{48, 16, 4}, arrayiface.CStrides([]int{2, 3, 4}, 4))
	assert.Equal(t, []int{4, 8, 24}, arrayiface.FStrides([]int{2, 3, 4}, 4))
	assert.Equal(t, []int{32, 32, 8}, arrayiface.CStrides([]int{3, 0, 4}, 8), "a dimension of size 0 counts as 1")
	assert.Equal(t, []int{8, 24, 24}, arrayiface.FStrides([]int{3, 0, 4}, 8))
	assert.Empty(t, arrayiface.CStrides(nil, 8))
}

func TestLayoutAgainstEveryIndex(t *testing.T) {
	smallLayouts(t, func(l arrayiface.Layout) {
		at := offsets(l)
		require.Equal(t, len(at), l.Count())

		low, high := l.Span()
		wantLow, wantHigh := 0, 0
		if len(at) > 0 {
			wantLow, wantHigh = slices.Min(at), slices.Max(at)+l.ItemSize()
		}
		require.Equal(t, [2]int{wantLow, wantHigh}, [2]int{low, high}, "span of %v", l)

		require.Equal(t, consecutive(l), l.ContiguousC(), "%v", l)
		require.Equal(t, consecutive(l.Transpose()), l.ContiguousF(), "%v", l)

		touched, overlaps := map[int]bool{}, false
		for _, first := range at {
			for b := range l.ItemSize() {
				overlaps = overlaps || touched[first+b]
				touched[first+b] = true
			}
		}
		switch {
		case overlaps:
			require.True(t, l.OverlapsItself(), "%v", l)
		case longDimensions(l) <= 1 || l.ContiguousC() || l.ContiguousF():
			require.False(t, l.OverlapsItself(), "%v", l)
		}
	})
}

func consecutive(l arrayiface.Layout) bool {
	for i, at := range offsets(l) {
		if at != i*l.ItemSize() {
			return false
		}
	}
	return true
}

func longDimensions(l arrayiface.Layout) int {
	n := 0
	for _, size := range l.Shape {
		if size > 1 {
			n++
		}
	}
	return n
}

func TestOverlapsItself(t *testing.T) {
	for _, c := range []struct {
		name           string
		shape, strides []int
		want           bool
	}{
		{"scalar", []int{}, []int{}, false},
		{"empty", []int{0, 3}, []int{0, 0}, false},
		{"padded rows", []int{4, 3}, []int{16, 4}, false},
		{"transposed and reversed", []int{3, 4}, []int{-4, 16}, false},
		{"broadcast", []int{4, 3}, []int{0, 4}, true},
		{"broadcast of size 1", []int{1, 3}, []int{0, 4}, false},
		{"half a step", []int{3}, []int{2}, true},
		{"sliding window", []int{5, 3}, []int{4, 4}, true},
		{"interleaved, conservative", []int{3, 2}, []int{8, 12}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, layout(t, arrayiface.Int32, c.shape, c.strides).OverlapsItself())
		})
	}
}

// overlapping is what ElementsOverlap says, found by counting the bytes of every element.
func overlapping(l arrayiface.Layout) bool {
	touched := map[int]bool{}
	starts := []int{0}
	for i, n := range l.Shape {
		var next []int
		for _, start := range starts {
			for k := range n {
				next = append(next, start+k*l.Strides[i])
			}
		}
		starts = next
	}
	for _, start := range starts {
		for b := range l.ItemSize() {
			if touched[start+b] {
				return true
			}
			touched[start+b] = true
		}
	}
	return false
}

func TestElementsOverlap(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 6))
	found := map[[2]bool]int{}
	for range 20000 {
		n := random.IntN(5)
		shape, strides := make([]int, n), make([]int, n)
		for i := range n {
			shape[i], strides[i] = random.IntN(5), random.IntN(81)-40
		}
		l := layout(t, arrayiface.Int16, shape, strides)
		want := overlapping(l)
		require.Equal(t, want, l.ElementsOverlap(), "%v", l)
		require.True(t, l.OverlapsItself() || !want, "%v", l)
		found[[2]bool{l.OverlapsItself(), want}]++
	}
	assert.Len(t, found, 3, "each answer was met, and the doubt of OverlapsItself")
}

func TestEqual(t *testing.T) {
	a := layout(t, arrayiface.Int32, []int{2, 1, 3}, nil)
	assert.True(t, a.Equal(layout(t, arrayiface.Int32, []int{2, 1, 3}, []int{12, -7, 4})))
	assert.False(t, a.Equal(layout(t, arrayiface.Int32, []int{2, 1, 3}, []int{12, 12, 8})))
	assert.False(t, a.Equal(layout(t, arrayiface.Float32, []int{2, 1, 3}, nil)))
	assert.False(t, a.Equal(layout(t, arrayiface.Int32, []int{2, 3}, nil)))
	empty := layout(t, arrayiface.Int32, []int{2, 0}, []int{5, 5})
	assert.True(t, empty.Equal(layout(t, arrayiface.Int32, []int{2, 0}, nil)))
}

func TestOverlap(t *testing.T) {
	whole := layout(t, arrayiface.Int32, []int{4}, nil)
	back := layout(t, arrayiface.Int32, []int{4}, []int{-4})
	none := layout(t, arrayiface.Int32, []int{0}, nil)
	for _, c := range []struct {
		name string
		a    uintptr
		la   arrayiface.Layout
		b    uintptr
		lb   arrayiface.Layout
		want bool
	}{
		{"same", 100, whole, 100, whole, true},
		{"neighbours", 100, whole, 116, whole, false},
		{"one byte", 100, whole, 115, whole, true},
		{"backwards", 100, whole, 112, back, true},
		{"backwards, one byte", 100, whole, 127, back, true},
		{"backwards, neighbours", 100, whole, 128, back, false},
		{"empty inside", 100, whole, 104, none, false},
		{"top of the address space", math.MaxUint - 15, whole, math.MaxUint - 3, back, true},
		{"top and bottom", math.MaxUint - 15, whole, 0, whole, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, arrayiface.Overlap(c.a, c.la, c.b, c.lb))
			assert.Equal(t, c.want, arrayiface.Overlap(c.b, c.lb, c.a, c.la))
		})
	}
}
