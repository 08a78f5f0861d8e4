package elements

import (
	"encoding/binary"
	"math"

	ai "hamr/arrayiface"
)

// A rule says how elements of one type are converted, read and printed.
type rule struct {
	// native is set for those that Go itself calculates with.
	native native
	// hub is the type through which one of the others reaches the rest, by two kernels. Nothing is lost on the way but
	// what the rules of this package say: exact has the pairs that would lose more.
	hub            ai.ElementType
	toHub, fromHub kernel
	// load reads one element's bytes.
	load func(b []byte) value
	// print is for floating point and complex numbers.
	print func(re, im float64) string

	float8 *float8 // what the kernels of an eight-bit floating point type know
}

// rules has every element type: it does not compile without the newest.
var rules [ai.NumTypes]rule = [...]rule{
	ai.Invalid: {},

	ai.Bool:    {native: nativeBool, load: loadUint8},
	ai.Int8:    {native: nativeInt8, load: loadInt8},
	ai.Int16:   {native: nativeInt16, load: loadInt16},
	ai.Int32:   {native: nativeInt32, load: loadInt32},
	ai.Int64:   {native: nativeInt64, load: loadUint64},
	ai.Uint8:   {native: nativeUint8, load: loadUint8},
	ai.Uint16:  {native: nativeUint16, load: loadUint16},
	ai.Uint32:  {native: nativeUint32, load: loadUint32},
	ai.Uint64:  {native: nativeUint64, load: loadUint64},
	ai.Float32: {native: nativeFloat32, load: loadFloat32, print: printFloat32},
	ai.Float64: {native: nativeFloat64, load: loadFloat64, print: printFloat64},

	ai.Float16:  {hub: ai.Float32, toHub: float16To32, fromHub: float32To16, load: loadFloat16, print: printFloat16},
	ai.BFloat16: {hub: ai.Float32, toHub: bfloat16To32, fromHub: float32ToB16, load: loadBFloat16, print: printBFloat16},
	ai.Complex64: {hub: ai.Float32, toHub: realPart[float32], fromHub: withZeroImaginary[float32], load: loadComplex64,
		print: printComplex64},
	ai.Complex128: {hub: ai.Float64, toHub: realPart[float64], fromHub: withZeroImaginary[float64], load: loadComplex128,
		print: printComplex128},

	ai.Float8E3M4:        float8Rule(4, 3, ieee),
	ai.Float8E4M3:        float8Rule(3, 7, ieee),
	ai.Float8E4M3B11FNUZ: float8Rule(3, 11, unsignedZero),
	ai.Float8E4M3FN:      float8Rule(3, 7, finite),
	ai.Float8E4M3FNUZ:    float8Rule(3, 8, unsignedZero),
	ai.Float8E5M2:        float8Rule(2, 15, ieee),
	ai.Float8E5M2FNUZ:    float8Rule(2, 16, unsignedZero),
	ai.Float8E8M0FNU:     float8Rule(0, f32Bias, scale),
}

// exact has the pairs of which at least one type has a hub and that do not go through it.
func exact(dt, st ai.ElementType) kernel {
	switch [2]ai.ElementType{dt, st} {
	case [2]ai.ElementType{ai.Float16, ai.Float64}:
		return float64To16
	case [2]ai.ElementType{ai.Complex64, ai.Complex128}:
		return complexToComplex[float32, float64]
	case [2]ai.ElementType{ai.Complex128, ai.Complex64}:
		return complexToComplex[float64, float32]
	case [2]ai.ElementType{ai.Bool, ai.Complex64}:
		return complexToBool[float32]
	case [2]ai.ElementType{ai.Bool, ai.Complex128}:
		return complexToBool[float64]
	}
	return nil
}

func float8Rule(mantissa, bias int, special specials) rule {
	f := newFloat8(mantissa, bias, special)
	return rule{
		hub: ai.Float32, toHub: f.toFloat32, fromHub: f.fromFloat32, float8: f,
		load: func(b []byte) value { return value{re: float64(f.values[b[0]])} },
		// Rounded to as few digits as tell its numbers apart, 448 would be 450.
		print: printFloat32,
	}
}

func loadInt8(b []byte) value   { return value{bits: uint64(int8(b[0]))} }
func loadInt16(b []byte) value  { return value{bits: uint64(int16(binary.NativeEndian.Uint16(b)))} }
func loadInt32(b []byte) value  { return value{bits: uint64(int32(binary.NativeEndian.Uint32(b)))} }
func loadUint8(b []byte) value  { return value{bits: uint64(b[0])} }
func loadUint16(b []byte) value { return value{bits: uint64(binary.NativeEndian.Uint16(b))} }
func loadUint32(b []byte) value { return value{bits: uint64(binary.NativeEndian.Uint32(b))} }
func loadUint64(b []byte) value { return value{bits: binary.NativeEndian.Uint64(b)} }

func loadFloat16(b []byte) value {
	return value{re: float64(Float16ToFloat32(binary.NativeEndian.Uint16(b)))}
}

func loadBFloat16(b []byte) value {
	return value{re: float64(BFloat16ToFloat32(binary.NativeEndian.Uint16(b)))}
}

func loadFloat32(b []byte) value {
	return value{re: float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))}
}

func loadFloat64(b []byte) value {
	return value{re: math.Float64frombits(binary.NativeEndian.Uint64(b))}
}

func loadComplex64(b []byte) value {
	return value{re: loadFloat32(b).re, im: loadFloat32(b[4:]).re}
}

func loadComplex128(b []byte) value {
	return value{re: loadFloat64(b).re, im: loadFloat64(b[8:]).re}
}

func printFloat16(re, _ float64) string     { return reprHalf(re, Float64ToFloat16) }
func printBFloat16(re, _ float64) string    { return reprHalf(re, Float64ToBFloat16) }
func printFloat32(re, _ float64) string     { return reprFloat(re, 32) }
func printFloat64(re, _ float64) string     { return reprFloat(re, 64) }
func printComplex64(re, im float64) string  { return reprComplex(re, im, 32) }
func printComplex128(re, im float64) string { return reprComplex(re, im, 64) }
