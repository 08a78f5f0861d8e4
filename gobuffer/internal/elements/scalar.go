package elements

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	ai "hamr/arrayiface"
)

// A scalar is one element in the widest type of its kind.
type scalar struct {
	t ai.ElementType
	value
}

func load(src unsafe.Pointer, t ai.ElementType) scalar {
	return scalar{t, rules[t].load(unsafe.Slice((*byte)(src), t.Size()))}
}

// ValueError says that a type cannot hold a value that a user gave.
type ValueError struct {
	// Value as printed, the type's name, and what that type holds.
	Value, Type, Accepted string
	// WrongType is set where no value of this kind would do: a TypeError in Python, where the others are a ValueError.
	WrongType bool
}

// IsTypeError lets callers that cannot import this package tell the two apart.
func (e *ValueError) IsTypeError() bool { return e.WrongType }

func (e *ValueError) Error() string {
	return fmt.Sprintf("value %s does not fit %s: accepted are %s", e.Value, e.Type, e.Accepted)
}

// Representable refuses, with a *ValueError, a scalar that conversion to t would silently turn into another number: an
// integer out of range, a floating point number that is not finite or out of range for an integer type, a finite one
// that would become infinite in a floating point type, a complex number for a real type. A lost fraction and rounding
// are allowed, and in float8 overflow to infinity, or to NaN where there is none, as in ml_dtypes; Bool holds anything.
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
	case t.Kind() == ai.KindFloat || t.Kind() == ai.KindComplex:
		if v.overflows(t) {
			return refuse("numbers of its range, and infinity", false)
		}
		return nil
	}
	if r := rangeOf(t); !r.holds(v) {
		return refuse(r.String(), false)
	}
	return nil
}

// leastLimit is the largest number that every floating point type beyond float8 holds.
const leastLimit = 65504

// overflows reports whether s is finite and what t makes of it is not.
func (s scalar) overflows(t ai.ElementType) bool {
	switch s.t.Kind() {
	case ai.KindSigned:
		s.re = float64(int64(s.bits))
	case ai.KindUnsigned:
		s.re = float64(s.bits)
	}
	if math.Abs(s.re) <= leastLimit && math.Abs(s.im) <= leastLimit || t.Size() == 1 {
		return false
	}
	return becomesInfinite(s.re, t) || becomesInfinite(s.im, t)
}

func becomesInfinite(part float64, t ai.ElementType) bool {
	narrow, _, err := Pattern(t, unsafe.Pointer(&part), ai.Float64)
	return err == nil && !math.IsInf(part, 0) && math.IsInf(load(unsafe.Pointer(&narrow), t).re, 0)
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
	switch s.t.Kind() {
	case ai.KindBool:
		if s.bits != 0 {
			return "True"
		}
		return "False"
	case ai.KindSigned:
		return strconv.FormatInt(int64(s.bits), 10)
	case ai.KindUnsigned:
		return strconv.FormatUint(s.bits, 10)
	}
	return rules[s.t].print(s.re, s.im)
}
