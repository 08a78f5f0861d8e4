package arrayiface

import "strings"

var names = func() map[string]ElementType {
	m := map[string]ElementType{"?": Bool}
	for _, t := range Types() {
		m[t.String()] = t
	}
	for code, t := range shortCodes {
		m[code] = t
	}
	for name, t := range otherNames {
		m[name] = t
	}
	return m
}()

// otherNames are NumPy's further names of types that have the same size in C and on all systems that hamr runs on.
var otherNames = map[string]ElementType{
	"half":      Float16,
	"single":    Float32,
	"double":    Float64,
	"csingle":   Complex64,
	"cdouble":   Complex128,
	"short":     Int16,
	"ushort":    Uint16,
	"intc":      Int32,
	"uintc":     Uint32,
	"longlong":  Int64,
	"ulonglong": Uint64,
	"intp":      Int64,
	"uintp":     Uint64,
}

// upstreamNames are the C++ types that upstream HAMR's buffers hold, as its
// Python module spells them, with the sizes of 64-bit Linux.
var upstreamNames = map[string]ElementType{
	"float":              Float32,
	"double":             Float64,
	"char":               Int8,
	"signed_char":        Int8,
	"short":              Int16,
	"int":                Int32,
	"long":               Int64,
	"long_long":          Int64,
	"unsigned_char":      Uint8,
	"unsigned_short":     Uint16,
	"unsigned_int":       Uint32,
	"unsigned_long":      Uint64,
	"unsigned_long_long": Uint64,
}

const lessThanByte = "elements that do not fill whole bytes are not supported"

// refusedNames are the types that NumPy or ml_dtypes have and we do not.
var refusedNames = map[string]string{
	"int1":          lessThanByte,
	"int2":          lessThanByte,
	"int4":          lessThanByte,
	"uint1":         lessThanByte,
	"uint2":         lessThanByte,
	"uint4":         lessThanByte,
	"float4_e2m1fn": lessThanByte,
	"float6_e2m3fn": lessThanByte,
	"float6_e3m2fn": lessThanByte,
	"complex32":     refusedSizes["c4"],
	"float128":      refusedSizes["f16"],
	"longdouble":    refusedSizes["f16"],
	"complex256":    refusedSizes["c32"],
	"clongdouble":   refusedSizes["c32"],
}

// ParseName reads the name of an element type as a user writes it: NumPy's name ("float32", "single"), its short code
// ("f4", "?") or a typestr ("<f4"). Anything else is a TypeError. Names that mean something else in C are refused:
// "float" is 4 bytes in C and 8 in NumPy, "long" differs between systems; see [ParseUpstreamName].
func ParseName(s string) (ElementType, error) {
	if t, ok := names[s]; ok {
		return t, nil
	}
	if s != "" && strings.IndexByte("<>|=", s[0]) >= 0 {
		return parseTypestr("dtype", s)
	}
	if strings.HasPrefix(s, "StringDType") {
		return parseTypestr("dtype", s)
	}
	if _, ok := upstreamNames[s]; ok {
		return Invalid, typeError("dtype", quote(s),
			"ambiguous, its size differs between C and NumPy or between systems; accepted are %s", acceptedNames())
	}
	for _, refused := range []map[string]string{refusedNames, refusedSizes} {
		if problem, ok := refused[s]; ok {
			return Invalid, typeError("dtype", quote(s), "%s; accepted are %s", problem, acceptedNames())
		}
	}
	return Invalid, typeError("dtype", quote(s), "no such element type; accepted are %s", acceptedNames())
}

// ParseUpstreamName reads one of the 13 type names of upstream HAMR, such as "unsigned_long_long". They are C++'s types
// on 64-bit Linux, so "float" is Float32 and "long" is Int64. Anything else is a TypeError.
func ParseUpstreamName(s string) (ElementType, error) {
	if t, ok := upstreamNames[s]; ok {
		return t, nil
	}
	return Invalid, typeError("dtype", quote(s), "not a type name of upstream HAMR; accepted are float, double, char, "+
		"signed_char, short, int, long, long_long and unsigned_ char, short, int, long, long_long")
}

func acceptedNames() string {
	var list []string
	for _, t := range Types() {
		list = append(list, t.String())
	}
	return strings.Join(list, ", ")
}

func acceptedTypestrs() string {
	var list []string
	for _, t := range Types() {
		if s := t.Typestr(); s[1] != 'V' {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}
