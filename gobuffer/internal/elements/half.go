package elements

import "math"

const (
	f16Infinity = 0x7c00
	f32Infinity = 0x7f800000
	f64Infinity = 0x7ff << 52
)

// Float16ToFloat32 is exact; NaN keeps its payload.
func Float16ToFloat32(h uint16) float32 {
	const rebias = 112 << 23
	sign := uint32(h&0x8000) << 16
	bits := uint32(h&0x7fff) << 13
	switch {
	case bits >= 0x1f<<23:
		bits += 2 * rebias
	case bits >= 1<<23:
		bits += rebias
	default:
		// A subnormal has no hidden bit: lend it one, then take it away.
		const hidden = 113 << 23
		bits = math.Float32bits(math.Float32frombits(bits|hidden) - math.Float32frombits(hidden))
	}
	return math.Float32frombits(sign | bits)
}

// Float32ToFloat16 rounds to nearest, ties to even.
func Float32ToFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	if h, ok := normal32To16(bits); ok {
		return h
	}
	return rare32To16(bits)
}

// normal32To16 is apart so that it is inlined in loops. Up to 65536, not 65504:
// a mantissa that rounds over carries into the exponent and gives infinity.
func normal32To16(bits uint32) (uint16, bool) {
	m := bits&^(1<<31) - 113<<23
	return uint16(bits>>16&0x8000) | uint16((m+1<<23+0xfff+m>>13&1)>>13), m < 30<<23
}

func rare32To16(bits uint32) uint16 {
	sign, bits := uint16(bits>>16&0x8000), bits&^(1<<31)
	switch {
	case bits > f32Infinity:
		return sign | quietest16(uint16(bits>>13&0x3ff))
	case bits >= 143<<23:
		return sign | f16Infinity
	}
	// At 0.5 a float32 counts in steps of 2⁻²⁴, the smallest Float16: the addition does the rounding.
	const half = 126 << 23
	return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-half)
}

// Float64ToFloat16 rounds once to nearest, ties to even, not through a float32.
func Float64ToFloat16(f float64) uint16 {
	bits := math.Float64bits(f)
	if h, ok := normal64To16(bits); ok {
		return h
	}
	return rare64To16(bits)
}

func normal64To16(bits uint64) (uint16, bool) {
	m := bits&^(1<<63) - 1009<<52
	return uint16(bits>>48&0x8000) | uint16((m+1<<52+1<<41-1+m>>42&1)>>42), m < 30<<52
}

func rare64To16(bits uint64) uint16 {
	sign, bits := uint16(bits>>48&0x8000), bits&^(1<<63)
	switch {
	case bits > f64Infinity:
		return sign | quietest16(uint16(bits>>42&0x3ff))
	case bits >= 1039<<52:
		return sign | f16Infinity
	}
	const magic = 0x1p28
	return sign | uint16(math.Float64bits(math.Float64frombits(bits)+magic)-math.Float64bits(magic))
}

// quietest16 is NumPy's choice: a payload lost to narrowing becomes 1, for without any it would be infinity.
func quietest16(payload uint16) uint16 {
	return f16Infinity | max(payload, 1)
}

// BFloat16ToFloat32 is exact.
func BFloat16ToFloat32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// Float32ToBFloat16 rounds to nearest, ties to even; every NaN becomes the quiet NaN of its sign.
func Float32ToBFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16&0x8000) | 0x7fc0
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float64ToBFloat16 rounds to float32 first, as ml_dtypes does.
func Float64ToBFloat16(f float64) uint16 { return Float32ToBFloat16(float32(f)) }
