package arrayiface_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

func requireReadable(t *testing.T, err error, key string) {
	t.Helper()
	var e *arrayiface.Error
	require.ErrorAs(t, err, &e)
	if key != "" {
		require.Equal(t, key, e.Key)
	}
	message := err.Error()
	require.Less(t, len(message), 4000)
	for i := range len(message) {
		require.True(t, message[i] >= ' ' && message[i] <= '~', "%q", message)
	}
}

func FuzzParseTypestr(f *testing.F) {
	for _, s := range []string{"<f4", ">f8", "|b1", "|V16", "<M8[ns]", "=c16", "", "<"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := arrayiface.ParseTypestr(s)
		if err != nil {
			require.Equal(t, arrayiface.Invalid, e)
			requireReadable(t, err, "typestr")
			return
		}
		require.Equal(t, e.Typestr()[1:], s[1:])
		require.True(t, s[0] == '<' || s[0] == '=' || e.Size() == 1)
		named, err := arrayiface.ParseName(s)
		require.NoError(t, err)
		require.Equal(t, e, named)
	})
}

func FuzzParseBufferFormat(f *testing.F) {
	for _, s := range []string{"", "<l", "Zd", "T{f:a:}", ">d", "3f", "@", "(2)i", "!B"} {
		f.Add(s, 8)
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, format string, itemSize int) {
		e, err := arrayiface.ParseBufferFormat(format, itemSize)
		if err != nil {
			require.Equal(t, arrayiface.Invalid, e)
			requireReadable(t, err, "format")
			return
		}
		require.Equal(t, itemSize, e.Size())
		require.True(t, itemSize == 1 || !strings.ContainsAny(format, ">!"))
		again, err := arrayiface.ParseBufferFormat(e.BufferFormat(), itemSize)
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}

// numbers reads one int from every two bytes: mostly small ones, and those
// near where arithmetic wraps.
func numbers(data []byte) []int {
	ints := make([]int, 0, len(data)/2)
	for ; len(data) >= 2; data = data[2:] {
		n := int(int8(data[1]))
		switch data[0] % 8 {
		case 1:
			n <<= data[0] >> 2
		case 2:
			n = math.MaxInt - int(data[1])
		case 3:
			n = math.MinInt + int(data[1])
		case 4:
			n *= 1 << 31
		case 5:
			n = math.MaxInt / (int(data[1]) + 1)
		}
		ints = append(ints, n)
	}
	return ints
}

// exact computes, without ever wrapping, what decides whether a layout is
// accepted: the bytes of all elements (sizes of 0 as 1) and the reach down and
// up from element zero.
func exact(e arrayiface.ElementType, shape, strides []int) (bytes, low, high *big.Int) {
	item := big.NewInt(int64(e.Size()))
	bytes, low, high = new(big.Int).Set(item), new(big.Int), new(big.Int).Set(item)
	for i, n := range shape {
		bytes.Mul(bytes, big.NewInt(int64(max(n, 1))))
		if strides == nil || n <= 1 {
			continue
		}
		step := new(big.Int).Mul(big.NewInt(int64(strides[i])), big.NewInt(int64(n-1)))
		if step.Sign() < 0 {
			low.Add(low, step)
		} else {
			high.Add(high, step)
		}
	}
	return bytes, low, high
}

func FuzzNewLayout(f *testing.F) {
	f.Add(uint8(arrayiface.Float32), []byte{0, 2, 0, 3}, []byte{0, 12, 0, 4}, true)
	f.Add(uint8(arrayiface.Int8), []byte{2, 0}, []byte{3, 1}, true)
	f.Add(uint8(arrayiface.Float64), []byte{4, 100, 4, 100}, []byte{}, false)
	f.Add(uint8(arrayiface.Complex128), []byte{0, 0, 5, 15}, []byte{}, false)
	f.Fuzz(func(t *testing.T, typ uint8, shapeData, stridesData []byte, withStrides bool) {
		e, shape := arrayiface.ElementType(typ), numbers(shapeData)
		var strides []int
		if withStrides {
			strides = numbers(stridesData)
		}
		l, err := arrayiface.NewLayout(e, shape, strides)
		want := e.Valid() && len(shape) <= arrayiface.MaxDimensions && (strides == nil || len(strides) == len(shape))
		for _, n := range shape {
			want = want && n >= 0
		}
		if want {
			bytes, low, high := exact(e, shape, strides)
			want = bytes.IsInt64() && new(big.Int).Sub(high, low).IsInt64()
		}
		require.Equal(t, want, err == nil, "%v", err)
		if err != nil {
			requireReadable(t, err, "")
			return
		}
		checkLayout(t, l)
	})
}

// checkLayout checks what must hold for every layout there is.
func checkLayout(t *testing.T, l arrayiface.Layout) {
	require.Len(t, l.Strides, l.NDim())
	_, wantLow, wantHigh := exact(l.Type, l.Shape, l.Strides)
	low, high := l.Span()
	if l.Count() == 0 {
		require.Zero(t, [3]int{low, high, l.NBytes()})
	} else {
		require.Equal(t, [2]int64{wantLow.Int64(), wantHigh.Int64()}, [2]int64{int64(low), int64(high)})
		require.Equal(t, high-low >= l.NBytes() || l.OverlapsItself(), true)
	}
	require.Equal(t, l.ContiguousC(), l.Transpose().ContiguousF())
	require.True(t, l.Equal(l.Transpose().Transpose()))
	if l.ContiguousC() {
		require.Equal(t, l.NBytes(), high-low)
		flat, inPlace, err := l.Reshape([]int{l.Count()})
		require.NoError(t, err)
		require.True(t, inPlace)
		require.Equal(t, l.NBytes(), flat.NBytes())
	}
	same, err := l.Broadcast(l.Shape)
	require.NoError(t, err)
	require.True(t, l.Equal(same))
	for dim, n := range l.Shape {
		for _, s := range [][3]int{{0, n, 1}, {n - 1, -1, -1}, {0, n, math.MaxInt}, {n - 1, -1, math.MinInt}, {n / 2, n, 2}} {
			if s[0] < 0 && s[2] > 0 {
				continue
			}
			view, by, err := l.Slice(dim, s[0], s[1], s[2])
			require.NoError(t, err)
			requireInside(t, l, view, by)
		}
		if n > 0 {
			view, by, err := l.Index(dim, n-1)
			require.NoError(t, err)
			requireInside(t, l, view, by)
		}
	}
}

func requireInside(t *testing.T, l, view arrayiface.Layout, by int) {
	_, err := arrayiface.NewLayout(view.Type, view.Shape, view.Strides)
	require.NoError(t, err)
	low, high := l.Span()
	viewLow, viewHigh := view.Span()
	if view.Count() > 0 {
		require.True(t, by+viewLow >= low && by+viewHigh <= high)
	}
}

func FuzzParseFields(f *testing.F) {
	f.Add("<f4", []byte{0, 2, 0, 3}, []byte{0, 12, 0, 4}, uint64(4096), 0, -1, 3, uint8(0xff))
	f.Add("<f4", []byte{0, 6}, []byte{0, 252}, uint64(4096), 20, 24, 3, uint8(1))
	f.Add("|u1", []byte{2, 0}, []byte{}, uint64(1), 0, -1, 3, uint8(2))
	f.Add("|u1", []byte{0, 0}, []byte{}, uint64(0), 0, 0, 2, uint8(0))
	f.Fuzz(func(
		t *testing.T, typestr string, shape, strides []byte, address uint64, offset, length, version int, flags uint8,
	) {
		fields := arrayiface.Fields{
			Typestr: typestr, Shape: numbers(shape), Address: uintptr(address), Offset: offset,
			BufferLength: length, Version: version,
			HasData: flags&2 != 0, ReadOnly: flags&4 != 0, Masked: flags&8 != 0, Descr: flags&16 != 0, HasStream: flags&32 != 0,
			Stream: uintptr(flags >> 6),
		}
		if flags&1 != 0 {
			fields.Strides = numbers(strides)
		}
		got, err := arrayiface.ParseFields(fields)
		if err != nil {
			require.Zero(t, got)
			requireReadable(t, err, "")
			return
		}
		checkLayout(t, got.Layout)
		require.False(t, fields.Masked || version < 0 || (got.HasStream && got.Stream == 0))
		require.True(t, fields.HasData || length >= 0)
		if got.Layout.Count() == 0 {
			return
		}
		require.NotZero(t, fields.Address)
		low, high := got.Layout.Span()
		at := new(big.Int).SetUint64(uint64(got.Address))
		first := new(big.Int).Add(at, big.NewInt(int64(low)))
		end := new(big.Int).Add(at, big.NewInt(int64(high)))
		floor, ceiling := new(big.Int), new(big.Int).Lsh(big.NewInt(1), 64)
		if length >= 0 {
			floor.SetUint64(address)
			ceiling.Add(floor, big.NewInt(int64(length)))
		}
		require.True(t, first.Cmp(floor) >= 0 && end.Cmp(ceiling) <= 0, "bytes %v to %v outside %v to %v", first, end, floor,
			ceiling)
		require.True(t, arrayiface.Overlap(got.Address, got.Layout, got.Address, got.Layout))
	})
}
