package elements

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

// placed is an array somewhere inside bytes of its own.
type placed struct {
	bytes []byte
	zero  int
	ai.Layout
}

func (p placed) address() unsafe.Pointer { return unsafe.Pointer(&p.bytes[p.zero]) }

func place(t testing.TB, e ai.ElementType, shape, strides []int, shift int) placed {
	l, err := ai.NewLayout(e, shape, strides)
	require.NoError(t, err)
	low, high := l.Span()
	// A margin shows what is written beside the array.
	return placed{make([]byte, high-low+64+shift), 32 + shift - low, l}
}

func indices(shape []int, visit func(index []int)) {
	index := make([]int, len(shape))
	for {
		visit(index)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func (p placed) element(index []int) []byte {
	at := p.zero
	for d, i := range index {
		at += i * p.Strides[d]
	}
	return p.bytes[at : at+p.ItemSize()]
}

func bruteForce(t testing.TB, dst, src placed) []byte {
	dst.bytes = bytes.Clone(dst.bytes)
	if dst.Count() == 0 {
		return dst.bytes
	}
	indices(dst.Shape, func(index []int) {
		require.NoError(t, Convert(at(dst.element(index)), dst.Type, at(src.element(index)), src.Type, 1))
	})
	return dst.bytes
}

func requireCopied(t testing.TB, dst, src placed) {
	for i := range src.bytes {
		src.bytes[i] = byte(i*7 + i>>8*3)
	}
	for i := range dst.bytes {
		dst.bytes[i] = 0xee
	}
	want, before := bruteForce(t, dst, src), bytes.Clone(src.bytes)
	require.NoError(t, CopyStrided(dst.address(), dst.Layout, src.address(), src.Layout))
	if !bytes.Equal(want, dst.bytes) {
		require.Fail(t, "not as brute force", "%v ← %v", dst.Layout, src.Layout)
	}
	require.True(t, bytes.Equal(before, src.bytes))
}

// numbers yields small choices, from a random source or a fuzzer's input.
type numbers func(below int) int

// randomPair makes two layouts of one shape; the elements of dst are apart.
func randomPair(t testing.TB, pick numbers, longest int) (dst, src placed) {
	types := ai.Types()
	dt := types[pick(len(types))]
	st := types[pick(len(types))]
	shape := make([]int, pick(5))
	for i := range shape {
		shape[i] = pick(longest)
	}
	if pick(8) > 0 {
		for i := range shape {
			shape[i]++
		}
	}
	dst = place(t, dt, shape, randomStrides(pick, shape, dt.Size()), pick(4))
	strides := randomStrides(pick, shape, st.Size())
	for i := range strides {
		if pick(5) == 0 {
			strides[i] = pick(40) - 20
		}
	}
	return dst, place(t, st, shape, strides, pick(4))
}

// randomStrides puts the dimensions in any order, with gaps, some reversed.
func randomStrides(pick numbers, shape []int, size int) []int {
	order := make([]int, len(shape))
	for i := range order {
		order[i] = i
	}
	if pick(3) > 0 {
		for i := range order {
			j := i + pick(len(order)-i)
			order[i], order[j] = order[j], order[i]
		}
	}
	strides, step := make([]int, len(shape)), size
	for k := len(order) - 1; k >= 0; k-- {
		if pick(4) == 0 {
			step += pick(2*size + 3)
		}
		strides[order[k]] = step
		step *= max(shape[order[k]], 1)
		if pick(4) == 0 {
			strides[order[k]] *= -1
		}
	}
	return strides
}

func TestCopyStridedRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		dst, src := randomPair(t, random.IntN, 9)
		requireCopied(t, dst, src)
	}
	for range 30 {
		dst, src := randomPair(t, random.IntN, 40)
		if dst.Count() < 200_000 {
			requireCopied(t, dst, src)
		}
	}
}

func FuzzCopyStrided(f *testing.F) {
	f.Add([]byte{3, 3, 2, 4, 5})
	f.Add([]byte{11, 12, 3, 7, 7, 7, 1, 2, 0, 1, 0, 3, 2, 1})
	f.Add([]byte{10, 10, 2, 33, 34, 1, 1, 1})
	f.Fuzz(func(t *testing.T, input []byte) {
		dst, src := randomPair(t, func(below int) int {
			if len(input) == 0 || below <= 1 {
				return 0
			}
			n := int(input[0]) % below
			input = input[1:]
			return n
		}, 12)
		if dst.Count() <= 20_000 {
			requireCopied(t, dst, src)
		}
	})
}

