package arrayiface

// ElementType identifies what one element of an array is. The zero value is
// Invalid. Values are part of the interface between the Go core and the Python
// extension: append new ones, never renumber.
type ElementType uint8

// The element types. Those of eight bits with a point are named as ml_dtypes and
// DLPack name them: by the bits of exponent and mantissa and, where these differ
// from IEEE 754's, the exponent's bias (B11) and the special values: FN is finite
// with NaN, UZ has no negative zero, whose code is NaN, U is unsigned.
const (
	Invalid ElementType = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	Complex64
	Complex128
	BFloat16
	Float8E4M3FN
	Float8E5M2
	Float8E3M4
	Float8E4M3
	Float8E4M3B11FNUZ
	Float8E4M3FNUZ
	Float8E5M2FNUZ
	Float8E8M0FNU // powers of two, as factors of blocks of other elements
)

// Kind groups element types that convert by the same rule.
type Kind uint8

// The kinds of element.
const (
	KindInvalid Kind = iota
	KindBool
	KindSigned
	KindUnsigned
	KindFloat
	KindComplex
)

var kindNames = [...]string{"invalid", "bool", "signed", "unsigned", "float", "complex"}

// String gives the kind's name in lower case, "invalid" for an unknown one.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = KindInvalid
	}
	return kindNames[k]
}

// element holds all that differs between element types.
type element struct {
	name    string
	typestr string
	format  string
	size    int
	kind    Kind
	dlCode  uint8
}

var elements = [...]element{
	Invalid:           {name: "invalid"},
	Bool:              {"bool", "|b1", "?", 1, KindBool, dlBool},
	Int8:              {"int8", "|i1", "b", 1, KindSigned, dlInt},
	Int16:             {"int16", "<i2", "h", 2, KindSigned, dlInt},
	Int32:             {"int32", "<i4", "i", 4, KindSigned, dlInt},
	Int64:             {"int64", "<i8", "q", 8, KindSigned, dlInt},
	Uint8:             {"uint8", "|u1", "B", 1, KindUnsigned, dlUint},
	Uint16:            {"uint16", "<u2", "H", 2, KindUnsigned, dlUint},
	Uint32:            {"uint32", "<u4", "I", 4, KindUnsigned, dlUint},
	Uint64:            {"uint64", "<u8", "Q", 8, KindUnsigned, dlUint},
	Float16:           {"float16", "<f2", "e", 2, KindFloat, dlFloat},
	Float32:           {"float32", "<f4", "f", 4, KindFloat, dlFloat},
	Float64:           {"float64", "<f8", "d", 8, KindFloat, dlFloat},
	Complex64:         {"complex64", "<c8", "Zf", 8, KindComplex, dlComplex},
	Complex128:        {"complex128", "<c16", "Zd", 16, KindComplex, dlComplex},
	BFloat16:          {"bfloat16", "<V2", "", 2, KindFloat, dlBfloat},
	Float8E4M3FN:      {"float8_e4m3fn", "|V1", "", 1, KindFloat, dlFloat8E4M3FN},
	Float8E5M2:        {"float8_e5m2", "|V1", "", 1, KindFloat, dlFloat8E5M2},
	Float8E3M4:        {"float8_e3m4", "|V1", "", 1, KindFloat, dlFloat8E3M4},
	Float8E4M3:        {"float8_e4m3", "|V1", "", 1, KindFloat, dlFloat8E4M3},
	Float8E4M3B11FNUZ: {"float8_e4m3b11fnuz", "|V1", "", 1, KindFloat, dlFloat8E4M3B11},
	Float8E4M3FNUZ:    {"float8_e4m3fnuz", "|V1", "", 1, KindFloat, dlFloat8E4M3FNUZ},
	Float8E5M2FNUZ:    {"float8_e5m2fnuz", "|V1", "", 1, KindFloat, dlFloat8E5M2FNUZ},
	Float8E8M0FNU:     {"float8_e8m0fnu", "|V1", "", 1, KindFloat, dlFloat8E8M0FNU},
}

func (e ElementType) element() *element {
	if !e.Valid() {
		return &elements[Invalid]
	}
	return &elements[e]
}

// Types lists every valid element type, in the order of their values.
func Types() []ElementType {
	types := make([]ElementType, 0, len(elements)-1)
	for e := Invalid + 1; e.Valid(); e++ {
		types = append(types, e)
	}
	return types
}

// Valid reports whether e is one of the element types other than Invalid.
func (e ElementType) Valid() bool { return e != Invalid && int(e) < len(elements) }

// Size is the size of one element in bytes, 0 if e is not valid.
func (e ElementType) Size() int { return e.element().size }

// Kind says by which rule e converts. BFloat16, the upper half of a Float32, and
// the types of eight bits with a point are KindFloat.
func (e ElementType) Kind() Kind { return e.element().kind }

// String gives NumPy's name, such as "float32"; bfloat16 and the Float8 types
// are named as ml_dtypes names them. It is "invalid" if e is not valid.
func (e ElementType) String() string { return e.element().name }

// Typestr gives the typestr of the array interface, such as "<f4", empty if e
// is not valid. BFloat16 is "<V2", as NumPy prints ml_dtypes' type, and the
// Float8 types are "|V1": the interface has no code for them, so a reader gets
// bytes of the right size and no more, and [ParseTypestr] refuses them.
func (e ElementType) Typestr() string { return e.element().typestr }

// BufferFormat gives the format of the buffer protocol (PEP 3118), such as
// "f". It is empty for BFloat16 and the Float8 types, which have none.
func (e ElementType) BufferFormat() string { return e.element().format }
