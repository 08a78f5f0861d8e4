package arrayiface

//go:generate go run hamr/internal/elementtypes ..

// ElementType identifies what one element of an array is. The zero value is Invalid. Values are part of the interface
// between the Go core and the Python extension: append new ones, never renumber.
type ElementType uint8

// The element types. Those of eight bits with a point are named as ml_dtypes and DLPack name them: by the bits of
// exponent and mantissa and, where these differ from IEEE 754's, the exponent's bias (B11) and the special values: FN
// is finite with NaN, UZ has no negative zero, whose code is NaN, U is unsigned.
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

	afterLast // new types stand before it
)

// NumTypes is how many values of ElementType there are, Invalid among them: the
// length of a table by element type. A table declared as
//
//	var table [NumTypes]T = [...]T{Bool: …, Int8: …}
//
// does not compile while it lacks the newest type.
const NumTypes = int(afterLast)

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

// element holds all that differs between element types. Its rows name no fields, so that none of them can be left out.
type element struct {
	name      string
	typestr   string // of the array interface
	format    string // of the buffer protocol, empty if it has none
	arrow     string // Arrow's format, empty if it has none
	size      int    // bytes
	kind      Kind
	dlCode    uint8
	onDevices bool // kernels convert it; else the host does
}

var elements [NumTypes]element = [...]element{
	Invalid: {name: "invalid"},

	Bool:              {"bool", "|b1", "?", "", 1, KindBool, dlBool, true},
	Int8:              {"int8", "|i1", "b", "c", 1, KindSigned, dlInt, true},
	Int16:             {"int16", "<i2", "h", "s", 2, KindSigned, dlInt, true},
	Int32:             {"int32", "<i4", "i", "i", 4, KindSigned, dlInt, true},
	Int64:             {"int64", "<i8", "l", "l", 8, KindSigned, dlInt, true},
	Uint8:             {"uint8", "|u1", "B", "C", 1, KindUnsigned, dlUint, true},
	Uint16:            {"uint16", "<u2", "H", "S", 2, KindUnsigned, dlUint, true},
	Uint32:            {"uint32", "<u4", "I", "I", 4, KindUnsigned, dlUint, true},
	Uint64:            {"uint64", "<u8", "L", "L", 8, KindUnsigned, dlUint, true},
	Float16:           {"float16", "<f2", "e", "e", 2, KindFloat, dlFloat, true},
	Float32:           {"float32", "<f4", "f", "f", 4, KindFloat, dlFloat, true},
	Float64:           {"float64", "<f8", "d", "g", 8, KindFloat, dlFloat, true},
	Complex64:         {"complex64", "<c8", "Zf", "", 8, KindComplex, dlComplex, true},
	Complex128:        {"complex128", "<c16", "Zd", "", 16, KindComplex, dlComplex, true},
	BFloat16:          {"bfloat16", "<V2", "", "", 2, KindFloat, dlBfloat, true},
	Float8E4M3FN:      {"float8_e4m3fn", "|V1", "", "", 1, KindFloat, dlFloat8E4M3FN, false},
	Float8E5M2:        {"float8_e5m2", "|V1", "", "", 1, KindFloat, dlFloat8E5M2, false},
	Float8E3M4:        {"float8_e3m4", "|V1", "", "", 1, KindFloat, dlFloat8E3M4, false},
	Float8E4M3:        {"float8_e4m3", "|V1", "", "", 1, KindFloat, dlFloat8E4M3, false},
	Float8E4M3B11FNUZ: {"float8_e4m3b11fnuz", "|V1", "", "", 1, KindFloat, dlFloat8E4M3B11, false},
	Float8E4M3FNUZ:    {"float8_e4m3fnuz", "|V1", "", "", 1, KindFloat, dlFloat8E4M3FNUZ, false},
	Float8E5M2FNUZ:    {"float8_e5m2fnuz", "|V1", "", "", 1, KindFloat, dlFloat8E5M2FNUZ, false},
	Float8E8M0FNU:     {"float8_e8m0fnu", "|V1", "", "", 1, KindFloat, dlFloat8E8M0FNU, false},
}

func (e ElementType) element() *element {
	if e >= afterLast {
		e = Invalid
	}
	return &elements[e]
}

// sizes has an entry for each number that an ElementType can be: every operation asks for sizes.
var sizes = func() (table [1 << 8]uint8) {
	for e, row := range elements {
		table[e] = uint8(row.size)
	}
	return table
}()

// Types lists every valid element type, in the order of their values.
func Types() []ElementType {
	types := make([]ElementType, 0, NumTypes-1)
	for e := Invalid + 1; e.Valid(); e++ {
		types = append(types, e)
	}
	return types
}

// Valid reports whether e is one of the element types other than Invalid.
func (e ElementType) Valid() bool { return e != Invalid && e < afterLast }

// Size is the size of one element in bytes, 0 if e is not valid.
func (e ElementType) Size() int { return int(sizes[e]) }

// Kind says by which rule e converts. BFloat16, the upper half of a Float32, and
// the types of eight bits with a point are KindFloat.
func (e ElementType) Kind() Kind { return e.element().kind }

// String gives NumPy's name, such as "float32"; bfloat16 and the Float8 types
// are named as ml_dtypes names them. It is "invalid" if e is not valid.
func (e ElementType) String() string { return e.element().name }

// Typestr gives the typestr of the array interface, such as "<f4", empty if e is not valid. BFloat16 is "<V2", as NumPy
// prints ml_dtypes' type, and the Float8 types are "|V1": the interface has no code for them, so a reader gets bytes of
// the right size and no more, and [ParseTypestr] refuses them.
func (e ElementType) Typestr() string { return e.element().typestr }

// BufferFormat gives the format of the buffer protocol (PEP 3118), such as "f". It is empty for BFloat16 and the Float8
// types, which have none. Integers of 8 bytes are "l" and "L", as NumPy writes them on Linux: "q" and "Q" are other
// types to NumPy, of the same size.
func (e ElementType) BufferFormat() string { return e.element().format }

// ArrowFormat gives the format of Arrow's C data interface, such as "f". It is empty for what Arrow has no primitive
// arrays of: Bool, which it packs, complex numbers, BFloat16 and the Float8 types.
func (e ElementType) ArrowFormat() string { return e.element().arrow }

// OnDevices reports whether devices can be asked to convert elements of type e;
// those of other types they only move, and the host converts.
func (e ElementType) OnDevices() bool { return e.element().onDevices }
