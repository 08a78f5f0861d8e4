package cuda

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func element(kind backends.ElementKind, size int) backends.Element {
	return backends.Element{Kind: kind, Size: size}
}

func strided(address int, e backends.Element, shape, strides []int) backends.Strided {
	return backends.Strided{Region: backends.Region{Address: backends.Address(address)}, Element: e, Shape: shape,
		Strides: strides}
}

// planned is what a table says of a plan of one step.
type planned struct {
	copied             int // bytes of a plain copy
	tiles              int
	width, groups      int  // of a line
	count, dims        int  // of anything else, or after the line
	targetOdd, fromOdd bool // bytewise
}

func summary(t *testing.T, steps []step, p plain) (result planned) {
	if p.bytes > 0 {
		require.Empty(t, steps)
		result.copied = p.bytes
	}
	for _, s := range steps {
		switch {
		case s.line != nil:
			result.width, result.groups = int(s.line.width), int(s.line.groups)
		case s.transpose != nil:
			result.tiles, result.dims = int(s.transpose.tiles), int(s.transpose.dimensions)
		default:
			result.count, result.dims = int(s.convert.count), int(s.convert.dimensions)
			result.targetOdd, result.fromOdd = s.convert.targetBytewise != 0, s.convert.sourceBytewise != 0
		}
	}
	return result
}

func TestPlan(t *testing.T) {
	f4, f8, half := element(backends.Float, 4), element(backends.Float, 8), element(backends.Float, 2)
	c8, c16 := element(backends.ComplexNumber, 8), element(backends.ComplexNumber, 16)
	boolean, odd := element(backends.Boolean, 1), element(backends.Opaque, 3)
	i4, u4 := element(backends.Signed, 4), element(backends.Unsigned, 4)
	for name, c := range map[string]struct {
		dst, src backends.Strided
		want     planned
	}{
		"contiguous": {
			strided(0, f8, []int{10, 100}, []int{800, 8}), strided(0, f4, []int{10, 100}, []int{400, 4}),
			planned{width: 2, groups: 500},
		},
		"a tail": {
			strided(0, f4, []int{100_003}, []int{4}), strided(0, half, []int{100_003}, []int{2}),
			planned{width: 4, groups: 25_000, count: 3, dims: 1},
		},
		"a tail of too little": {
			strided(0, f4, []int{1003}, []int{4}), strided(0, half, []int{1003}, []int{2}),
			planned{count: 1003, dims: 1},
		},
		"a scalar": {
			strided(0, f4, nil, nil), strided(64, half, nil, nil),
			planned{count: 1, dims: 1},
		},
		"strides of one element mean nothing": {
			strided(0, f8, []int{1, 1}, []int{-3, 0}), strided(64, half, []int{1, 1}, []int{7, 7}),
			planned{count: 1, dims: 1},
		},
		"a narrower group where the address allows no wide one": {
			strided(8, f4, []int{1000}, []int{4}), strided(0, half, []int{1000}, []int{2}),
			planned{width: 2, groups: 500},
		},
		"no group where it allows none": {
			strided(4, f4, []int{1000}, []int{4}), strided(0, half, []int{1000}, []int{2}),
			planned{count: 1000, dims: 1},
		},
		"rows with a gap": {
			strided(0, f4, []int{10, 100}, []int{480, 4}), strided(0, half, []int{10, 100}, []int{200, 2}),
			planned{count: 1000, dims: 2},
		},
		"down in both is up in both": {
			strided(99*4, f4, []int{100}, []int{-4}), strided(99*2, half, []int{100}, []int{-2}),
			planned{width: 4, groups: 25},
		},
		"misaligned": {
			strided(1, f4, []int{10}, []int{4}), strided(0, half, []int{10}, []int{3}),
			planned{count: 10, dims: 1, targetOdd: true, fromOdd: true},
		},
		"a transposed plain copy": {
			strided(0, f4, []int{100, 50}, []int{4, 400}), strided(1600, f4, []int{100, 50}, []int{4, 400}),
			planned{copied: 20000},
		},
		"signed to unsigned is a copy": {
			strided(0, u4, []int{10}, []int{4}), strided(40, i4, []int{10}, []int{4}),
			planned{copied: 40},
		},
		"a transpose": {
			strided(0, f4, []int{100, 50}, []int{200, 4}), strided(0, f4, []int{100, 50}, []int{4, 400}),
			planned{tiles: 1 * 2},
		},
		"a transpose of each of many, small elements": {
			strided(0, boolean, []int{7, 100, 50}, []int{5000, 50, 1}),
			strided(0, boolean, []int{7, 100, 50}, []int{5000, 1, 100}),
			planned{tiles: 7 * 2, dims: 1},
		},
		"too narrow for tiles": {
			strided(0, f4, []int{100, 3}, []int{12, 4}), strided(0, f4, []int{100, 3}, []int{4, 400}),
			planned{count: 300, dims: 2},
		},
		"pieces grow where rows allow": {
			strided(0, f4, []int{10, 96}, []int{480, 4}), strided(0, f4, []int{10, 96}, []int{400, 4}),
			planned{count: 240, dims: 2},
		},
		"odd elements fall apart": {
			strided(0, odd, []int{10}, []int{3}), strided(0, odd, []int{10}, []int{5}),
			planned{count: 30, dims: 2},
		},
		"complex numbers are their parts": {
			strided(0, c16, []int{10}, []int{16}), strided(0, c8, []int{10}, []int{8}),
			planned{width: 2, groups: 10},
		},
		"the real part": {
			strided(0, f4, []int{10}, []int{4}), strided(0, c8, []int{10}, []int{8}),
			planned{count: 10, dims: 1},
		},
		"the truth of both parts": {
			strided(0, boolean, []int{10}, []int{1}), strided(4, c8, []int{10}, []int{8}),
			planned{count: 10, dims: 1},
		},
		"no imaginary part": {
			strided(0, c16, []int{10}, []int{16}), strided(0, f8, []int{10}, []int{8}),
			planned{count: 10, dims: 1},
		},
		"one element for all": {
			strided(0, f4, []int{100}, []int{4}), strided(0, f4, []int{100}, []int{0}),
			planned{count: 100, dims: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps, p, err := plan(c.dst, c.src, mostInLaunch)
			require.NoError(t, err)
			require.Equal(t, c.want, summary(t, steps, p))
		})
	}
}

