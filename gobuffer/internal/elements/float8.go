package elements

import (
	"math"
	"sync"
	"unsafe"
)

// specials says which codes of a float8 are no ordinary numbers.
type specials uint8

const (
	// ieee has infinities, and NaNs above them.
	ieee specials = iota
	// finite has one NaN for each sign, in infinity's place, and no infinities.
	finite
	// unsignedZero has its only NaN in negative zero's place, and no infinities.
	unsignedZero
	// scale has neither sign nor zero: powers of two, and one NaN.
	scale
)

// A float8 is a format of floating point numbers in eight bits, of which the
// sign and the mantissa leave the exponent's.
type float8 struct {
	mantissa, bias int
	special        specials

	values  [256]float32
	once    sync.Once
	codes   *[1 << 15]uint8 // what a float32 becomes, see fromFloat32
	largest uint32          // the code of the largest number
	// What becomes of larger numbers, and of NaN, beside the sign.
	beyond, nan uint8
	signed      uint8 // the sign's bit, 0 where the special codes have none
	// Numbers below leastNormal, as bits of a float32, count in steps of the
	// smallest one, as float32 numbers near unit do.
	leastNormal uint32
	unit        float32
}

const (
	f32Bias     = 127
	f32Mantissa = 23
)

func newFloat8(mantissa, bias int, special specials) *float8 {
	f := &float8{mantissa: mantissa, bias: bias, special: special}
	switch special {
	case ieee:
		f.largest = 0x7f>>mantissa<<mantissa - 1
		f.beyond = uint8(f.largest) + 1
		f.nan = f.beyond | 1<<(mantissa-1)
		f.signed = 0x80
	case finite:
		f.largest, f.beyond, f.nan, f.signed = 0x7e, 0x7f, 0x7f, 0x80
	case unsignedZero:
		f.largest, f.beyond, f.nan = 0x7f, 0x80, 0x80
	case scale:
		f.largest, f.beyond, f.nan = 0xfe, 0xff, 0xff
	}
	f.leastNormal = uint32(f32Bias+1-bias) << f32Mantissa
	f.unit = float32(math.Ldexp(1, 1-bias-mantissa+f32Mantissa))
	for code := range f.values {
		f.values[code] = f.decode(uint8(code))
	}
	return f
}

func (f *float8) decode(code uint8) float32 {
	if f.special == scale {
		if code == f.nan {
			return quietNaN(0)
		}
		return float32(math.Ldexp(1, int(code)-f.bias))
	}
	sign, magnitude := uint32(code&0x80)<<24, uint32(code&0x7f)
	exponent, fraction := int(magnitude)>>f.mantissa, int(magnitude)&(1<<f.mantissa-1)
	var v float64
	switch {
	case f.special == unsignedZero && code == f.nan,
		magnitude > f.largest && (f.special == finite || magnitude != uint32(f.beyond)):
		return quietNaN(sign)
	case magnitude > f.largest:
		v = math.Inf(1)
	case exponent == 0:
		v = math.Ldexp(float64(fraction), 1-f.bias-f.mantissa)
	default:
		v = math.Ldexp(float64(fraction+1<<f.mantissa), exponent-f.bias-f.mantissa)
	}
	return math.Float32frombits(sign | math.Float32bits(float32(v)))
}

func quietNaN(sign uint32) float32 {
	return math.Float32frombits(sign | f32Infinity | 1<<(f32Mantissa-1))
}

// encode rounds to nearest, ties to even, the number that a float32's bits are.
func (f *float8) encode(bits uint32) uint8 {
	if f.special == scale {
		return f.encodeScale(bits)
	}
	sign := uint8(bits>>24) & 0x80
	bits &^= 1 << 31
	var code uint32
	switch {
	case bits > f32Infinity:
		return sign&f.signed | f.nan
	case bits < f.leastNormal:
		// The addition does the rounding.
		code = math.Float32bits(math.Float32frombits(bits)+f.unit) - math.Float32bits(f.unit)
	default:
		// A mantissa that rounds over carries into the exponent.
		dropped := f32Mantissa - f.mantissa
		code = (bits - f.leastNormal + 1<<f32Mantissa + 1<<(dropped-1) - 1 + bits>>dropped&1) >> dropped
	}
	switch {
	case code > f.largest:
		return sign&f.signed | f.beyond
	case code == 0:
		return sign & f.signed
	}
	return sign | uint8(code)
}

// encodeScale has ml_dtypes' rules. Of a number without a mantissa the last bit is the hidden one, which is odd: a tie
// goes up. Below a float32's smallest normal number everything goes up, but nothing below this type's smallest.
func (f *float8) encodeScale(bits uint32) uint8 {
	const smallest = 1 << (f32Mantissa - 1)
	switch {
	case bits == 0, bits >= f32Infinity:
		return f.nan // zero, infinity, NaN and all that is negative
	case bits <= smallest:
		return 0
	case bits < 1<<f32Mantissa:
		return 1
	}
	return uint8((bits + 1<<(f32Mantissa-1)) >> f32Mantissa)
}

func (f *float8) toFloat32(dst, src unsafe.Pointer, n int) {
	d, s := spans[float32, uint8](dst, src, n)
	for i, code := range s {
		d[i] = f.values[code]
	}
}

// fewEncoded elements are not worth a table.
const fewEncoded = 256

// fromFloat32 looks up what the sign, the exponent and six bits of the mantissa
// become: one more than any format keeps decides the rounding, and the last stands
// for all that follow. encode alone takes four times as long, for its branches.
func (f *float8) fromFloat32(dst, src unsafe.Pointer, n int) {
	const dropped = f32Mantissa - 6
	d, s := spans[uint8, uint32](dst, src, n)
	if n < fewEncoded {
		for i, bits := range s {
			d[i] = f.encode(bits)
		}
		return
	}
	f.once.Do(func() {
		f.codes = new([1 << (32 - dropped)]uint8)
		for i := range f.codes {
			f.codes[i] = f.encode(uint32(i) << dropped)
		}
	})
	for i, bits := range s {
		rest := (bits&(1<<dropped-1) + 1<<dropped - 1) >> dropped
		d[i] = f.codes[bits>>dropped|rest]
	}
}