func TestCopyStridedShapes(t *testing.T) {
	const n = 70
	for name, c := range map[string]struct {
		dt, st   ai.ElementType
		shape    []int
		dst, src []int
	}{
		"no dimension":       {ai.Int8, ai.Float64, []int{}, nil, nil},
		"no element":         {ai.Int8, ai.Float64, []int{3, 0}, nil, nil},
		"transposed":         {ai.Float32, ai.Float32, []int{n, n + 1}, nil, []int{4, 4 * n}},
		"transposed, other":  {ai.Float64, ai.Int16, []int{n, n + 1}, nil, []int{2, 2 * n}},
		"all three axes":     {ai.Float32, ai.Float32, []int{9, 40, 41}, nil, []int{4, 9 * 4, 9 * 40 * 4}},
		"transposed to":      {ai.Int16, ai.Int16, []int{n, n + 1}, []int{2, 2 * n}, nil},
		"reversed":           {ai.Int32, ai.Int32, []int{n}, nil, []int{-4}},
		"both reversed":      {ai.Int32, ai.Int32, []int{n, 3}, []int{-12, -4}, []int{-12, -4}},
		"broadcast row":      {ai.Int32, ai.Int32, []int{n, n}, nil, []int{0, 4}},
		"broadcast column":   {ai.Int32, ai.Float32, []int{n, n}, nil, []int{4, 0}},
		"broadcast one":      {ai.Complex128, ai.Complex128, []int{n, n}, nil, []int{0, 0}},
		"last value stays":   {ai.Int32, ai.Int32, []int{n, 5}, []int{0, 4}, nil},
		"nothing but last":   {ai.Int32, ai.Int64, []int{n, 5}, []int{0, 0}, []int{-8, 24}},
		"columns of a table": {ai.Float64, ai.Int32, []int{n, 3}, nil, []int{28, 4}},
		"rows unaligned":     {ai.Float64, ai.Float64, []int{n, 20}, []int{163, 8}, []int{165, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, shift := range []int{0, 1} {
				requireCopied(t, place(t, c.dt, c.shape, c.dst, shift), place(t, c.st, c.shape, c.src, shift))
			}
		})
	}
}

func TestCopyStridedInParallel(t *testing.T) {
	for _, c := range []struct {
		dt, st   ai.ElementType
		dst, src []int
	}{
		{ai.Float32, ai.Float32, nil, []int{4, 4 * 1100}},
		{ai.Int64, ai.Float32, nil, []int{4, 4 * 1100}},
		{ai.Float32, ai.Float32, []int{4004 + 8, 4}, nil},
		{ai.Float32, ai.Float32, []int{0, 4}, nil},
	} {
		requireCopied(t, place(t, c.dt, []int{1100, 1001}, c.dst, 0), place(t, c.st, []int{1100, 1001}, c.src, 0))
	}
}

func TestCopyStridedOntoItself(t *testing.T) {
	a := place(t, ai.Int32, []int{4, 5}, []int{-20, 4}, 1)
	for i := range a.bytes {
		a.bytes[i] = byte(i)
	}
	before := bytes.Clone(a.bytes)
	require.NoError(t, CopyStrided(a.address(), a.Layout, a.address(), a.Layout))
	require.Equal(t, before, a.bytes)
}

func TestCopyStridedRefuses(t *testing.T) {
	a, b := place(t, ai.Int32, []int{4, 5}, nil, 0), place(t, ai.Int32, []int{5, 4}, nil, 0)
	require.ErrorContains(t, CopyStrided(a.address(), a.Layout, b.address(), b.Layout),
		"cannot copy shape [5 4] to shape [4 5]")
	unknown := a.Layout
	unknown.Type = 200
	require.ErrorIs(t, CopyStrided(a.address(), unknown, a.address(), a.Layout), ErrNoRule)
}

func TestFill(t *testing.T) {
	for _, strides := range [][]int{nil, {800, 8}, {-8, 800}, {24, 808}, {-811, 8}} {
		a := place(t, ai.Float64, []int{30, 33}, strides, 0)
		value, size, err := Pattern(ai.Float64, at(bytesOf(int16(-5))), ai.Int16)
		require.NoError(t, err)
		require.NoError(t, Fill(a.address(), a.Layout, value[:size]))
		written := map[int]bool{}
		indices(a.Shape, func(index []int) {
			e := a.element(index)
			require.Equal(t, bytesOf(-5.0), e)
			start := len(a.bytes) - cap(e)
			for i := range size {
				written[start+i] = true
			}
		})
		for i, v := range a.bytes {
			if !written[i] && v != 0 {
				require.Fail(t, "written beside the array", "%v at %d", strides, i)
			}
		}
	}
	big := place(t, ai.Uint16, []int{3 << 20}, nil, 0)
	require.NoError(t, Fill(big.address(), big.Layout, []byte{1, 2}))
	require.Equal(t, bytes.Repeat([]byte{1, 2}, 3<<20), big.bytes[32:len(big.bytes)-32])
	require.ErrorContains(t, Fill(big.address(), big.Layout, []byte{1}),
		"a pattern of 1 bytes cannot fill uint16, whose elements have 2")
	require.Error(t, Fill(big.address(), ai.Layout{}, nil))
}

func BenchmarkCopyStrided(b *testing.B) {
	const n = 512
	for _, c := range []struct {
		name   string
		dt, st ai.ElementType
		src    []int
	}{
		{"transpose f4", ai.Float32, ai.Float32, []int{4, 4 * n}},
		{"transpose f8", ai.Float64, ai.Float64, []int{8, 8 * n}},
		{"transpose f8→f4", ai.Float32, ai.Float64, []int{8, 8 * n}},
		{"every other f4", ai.Float32, ai.Float32, []int{8 * n, 8}},
		{"padded rows f4", ai.Float32, ai.Float32, []int{4*n + 64, 4}},
		{"padded rows i4→f4", ai.Float32, ai.Int32, []int{4*n + 64, 4}},
		{"broadcast scalar f4", ai.Float32, ai.Float32, []int{0, 0}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst, src := place(b, c.dt, []int{n, n}, nil, 0), place(b, c.st, []int{n, n}, c.src, 0)
			b.SetBytes(int64(n * n * (c.dt.Size() + c.st.Size())))
			for b.Loop() {
				_ = CopyStrided(dst.address(), dst.Layout, src.address(), src.Layout)
			}
		})
	}
}