func TestPlanWithoutElements(t *testing.T) {
	f4, half := element(backends.Float, 4), element(backends.Float, 2)
	steps, p, err := plan(strided(0, f4, []int{3, 0}, []int{-4, 4}), strided(0, half, []int{3, 0}, []int{2, 2}),
		mostInLaunch)
	require.NoError(t, err)
	require.Empty(t, steps)
	require.Zero(t, p)
}

func TestPlanRefuses(t *testing.T) {
	f4, f8 := element(backends.Float, 4), element(backends.Float, 8)
	one := []int{10}
	for name, c := range map[string][2]backends.Strided{
		"opaque of other size": {strided(0, element(backends.Opaque, 1), one, one),
			strided(0, element(backends.Opaque, 2), one, one)},
		"opaque to a number":     {strided(0, f4, one, one), strided(0, element(backends.Opaque, 4), one, one)},
		"a number to opaque":     {strided(0, element(backends.Opaque, 4), one, one), strided(0, f8, one, one)},
		"a float of three bytes": {strided(0, element(backends.Float, 3), one, one), strided(0, f8, one, one)},
		"nothing": {strided(0, element(backends.Opaque, 0), one, one),
			strided(0, element(backends.Opaque, 0), one, one)},
		"other shapes":    {strided(0, f4, []int{3}, one), strided(0, f8, []int{4}, one)},
		"missing strides": {strided(0, f4, []int{3}, nil), strided(0, f8, []int{3}, one)},
	} {
		_, _, err := plan(c[0], c[1], mostInLaunch)
		assert.ErrorIs(t, err, errors.ErrUnsupported, name)
	}
	var dst, src backends.Strided
	for dimensions := 8; dimensions <= 10; dimensions++ {
		dst, src = strided(0, f8, nil, nil), strided(0, f4, nil, nil)
		for i := range dimensions {
			dst.Shape, src.Shape = append(dst.Shape, 2), append(src.Shape, 2)
			dst.Strides, src.Strides = append(dst.Strides, 8*pow(3, i)), append(src.Strides, 4*pow(3, i))
		}
		_, _, err := plan(dst, src, mostInLaunch)
		assert.Equal(t, dimensions > mostDimensions, errors.Is(err, errors.ErrUnsupported), "%d dimensions", dimensions)
	}
}

