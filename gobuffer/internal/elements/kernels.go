package elements

import (
	"math"
	"unsafe"
)

// A kernel converts n elements that follow one another, both addresses aligned for their types.
type kernel func(dst, src unsafe.Pointer, n int)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

type number interface{ integer | float }

func spans[D, S any](dst, src unsafe.Pointer, n int) ([]D, []S) {
	return unsafe.Slice((*D)(dst), n), unsafe.Slice((*S)(src), n)
}

// plain serves where Go's own conversion says the same on every architecture: all but floating point to integer.
func plain[D, S number](dst, src unsafe.Pointer, n int) {
	d, s := spans[D, S](dst, src, n)
	for len(s) >= 4 && len(d) >= 4 {
		d[0], d[1], d[2], d[3] = D(s[0]), D(s[1]), D(s[2]), D(s[3])
		d, s = d[4:], s[4:]
	}
	for i, v := range s {
		d[i] = D(v)
	}
}

func trunc32[S float](v S) int32 {
	if v > -1<<31 && v < 1<<31 {
		return int32(v)
	}
	return math.MinInt32
}

func trunc64[S float](v S) int64 {
	if v > -1<<63 && v < 1<<63 {
		return int64(v)
	}
	return math.MinInt64
}

func truncU64[S float](v S) uint64 {
	if v >= 1<<63 {
		return uint64(trunc64(v-1<<63)) ^ 1<<63
	}
	return uint64(trunc64(v))
}

func floatToInteger32[D integer, S float](dst, src unsafe.Pointer, n int) {
	d, s := spans[D, S](dst, src, n)
	for i, v := range s {
		d[i] = D(trunc32(v))
	}
}

func floatToInteger64[D integer, S float](dst, src unsafe.Pointer, n int) {
	d, s := spans[D, S](dst, src, n)
	for i, v := range s {
		d[i] = D(trunc64(v))
	}
}

func floatToUint64[S float](dst, src unsafe.Pointer, n int) {
	d, s := spans[uint64, S](dst, src, n)
	for i, v := range s {
		d[i] = truncU64(v)
	}
}

func toBool[S number](dst, src unsafe.Pointer, n int) {
	d, s := spans[bool, S](dst, src, n)
	for i, v := range s {
		d[i] = v != 0
	}
}

func complexToBool[S float](dst, src unsafe.Pointer, n int) {
	d, s := spans[bool, [2]S](dst, src, n)
	for i, v := range s {
		d[i] = v[0] != 0 || v[1] != 0
	}
}

// fromBool takes a byte, not a Go bool: a foreign one may hold more than 0 and 1.
func fromBool[D number](dst, src unsafe.Pointer, n int) {
	d, s := spans[D, uint8](dst, src, n)
	for i, v := range s {
		d[i] = 0
		if v != 0 {
			d[i] = 1
		}
	}
}

func realPart[T float](dst, src unsafe.Pointer, n int) {
	d, s := spans[T, [2]T](dst, src, n)
	for i, v := range s {
		d[i] = v[0]
	}
}

func withZeroImaginary[T float](dst, src unsafe.Pointer, n int) {
	d, s := spans[[2]T, T](dst, src, n)
	for i, v := range s {
		d[i] = [2]T{v, 0}
	}
}

func complexToComplex[D, S float](dst, src unsafe.Pointer, n int) {
	plain[D, S](dst, src, 2*n)
}

func float16To32(dst, src unsafe.Pointer, n int) {
	d, s := spans[float32, uint16](dst, src, n)
	for i, v := range s {
		d[i] = Float16ToFloat32(v)
	}
}

func float32To16(dst, src unsafe.Pointer, n int) {
	d, s := spans[uint16, uint32](dst, src, n)
	for i, v := range s {
		h, ok := normal32To16(v)
		if !ok {
			h = rare32To16(v)
		}
		d[i] = h
	}
}

func float64To16(dst, src unsafe.Pointer, n int) {
	d, s := spans[uint16, uint64](dst, src, n)
	for i, v := range s {
		h, ok := normal64To16(v)
		if !ok {
			h = rare64To16(v)
		}
		d[i] = h
	}
}

func bfloat16To32(dst, src unsafe.Pointer, n int) {
	d, s := spans[float32, uint16](dst, src, n)
	for i, v := range s {
		d[i] = BFloat16ToFloat32(v)
	}
}

func float32ToB16(dst, src unsafe.Pointer, n int) {
	d, s := spans[uint16, float32](dst, src, n)
	for i, v := range s {
		d[i] = Float32ToBFloat16(v)
	}
}
