package arrayiface_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// requireError checks what every error of the package promises.
func requireError(t *testing.T, err error, key string, isTypeError bool, contains string) {
	t.Helper()
	var e *arrayiface.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, key, e.Key)
	assert.Equal(t, isTypeError, e.Type, "%v", err)
	assert.Contains(t, err.Error(), contains)
}

func TestElementTypes(t *testing.T) {
	// The values are part of the interface with Python, so they are spelt out.
	for _, c := range []struct {
		typ     arrayiface.ElementType
		value   uint8
		name    string
		size    int
		kind    arrayiface.Kind
		typestr string
		format  string
		dlCode  uint8
	}{
		{arrayiface.Bool, 1, "bool", 1, arrayiface.KindBool, "|b1", "?", 6},
		{arrayiface.Int8, 2, "int8", 1, arrayiface.KindSigned, "|i1", "b", 0},
		{arrayiface.Int16, 3, "int16", 2, arrayiface.KindSigned, "<i2", "h", 0},
		{arrayiface.Int32, 4, "int32", 4, arrayiface.KindSigned, "<i4", "i", 0},
		{arrayiface.Int64, 5, "int64", 8, arrayiface.KindSigned, "<i8", "l", 0},
		{arrayiface.Uint8, 6, "uint8", 1, arrayiface.KindUnsigned, "|u1", "B", 1},
		{arrayiface.Uint16, 7, "uint16", 2, arrayiface.KindUnsigned, "<u2", "H", 1},
		{arrayiface.Uint32, 8, "uint32", 4, arrayiface.KindUnsigned, "<u4", "I", 1},
		{arrayiface.Uint64, 9, "uint64", 8, arrayiface.KindUnsigned, "<u8", "L", 1},
		{arrayiface.Float16, 10, "float16", 2, arrayiface.KindFloat, "<f2", "e", 2},
		{arrayiface.Float32, 11, "float32", 4, arrayiface.KindFloat, "<f4", "f", 2},
		{arrayiface.Float64, 12, "float64", 8, arrayiface.KindFloat, "<f8", "d", 2},
		{arrayiface.Complex64, 13, "complex64", 8, arrayiface.KindComplex, "<c8", "Zf", 5},
		{arrayiface.Complex128, 14, "complex128", 16, arrayiface.KindComplex, "<c16", "Zd", 5},
		{arrayiface.BFloat16, 15, "bfloat16", 2, arrayiface.KindFloat, "<V2", "", 4},
		{arrayiface.Float8E4M3FN, 16, "float8_e4m3fn", 1, arrayiface.KindFloat, "|V1", "", 10},
		{arrayiface.Float8E5M2, 17, "float8_e5m2", 1, arrayiface.KindFloat, "|V1", "", 12},
		{arrayiface.Float8E3M4, 18, "float8_e3m4", 1, arrayiface.KindFloat, "|V1", "", 7},
		{arrayiface.Float8E4M3, 19, "float8_e4m3", 1, arrayiface.KindFloat, "|V1", "", 8},
		{arrayiface.Float8E4M3B11FNUZ, 20, "float8_e4m3b11fnuz", 1, arrayiface.KindFloat, "|V1", "", 9},
		{arrayiface.Float8E4M3FNUZ, 21, "float8_e4m3fnuz", 1, arrayiface.KindFloat, "|V1", "", 11},
		{arrayiface.Float8E5M2FNUZ, 22, "float8_e5m2fnuz", 1, arrayiface.KindFloat, "|V1", "", 13},
		{arrayiface.Float8E8M0FNU, 23, "float8_e8m0fnu", 1, arrayiface.KindFloat, "|V1", "", 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.EqualValues(t, c.value, c.typ)
			assert.True(t, c.typ.Valid())
			assert.Equal(t, c.name, c.typ.String())
			assert.Equal(t, c.size, c.typ.Size())
			assert.Equal(t, c.kind, c.typ.Kind())
			assert.Equal(t, c.typestr, c.typ.Typestr())
			assert.Equal(t, c.format, c.typ.BufferFormat())
			code, bits := c.typ.DLPack()
			assert.Equal(t, c.dlCode, code)
			assert.EqualValues(t, c.size*8, bits)
			assert.Contains(t, arrayiface.Types(), c.typ)
		})
	}
	assert.Len(t, arrayiface.Types(), 23)
}