func pow(base, exponent int) int {
	result := 1
	for range exponent {
		result *= base
	}
	return result
}

func TestPlanCutsWhatIsTooMuch(t *testing.T) {
	c := &conversion{dims: []dim{{7, 1000, 2000}, {10, 100, 200}, {10, 8, 4}}}
	count := 0
	for _, p := range c.parts(64) {
		require.LessOrEqual(t, p.count(), 64)
		count += p.count()
	}
	require.Equal(t, 700, count)

	huge := 3<<30 + 5
	steps, _, err := plan(
		strided(0, element(backends.Unsigned, 2), []int{huge}, []int{2}),
		strided(0, element(backends.Unsigned, 1), []int{huge}, []int{1}), mostInLaunch)
	require.NoError(t, err)
	require.Len(t, steps, 4)
	require.EqualValues(t, 1<<27, steps[0].line.groups)
	require.EqualValues(t, 3<<31, steps[3].convert.target)
	require.EqualValues(t, 3<<30, steps[3].convert.source)
	require.EqualValues(t, 5, steps[3].convert.count)
}

func TestDimensionDivides(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(n, dividend uint32) {
		d := dimensionOf(dim{n: int(n)})
		high, _ := bits.Mul32(dividend, d.multiplier)
		if got := (high + dividend) >> d.shift; got != dividend/n {
			require.Equal(t, dividend/n, got, "%d / %d", dividend, n)
		}
	}
	for range 100_000 {
		n := 1 + random.Uint32N(1<<random.UintN(31))
		check(n, random.Uint32N(1<<31))
		multiple := (1<<31 - 1) / n * n
		check(n, multiple)
		check(n, multiple-1)
		check(n, 1<<31-1)
		check(n, n*random.Uint32N(multiple/n+1))
	}
}

func TestPlanFill(t *testing.T) {
	a, blocks := planFill(3, []byte{1, 2, 3}, 100)
	require.Equal(t, 1, blocks)
	require.EqualValues(t, 300, a.bytes)
	require.EqualValues(t, 3, a.period)
	for i, v := range a.pattern {
		require.EqualValues(t, 1+i%3, v)
	}
}

func TestConvertingDevice(t *testing.T) {
	on := func(a backends.Allocator, device int) backends.Region {
		return backends.Region{Allocator: a, Device: device}
	}
	const host = backends.HostDevice
	for _, c := range []struct {
		dst, src backends.Region
		device   int
		ok       bool
	}{
		{on(backends.CUDA, 1), on(backends.CUDAAsync, 0), 1, true},
		{on(backends.CUDAUnified, 1), on(backends.CUDA, 0), 0, true},
		{on(backends.CUDAHost, host), on(backends.CUDA, 1), 1, true},
		{on(backends.CUDA, 1), on(backends.CUDAHost, host), 1, true},
		{on(backends.CUDAUnified, 1), on(backends.CUDAUnified, 0), 0, true},
		{on(backends.CUDAUnified, 1), on(backends.CUDAHost, host), 1, true},
		{on(backends.CUDAHost, host), on(backends.CUDAHost, host), 0, false},
		{on(backends.CUDA, 0), on(backends.Malloc, host), 0, false},
		{on(backends.CPP, host), on(backends.CUDA, 0), 0, false},
	} {
		device, ok := converting(c.dst, c.src)
		assert.Equal(t, c.ok, ok, "%v", c)
		if ok {
			assert.Equal(t, c.device, device, "%v", c)
		}
	}
}
