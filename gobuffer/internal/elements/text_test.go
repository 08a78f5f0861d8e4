package elements

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

func textOf(t *testing.T, e ai.ElementType, bytes []byte, limit int) string {
	l, err := ai.NewLayout(e, []int{len(bytes) / e.Size()}, nil)
	require.NoError(t, err)
	return Text(at(bytes), l, limit)
}

func TestText(t *testing.T) {
	count := make([]int64, 1000)
	for i := range count {
		count[i] = int64(i)
	}
	nan := math.NaN()
	for _, c := range []struct {
		want  string
		e     ai.ElementType
		bytes []byte
		limit int
	}{
		{"{}", ai.Int64, nil, 0},
		{"{0}", ai.Int64, bytesOf(count[:1]...), 0},
		{"{0, 1, 2, 3, 4, 5, 6, 7}", ai.Int64, bytesOf(count[:8]...), 0},
		{"{0, 1, 2, 3, 4, 5, 6, 7, \n8, 9}", ai.Int64, bytesOf(count[:10]...), 10},
		{"{0, 1, 2, ..., 997, 998, 999}", ai.Int64, bytesOf(count...), 999},
		{"{0, 1, 2, ..., 6, 7, 8}", ai.Int64, bytesOf(count[:9]...), 1},
		{"{0, 1, 2, 3, 4, 5}", ai.Int64, bytesOf(count[:6]...), 1},
		{"{-128, 127}", ai.Int8, bytesOf(int8(-128), 127), 0},
		{"{-2, 7}", ai.Int16, bytesOf(int16(-2), 7), 0},
		{"{-3, 8}", ai.Int32, bytesOf(int32(-3), 8), 0},
		{"{255}", ai.Uint8, bytesOf(uint8(255)), 0},
		{"{65535}", ai.Uint16, bytesOf(uint16(65535)), 0},
		{"{4294967295}", ai.Uint32, bytesOf(uint32(math.MaxUint32)), 0},
		{"{18446744073709551615}", ai.Uint64, bytesOf(uint64(math.MaxUint64)), 0},
		{"{True, False, True}", ai.Bool, []byte{1, 0, 2}, 0},
		{"{3.14, 1, -0, nan, inf, -inf, 1e+20, 0.1, \n1e-05, 0.0001}", ai.Float32,
			bytesOf(float32(3.14), 1, float32(math.Copysign(0, -1)), float32(nan), float32(math.Inf(1)), float32(math.Inf(-1)),
				1e20, 0.1, 1e-5, 1e-4), 0},
		{"{3.14, 1234567, 1e+16, 1000000000000000, 5e-324, -2.5}", ai.Float64,
			bytesOf(3.14, 1234567, 1e16, 1e15, 5e-324, -2.5), 0},
		{"{0.1, 65500, 1, 6e-08, inf, nan, -0, -0.3333}", ai.Float16,
			bytesOf[uint16](0x2e66, 0x7bff, 0x3c00, 1, 0x7c00, 0x7e00, 0x8000, 0xb555), 0},
		{"{3.14, 1, 3.39e+38, inf, nan, 256}", ai.BFloat16,
			bytesOf[uint16](0x4049, 0x3f80, 0x7f7f, 0x7f80, 0x7fc0, 0x4380), 0},
		{"{(1+2j), (1-0.1j), 2j, (-0+2j), (nan+infj), (1e+20-0j)}", ai.Complex64,
			bytesOf(complex64(1+2i), 1-0.1i, 2i, complex(float32(math.Copysign(0, -1)), 2),
				complex(float32(nan), float32(math.Inf(1))), complex(1e20, float32(math.Copysign(0, -1)))), 0},
		{"{(1+2j), 0j}", ai.Complex128, bytesOf(1+2i, 0), 0},
		{"{0, nan, 0.1015625, 448, -0.001953125, -0}", ai.Float8E4M3FN, []byte{0, 0x7f, 0x1d, 0x7e, 0x81, 0x80}, 0},
		{"{0, inf, 57344, 1.5258789e-05, -inf, nan}", ai.Float8E5M2, []byte{0, 0x7c, 0x7b, 1, 0xfc, 0xff}, 0},
		{"{5.877472e-39, 1, 1.7014118e+38, nan}", ai.Float8E8M0FNU, []byte{0, 0x7f, 0xfe, 0xff}, 0},
	} {
		require.Equal(t, c.want, textOf(t, c.e, c.bytes, c.limit))
	}
}

func TestTextOfStrided(t *testing.T) {
	values := []int16{0, 1, 2, 3, 4, 5}
	l, err := ai.NewLayout(ai.Int16, []int{3, 2}, []int{2, -6})
	require.NoError(t, err)
	require.Equal(t, "{3, 0, 4, 1, 5, 2}", Text(unsafe.Pointer(&values[3]), l, 0))
	scalar, err := ai.NewLayout(ai.Int16, []int{}, nil)
	require.NoError(t, err)
	require.Equal(t, "{4}", Text(unsafe.Pointer(&values[4]), scalar, 0))
	require.Equal(t, "{515}", Text(at([]byte{9, 3, 2}[1:]), scalar, 0))
}
