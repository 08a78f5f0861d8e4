package elements

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

func TestRepresentable(t *testing.T) {
	for _, c := range []struct {
		to      ai.ElementType
		from    ai.ElementType
		value   []byte
		refused string
		typ     bool
	}{
		{ai.Int8, ai.Int64, bytesOf(int64(127)), "", false},
		{ai.Int8, ai.Int64, bytesOf(int64(300)), "300 does not fit int8: accepted are -128 … 127", false},
		{ai.Int8, ai.Int64, bytesOf(int64(-129)), "-129 does not fit int8: accepted are -128 … 127", false},
		{ai.Uint8, ai.Int64, bytesOf(int64(-1)), "-1 does not fit uint8: accepted are 0 … 255", false},
		{ai.Int64, ai.Uint64, bytesOf(uint64(1 << 63)),
			"9223372036854775808 does not fit int64: accepted are -9223372036854775808 … 9223372036854775807", false},
		{ai.Uint64, ai.Uint64, bytesOf(uint64(math.MaxUint64)), "", false},
		{ai.Uint64, ai.Int64, bytesOf(int64(-1)), "-1 does not fit uint64: accepted are 0 … 18446744073709551615", false},
		{ai.Int32, ai.Float64, bytesOf(2147483647.9), "", false},
		{ai.Int32, ai.Float64, bytesOf(2147483648.0), "2147483648 does not fit int32: accepted are -2147483648 … 2147483647",
			false},
		{ai.Int64, ai.Float64, bytesOf(-0x1p63), "", false},
		{ai.Int64, ai.Float64, bytesOf(0x1p63), "9223372036854775808", false},
		{ai.Uint64, ai.Float64, bytesOf(math.Nextafter(0x1p64, 0)), "", false},
		{ai.Uint64, ai.Float64, bytesOf(0x1p64), "1.8446744073709552e+19 does not fit", false},
		{ai.Uint8, ai.Float64, bytesOf(-0.5), "", false},
		{ai.Uint8, ai.Float64, bytesOf(math.NaN()), "nan does not fit uint8", false},
		{ai.Uint8, ai.Float64, bytesOf(math.Inf(-1)), "-inf does not fit uint8", false},
		{ai.Int16, ai.Float16, bytesOf(uint16(0x7c00)), "inf does not fit int16", false},
		{ai.Int8, ai.Bool, []byte{1}, "", false},
		{ai.Bool, ai.Complex128, bytesOf(2i), "", false},
		{ai.Bool, ai.Int64, bytesOf(int64(7)), "", false},
		{ai.Float16, ai.Float64, bytesOf(1e300),
			"1e+300 does not fit float16: accepted are numbers of its range, and infinity", false},
		{ai.Float16, ai.Float64, bytesOf(65520.0), "65520 does not fit float16", false},
		{ai.Float16, ai.Float64, bytesOf(65519.0), "", false},
		{ai.Float16, ai.Int64, bytesOf(int64(-65520)), "-65520 does not fit float16", false},
		{ai.Float16, ai.Uint64, bytesOf(uint64(math.MaxUint64)), "18446744073709551615 does not fit float16", false},
		{ai.Float32, ai.Float64, bytesOf(math.MaxFloat32 * (1 + 0x1p-26)), "", false},
		{ai.Float32, ai.Float64, bytesOf(-1e39), "-1e+39 does not fit float32", false},
		{ai.Float32, ai.Float64, bytesOf(math.Inf(-1)), "", false},
		{ai.Float32, ai.Float64, bytesOf(math.NaN()), "", false},
		{ai.BFloat16, ai.Float64, bytesOf(3.4e38), "3.4e+38 does not fit bfloat16", false},
		{ai.Complex64, ai.Complex128, bytesOf(complex(1, 1e39)), "1e+39j) does not fit complex64", false},
		{ai.Complex64, ai.Complex128, bytesOf(complex(math.Inf(1), 70000)), "", false},
		{ai.Float32, ai.Int64, bytesOf(int64(math.MaxInt64)), "", false},
		{ai.Complex64, ai.Float64, bytesOf(math.NaN()), "", false},
		{ai.Float64, ai.Complex128, bytesOf(1 + 2i), "(1+2j) does not fit float64: accepted are real numbers", true},
		{ai.Int8, ai.Complex64, bytesOf(complex64(1)), "(1+0j) does not fit int8: accepted are real numbers", true},
		{ai.Float8E4M3FN, ai.Float64, bytesOf(1e300), "", false},
		{ai.Float8E8M0FNU, ai.Int64, bytesOf(int64(-3)), "", false},
		{ai.Float8E5M2, ai.Complex64, bytesOf(complex64(1)), "(1+0j) does not fit float8_e5m2: accepted are real numbers",
			true},
		{ai.Bool, ai.Float8E5M2, []byte{3}, "", false},
		{ai.Int8, ai.Float8E4M3FN, []byte{0x6f}, "", false},
		{ai.Int8, ai.Float8E4M3FN, []byte{0x70}, "128 does not fit int8", false},
		{ai.Int8, ai.Float8E4M3FNUZ, []byte{0x80}, "nan does not fit int8", false},
	} {
		err := Representable(c.to, at(c.value), c.from)
		if c.refused == "" {
			require.NoError(t, err, "%s from %s", c.to, c.from)
			continue
		}
		var refused *ValueError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Error(), c.refused)
		require.Equal(t, c.typ, refused.WrongType, c.refused)
	}
	require.ErrorIs(t, Representable(ai.Invalid, nil, ai.Int8), ErrNoRule)
}

func TestPattern(t *testing.T) {
	value, size, err := Pattern(ai.Complex64, at(bytesOf(2.5)), ai.Float64)
	require.NoError(t, err)
	require.Equal(t, bytesOf(complex64(2.5)), value[:size])
	value, size, err = Pattern(ai.Float8E5M2, at(bytesOf(2.5)), ai.Float64)
	require.NoError(t, err)
	require.Equal(t, []byte{0x41}, value[:size])
	_, _, err = Pattern(ai.Invalid, at(bytesOf(2.5)), ai.Float64)
	require.ErrorIs(t, err, ErrNoRule)
}
