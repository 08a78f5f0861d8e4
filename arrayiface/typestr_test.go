package arrayiface_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

func TestParseTypestr(t *testing.T) {
	for s, want := range map[string]arrayiface.ElementType{
		"<f4": arrayiface.Float32, "=f4": arrayiface.Float32, "<c16": arrayiface.Complex128,
		"|b1": arrayiface.Bool, "<b1": arrayiface.Bool, "=b1": arrayiface.Bool, ">b1": arrayiface.Bool,
		">i1": arrayiface.Int8, ">u1": arrayiface.Uint8, "<u1": arrayiface.Uint8,
		"=i8": arrayiface.Int64, "<f2": arrayiface.Float16,
		"f8": arrayiface.Float64, "b1": arrayiface.Bool, "u2": arrayiface.Uint16, "c8": arrayiface.Complex64,
	} {
		got, err := arrayiface.ParseTypestr(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
}

func TestParseTypestrRefuses(t *testing.T) {
	for s, contains := range map[string]string{
		"":       "missing",
		"<":      "lacks a kind",
		"float4": "no such",
		"gpu":    "no such",
		"M8[ns]": "dates",
		"S3":     "byte strings",
		">f8": "typestr '>f8': big-endian elements are not supported; " +
			"convert with .astype(a.dtype.newbyteorder('=')); accepted are |b1, |i1",
		">u2": "big-endian",
		"|f4": "'|' leaves the byte order of 4-byte elements unknown",
		"|O":  "Python objects", "|O8": "Python objects",
		"|V1": "void", "<V2": "void", "|V16": "structured",
		"|S3": "byte strings", "|a3": "byte strings", "<U4": "Unicode strings", "|T16": "variable-length",
		"<M8[ns]": "dates", "<m8": "time differences",
		"<t1": "bit fields", "<g16": "long double",
		"<f16": "long double", "<f12": "long double", "<f1": "float8", ">f16": "long double",
		"<c32": "complex long double", "<c24": "complex long double", "<c4": "two float16",
		"<i3": "no such", "<f": "no such", "<f04": "no such", "<f-4": "no such", "<f4 ": "no such", "<b8": "no such",
		"<i99999999999999999999":   "no such",
		"<\x00":                    `'<\x00'`,
		strings.Repeat("x", 10000): "xxx...'",
	} {
		got, err := arrayiface.ParseTypestr(s)
		assert.Equal(t, arrayiface.Invalid, got, s)
		requireError(t, err, "typestr", true, contains)
		assert.Contains(t, err.Error(), "accepted are", s)
		assert.Less(t, len(err.Error()), 400)
	}
}

func TestParseName(t *testing.T) {
	for s, want := range map[string]arrayiface.ElementType{
		"float32": arrayiface.Float32, "f4": arrayiface.Float32, "<f4": arrayiface.Float32,
		"i8": arrayiface.Int64, "u1": arrayiface.Uint8, "?": arrayiface.Bool, "b1": arrayiface.Bool, "bool": arrayiface.Bool,
		"c16": arrayiface.Complex128, "bfloat16": arrayiface.BFloat16,
		"float8_e4m3fn": arrayiface.Float8E4M3FN, "float8_e5m2": arrayiface.Float8E5M2,
		"half": arrayiface.Float16, "single": arrayiface.Float32, "double": arrayiface.Float64, "short": arrayiface.Int16,
		"ushort": arrayiface.Uint16, "intc": arrayiface.Int32, "uintc": arrayiface.Uint32, "longlong": arrayiface.Int64,
		"ulonglong": arrayiface.Uint64, "intp": arrayiface.Int64, "uintp": arrayiface.Uint64, "csingle": arrayiface.Complex64,
		"cdouble":            arrayiface.Complex128,
		"float8_e4m3b11fnuz": arrayiface.Float8E4M3B11FNUZ, "float8_e8m0fnu": arrayiface.Float8E8M0FNU,
	} {
		got, err := arrayiface.ParseName(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for s, contains := range map[string]string{
		"": "no such", "char": "ambiguous", "float": "ambiguous", "int": "ambiguous", "long": "ambiguous",
		"unsigned_long": "ambiguous",
		"f16":           "long double", "f1": "float8", "Float32": "no such", "V2": "no such", "invalid": "no such",
		">f8": "dtype '>f8': big-endian", "int4": "whole bytes", "float4_e2m1fn": "whole bytes",
		"float8": "no such", "StringDType()": "variable-length strings", "float128": "long double",
		"complex32":  "two float16",
		"complex256": "complex long double",
	} {
		got, err := arrayiface.ParseName(s)
		assert.Equal(t, arrayiface.Invalid, got, s)
		requireError(t, err, "dtype", true, contains)
	}
}

func TestParseUpstreamName(t *testing.T) {
	want := map[string]arrayiface.ElementType{
		"float": arrayiface.Float32, "double": arrayiface.Float64,
		"char": arrayiface.Int8, "signed_char": arrayiface.Int8, "short": arrayiface.Int16, "int": arrayiface.Int32,
		"long": arrayiface.Int64, "long_long": arrayiface.Int64,
		"unsigned_char": arrayiface.Uint8, "unsigned_short": arrayiface.Uint16, "unsigned_int": arrayiface.Uint32,
		"unsigned_long": arrayiface.Uint64, "unsigned_long_long": arrayiface.Uint64,
	}
	assert.Len(t, want, 13)
	for s, w := range want {
		got, err := arrayiface.ParseUpstreamName(s)
		require.NoError(t, err, s)
		assert.Equal(t, w, got, s)
	}
	_, err := arrayiface.ParseUpstreamName("float32")
	requireError(t, err, "dtype", true, "upstream HAMR")
}
