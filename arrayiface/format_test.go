package arrayiface_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

func TestParseBufferFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		size   int
		want   arrayiface.ElementType
	}{
		{"", 1, arrayiface.Uint8},
		{"c", 1, arrayiface.Uint8},
		{"?", 1, arrayiface.Bool},
		{">B", 1, arrayiface.Uint8},
		{"!b", 1, arrayiface.Int8},
		{"l", 8, arrayiface.Int64},
		{"l", 4, arrayiface.Int32},
		{"L", 8, arrayiface.Uint64},
		{"L", 4, arrayiface.Uint32},
		{"<l", 8, arrayiface.Int64}, // older ctypes, bpo-10746
		{"n", 8, arrayiface.Int64},
		{"N", 8, arrayiface.Uint64},
		{"@d", 8, arrayiface.Float64},
		{"=e", 2, arrayiface.Float16},
		{"<q", 8, arrayiface.Int64},
		{"<Zf", 8, arrayiface.Complex64},
		{"F", 8, arrayiface.Complex64},
		{"D", 16, arrayiface.Complex128},
	} {
		got, err := arrayiface.ParseBufferFormat(c.format, c.size)
		require.NoError(t, err, c.format)
		assert.Equal(t, c.want, got, c.format)
	}
}

func TestParseBufferFormatRefuses(t *testing.T) {
	for _, c := range []struct {
		format   string
		size     int
		contains string
	}{
		{"T{f:a:i:b:}", 8, "structured"},
		{"O", 8, "Python objects"},
		{"g", 16, "long double"},
		{"<g", 16, "long double"},
		{"Zg", 32, "complex long double"},
		{"Ze", 4, "two float16"},
		{"s", 1, "byte strings"},
		{"5s", 5, "byte strings"},
		{"4w", 16, "Unicode"},
		{"u", 2, "Unicode"},
		{"P", 8, "pointers"},
		{"&d", 8, "pointers"},
		{"X{}", 8, "pointers"},
		{"2f", 8, "repeat counts"},
		{"1B", 1, "repeat counts"},
		{"3", 1, "repeat counts"},
		{"(2,3)f", 24, "sub-arrays"},
		{">d", 8, "big-endian"},
		{"!h", 2, "big-endian"},
		{">l", 8, "big-endian"},
		{"@", 1, "lacks the code"},
		{"ff", 8, "no such"},
		{"<<f", 4, "no such"},
		{"Z", 8, "pointers"},
		{"<z", 8, "pointers"},
		{"\x00", 1, `'\x00'`},
	} {
		got, err := arrayiface.ParseBufferFormat(c.format, c.size)
		assert.Equal(t, arrayiface.Invalid, got, c.format)
		requireError(t, err, "format", true, c.contains)
	}
	for format, size := range map[string]int{"d": 4, "": 8, "l": 2, "N": 16, "B": 0, "q": -8} {
		_, err := arrayiface.ParseBufferFormat(format, size)
		requireError(t, err, "format", false, "the buffer says")
	}
}
