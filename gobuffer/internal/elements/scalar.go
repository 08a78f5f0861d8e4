package elements

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	ai "hamr/arrayiface"
)

// A scalar is one element in the widest type of its kind: bits holds an
// integer or a bool, re and im the parts of a number with a point.
type scalar struct {
	t      ai.ElementType
	bits   uint64
	re, im float64
}

func load(src unsafe.Pointer, t ai.ElementType) scalar {
	var room [16]byte
	copy(room[:], unsafe.Slice((*byte)(src), t.Size()))
	order := binary.NativeEndian
	s := scalar{t: t}
	switch t {
	case ai.Float16:
		s.re = float64(Float16ToFloat32(order.Uint16(room[:])))
	case ai.BFloat16:
		s.re = float64(BFloat16ToFloat32(order.Uint16(room[:])))
	case ai.Float32:
		s.re = load32(room[:])
	case ai.Float64:
		s.re = load64(room[:])
	case ai.Complex64:
		s.re, s.im = load32(room[:]), load32(room[4:])
	case ai.Complex128:
		s.re, s.im = load64(room[:]), load64(room[8:])
	case ai.Int8:
		s.bits = uint64(int8(room[0]))
	case ai.Int16:
		s.bits = uint64(int16(order.Uint16(room[:])))
	case ai.Int32:
		s.bits = uint64(int32(order.Uint32(room[:])))
	default:
		if f := float8s[t]; f != nil {
			s.re = float64(f.values[room[0]])
		} else {
			s.bits = loadUnsigned(room[:], t.Size())
		}
	}
	return s
}

func load32(b []byte) float64 {
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
}

func load64(b []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(b)) }

func loadUnsigned(b []byte, size int) uint64 {
	switch size {
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	case 8:
		return binary.NativeEndian.Uint64(b)
	}
	return uint64(b[0])
}

// ValueError says that a type cannot hold a value that a user gave.
type ValueError struct {
	// Value as printed, the type's name, and what that type holds.
	Value, Type, Accepted string
	// WrongType is set where no value of this kind would do: a TypeError in
	// Python, where the others are a ValueError.
	WrongType bool
}

// IsTypeError lets callers that cannot import this package tell the two apart.
func (e *ValueError) IsTypeError() bool { return e.WrongType }

func (e *ValueError) Error() string {
	return fmt.Sprintf("value %s does not fit %s: accepted are %s", e.Value, e.Type, e.Accepted)
}

// Representable refuses, with a *ValueError, a scalar that conversion to t would
// silently turn into another number: an integer out of range, a floating point
// number that is not finite or out of range for an integer type, a complex
// number for a real type. A lost fraction, rounding, and overflow to infinity, or
// to NaN where there is none, in a floating point type are allowed, as in NumPy;
// Bool holds anything.
func Representable(t ai.ElementType, src unsafe.Pointer, st ai.ElementType) error {
	if !t.Valid() || !st.Valid() {
		return noRule(t, st)
	}
	if t == st || t == ai.Bool {
		return nil
	}
	v := load(src, st)
	refuse := func(accepted string, wrongType bool) error {
		return &ValueError{Value: v.String(), Type: t.String(), Accepted: accepted, WrongType: wrongType}
	}
	switch {
	case st.Kind() == ai.KindComplex && t.Kind() != ai.KindComplex:
		return refuse("real numbers", true)
	case t.Kind() != ai.KindSigned && t.Kind() != ai.KindUnsigned:
		return nil
	}
	if r := rangeOf(t); !r.holds(v) {
		return refuse(r.String(), false)
	}
	return nil
}

type integerRange struct {
	low  int64
	high uint64
}

func rangeOf(t ai.ElementType) integerRange {
	bits := 8 * t.Size()
	if t.Kind() == ai.KindUnsigned {
		return integerRange{0, math.MaxUint64 >> (64 - bits)}
	}
	return integerRange{-1 << (bits - 1), 1<<(bits-1) - 1}
}

func (r integerRange) String() string { return fmt.Sprintf("%d … %d", r.low, r.high) }

func (r integerRange) holds(v scalar) bool {
	switch v.t.Kind() {
	case ai.KindFloat:
		// The limits of 64 bits are no float64, the powers of two beyond are.
		whole := math.Trunc(v.re)
		return whole >= float64(r.low) && whole < math.Ldexp(float64(r.high/2+1), 1)
	case ai.KindSigned:
		i := int64(v.bits)
		return i >= r.low && (i < 0 || uint64(i) <= r.high)
	}
	return v.bits <= r.high
}

// String prints as Python's repr does, but floats that are whole without ".0".
func (s scalar) String() string {
	switch s.t {
	case ai.Bool:
		if s.bits != 0 {
			return "True"
		}
		return "False"
	case ai.Float16, ai.BFloat16:
		return reprHalf(s)
	case ai.Float64:
		return reprFloat(s.re, 64)
	case ai.Complex64:
		return reprComplex(s.re, s.im, 32)
	case ai.Complex128:
		return reprComplex(s.re, s.im, 64)
	}
	switch s.t.Kind() {
	case ai.KindSigned:
		return strconv.FormatInt(int64(s.bits), 10)
	case ai.KindFloat:
		// Float8 as well: rounded to as few digits as tell its numbers apart, 448
		// would be 450.
		return reprFloat(s.re, 32)
	}
	return strconv.FormatUint(s.bits, 10)
}

// reprFloat gives the shortest digits that read back as the same number; with
// an exponent where Python's repr has one, below 1e-4 and from 1e16.
func reprFloat(v float64, width int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(v, 'e', -1, width)
	_, after, _ := strings.Cut(text, "e")
	if exponent, err := strconv.Atoi(after); err == nil && exponent >= -4 && exponent < 16 {
		return strconv.FormatFloat(v, 'f', -1, width)
	}
	return text
}

// reprHalf tries ever more digits, as strconv knows no 16-bit types.
func reprHalf(s scalar) string {
	narrow := func(v float64) uint16 { return Float64ToFloat16(v) }
	if s.t == ai.BFloat16 {
		narrow = Float64ToBFloat16
	}
	for digits := 0; digits < 9; digits++ {
		text := strconv.FormatFloat(s.re, 'e', digits, 64)
		if v, err := strconv.ParseFloat(text, 64); err == nil && narrow(v) == narrow(s.re) {
			return reprFloat(v, 64)
		}
	}
	return reprFloat(s.re, 32)
}

func reprComplex(re, im float64, width int) string {
	imaginary := reprFloat(im, width) + "j"
	if re == 0 && !math.Signbit(re) {
		return imaginary
	}
	if imaginary[0] != '-' {
		imaginary = "+" + imaginary
	}
	return "(" + reprFloat(re, width) + imaginary + ")"
}
