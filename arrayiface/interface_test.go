package arrayiface_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// pointer are the fields of a 2×3 float32 array at 4096, changed by each of
// the functions.
func pointer(changes ...func(*arrayiface.Fields)) arrayiface.Fields {
	f := arrayiface.Fields{
		Typestr: "<f4", Shape: []int{2, 3}, HasData: true, Address: 4096, BufferLength: -1, Version: 3,
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// buffer is pointer, in a buffer of exactly its 24 bytes.
func buffer(changes ...func(*arrayiface.Fields)) arrayiface.Fields {
	f := pointer(func(f *arrayiface.Fields) { f.BufferLength = 24 })
	for _, change := range changes {
		change(&f)
	}
	return f
}

func TestParseFields(t *testing.T) {
	type F = arrayiface.Fields
	for _, c := range []struct {
		name    string
		fields  F
		address uintptr
	}{
		{"pointer", pointer(), 4096},
		{"a pointer has no offset", pointer(func(f *F) { f.Offset = 8 }), 4096},
		{"strides", pointer(func(f *F) { f.Strides = []int{-12, 8} }), 4096},
		{"down to byte 0", pointer(func(f *F) { f.Strides = []int{-4096, 4} }), 4096},
		{"up to the last byte", pointer(func(f *F) { f.Address = math.MaxUint - 23 }), math.MaxUint - 23},
		{"version 0", pointer(func(f *F) { f.Version = 0 }), 4096},
		{"version 1", pointer(func(f *F) { f.Version = 1 }), 4096},
		{"typestr without a byte order", pointer(func(f *F) { f.Typestr = "f4" }), 4096},
		{"empty at NULL", pointer(func(f *F) { f.Shape, f.Address = []int{0, 3}, 0 }), 0},
		{"empty elsewhere", pointer(func(f *F) { f.Shape, f.Address = []int{0, 3}, math.MaxUint }), math.MaxUint},
		{"empty, strides", pointer(func(f *F) { f.Shape, f.Strides, f.Address = []int{0, 3}, []int{-1 << 40, 1 << 40}, 0 }),
			0},
		{"size 1, any stride", pointer(func(f *F) { f.Shape, f.Strides = []int{1, 3}, []int{math.MinInt, 4} }), 4096},
		{"scalar", pointer(func(f *F) { f.Shape = nil }), 4096},
		{"structure names with a plain typestr", pointer(func(f *F) { f.Descr = true }), 4096},
		{"buffer", buffer(), 4096},
		{"own buffer", buffer(func(f *F) { f.HasData = false }), 4096},
		{"offset", buffer(func(f *F) { f.Shape, f.Offset = []int{3}, 12 }), 4108},
		{"backwards", buffer(func(f *F) { f.Shape, f.Strides, f.Offset = []int{6}, []int{-4}, 20 }), 4116},
		{"empty buffer", buffer(func(f *F) { f.Shape, f.BufferLength, f.Address = []int{0}, 0, 0 }), 0},
		{"empty at the end", buffer(func(f *F) { f.Shape, f.Offset = []int{0}, 24 }), 4120},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := arrayiface.ParseFields(c.fields)
			require.NoError(t, err)
			assert.Equal(t, c.address, got.Address)
			assert.Equal(t, c.fields.Version, got.Version)
			assert.False(t, got.HasStream)
			want := layout(t, arrayiface.Float32, c.fields.Shape, c.fields.Strides)
			assert.True(t, want.Equal(got.Layout))
		})
	}
}

func TestParseFieldsKeepsFlags(t *testing.T) {
	got, err := arrayiface.ParseFields(pointer(func(f *arrayiface.Fields) {
		f.ReadOnly, f.HasStream, f.Stream = true, true, math.MaxUint
	}))
	require.NoError(t, err)
	assert.True(t, got.ReadOnly)
	assert.True(t, got.HasStream)
	assert.EqualValues(t, uint(math.MaxUint), got.Stream)
}

func TestParseFieldsRefuses(t *testing.T) {
	type F = arrayiface.Fields
	for _, c := range []struct {
		name     string
		fields   F
		key      string
		isType   bool
		contains string
	}{
		{"typestr", pointer(func(f *F) { f.Typestr = ">f4" }), "typestr", true, "big-endian"},
		{"void", pointer(func(f *F) { f.Typestr = "|V8" }), "typestr", true, "void"},
		{"structure", pointer(func(f *F) { f.Typestr, f.Descr = "|V8", true }), "typestr", true, "a[name]"},
		{"negative", pointer(func(f *F) { f.Shape = []int{-2} }), "shape", false, "negative"},
		{"large", pointer(func(f *F) { f.Shape = []int{1 << 40, 1 << 40} }), "shape", false, "too large"},
		{"strides", pointer(func(f *F) { f.Strides = []int{4} }), "strides", false, "each of the 2"},
		{"mask", pointer(func(f *F) { f.Masked = true }), "mask", false, "masked arrays are not supported"},
		{"version", pointer(func(f *F) { f.Version = -1 }), "version", false, "version -1: must be 0 or more"},
		{"stream", pointer(func(f *F) { f.HasStream = true }), "stream", false, "stream 0: forbidden"},
		{"NULL", pointer(func(f *F) { f.Address = 0 }), "data", false, "a NULL pointer to 24 bytes"},
		{"no data", pointer(func(f *F) { f.HasData = false }), "data", false, "missing or None"},
		{"above the top", pointer(func(f *F) { f.Address = math.MaxUint - 22 }), "data", false, "leave the address space"},
		{"below zero", pointer(func(f *F) { f.Strides = []int{-4100, 4} }), "data", false, "bytes -4100 to 12"},
		{"buffer at NULL", buffer(func(f *F) { f.Address = 0 }), "data", false, "NULL"},
		{"buffer at the top", buffer(func(f *F) { f.Address = math.MaxUint; f.Shape = []int{0}; f.Offset = 8 }), "data",
			false, "address space"},
		{"negative offset", buffer(func(f *F) { f.Offset = -4 }), "offset", false,
			"offset -4: outside the buffer of 24 bytes"},
		{"least offset", buffer(func(f *F) { f.Offset = math.MinInt }), "offset", false, "outside"},
		{"offset", buffer(func(f *F) { f.Shape = []int{0}; f.Offset = 25 }), "offset", false, "outside"},
		{"offset and shape", buffer(func(f *F) { f.Offset = 1 }), "offset", false, "reaches bytes 0 to 24 from offset 1"},
		{"short buffer", buffer(func(f *F) { f.BufferLength = 23 }), "shape", false, "shape (2, 3): "},
		{"strides leave the buffer", buffer(func(f *F) { f.Strides = []int{16, 4} }), "strides", false, "strides (16, 4): "},
		{"backwards", buffer(func(f *F) { f.Strides = []int{-12, 4} }), "offset", false, "reaches bytes -12 to 12"},
		{"empty buffer", buffer(func(f *F) { f.BufferLength = 0 }), "shape", false, "0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := arrayiface.ParseFields(c.fields)
			assert.Zero(t, got)
			requireError(t, err, c.key, c.isType, c.contains)
		})
	}
}