func TestInvalidElementType(t *testing.T) {
	for _, e := range []arrayiface.ElementType{arrayiface.Invalid, arrayiface.Float8E8M0FNU + 1, 255} {
		code, bits := e.DLPack()
		assert.False(t, e.Valid())
		assert.Equal(t, "invalid", e.String())
		assert.Zero(t, e.Size())
		assert.Equal(t, arrayiface.KindInvalid, e.Kind())
		assert.Empty(t, e.Typestr())
		assert.Empty(t, e.BufferFormat())
		assert.Zero(t, code)
		assert.Zero(t, bits)
	}
	assert.Equal(t, "complex", arrayiface.KindComplex.String())
	assert.Equal(t, "invalid", arrayiface.Kind(200).String())
}

func TestWhatIsWrittenReadsBack(t *testing.T) {
	for _, e := range arrayiface.Types() {
		got, err := arrayiface.ParseName(e.String())
		require.NoError(t, err)
		assert.Equal(t, e, got)

		code, bits := e.DLPack()
		got, err = arrayiface.FromDLPack(code, bits, 1)
		require.NoError(t, err)
		assert.Equal(t, e, got)

		if e.BufferFormat() == "" {
			_, err = arrayiface.ParseTypestr(e.Typestr())
			requireError(t, err, "typestr", true, "void")
			continue
		}
		for _, parse := range []func(string) (arrayiface.ElementType, error){arrayiface.ParseTypestr, arrayiface.ParseName} {
			got, err = parse(e.Typestr())
			require.NoError(t, err)
			assert.Equal(t, e, got)
		}
		got, err = arrayiface.ParseBufferFormat(e.BufferFormat(), e.Size())
		require.NoError(t, err)
		assert.Equal(t, e, got)
	}
}

func TestFromDLPackRefuses(t *testing.T) {
	for _, c := range []struct {
		code, bits uint8
		lanes      uint16
		contains   string
	}{
		{2, 32, 4, "vector elements"},
		{2, 32, 0, "lanes must be 1"},
		{3, 64, 1, "opaque handles"},
		{0, 4, 1, "int4 elements, which do not fill whole bytes, are not supported"},
		{1, 2, 1, "uint2 elements, which do not fill whole bytes"},
		{6, 1, 1, "bool1 elements, which do not fill whole bytes"},
		{6, 32, 1, "bool32 elements are not supported"},
		{0, 128, 1, "int128 elements are not supported; accepted are bool"},
		{1, 128, 1, "uint128 elements are not supported"},
		{2, 8, 1, "float8 elements are not supported"},
		{2, 128, 1, "float128 elements are not supported; convert them to float64"},
		{5, 32, 1, "complex32 elements are not supported; convert them to complex64"},
		{4, 32, 1, "bfloat32 elements are not supported"},
		{7, 16, 1, "no such element type"},
		{15, 6, 1, "float6_e2m3fn elements, which do not fill whole bytes"},
		{16, 6, 1, "float6_e3m2fn elements"},
		{17, 4, 1, "float4_e2m1fn elements"},
		{17, 4, 2, "vector elements"},
		{18, 8, 1, "(code 18, bits 8, lanes 1): no such element type"},
		{255, 255, 1, "(code 255, bits 255, lanes 1)"},
	} {
		got, err := arrayiface.FromDLPack(c.code, c.bits, c.lanes)
		assert.Equal(t, arrayiface.Invalid, got)
		requireError(t, err, "dtype", true, c.contains)
	}
}
