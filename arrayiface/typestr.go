package arrayiface

import (
	"cmp"
	"strconv"
	"strings"
)

// refusedKinds are the kinds of the array interface that hold something else than one number.
var refusedKinds = map[byte]string{
	'O': "Python objects are not supported",
	'V': "structured and void elements are not supported " +
		"(bfloat16 and float8 are known by a dtype of ml_dtypes, or by DLPack)",
	'S': "byte strings are not supported",
	'a': "byte strings are not supported",
	'U': "Unicode strings are not supported",
	'T': "variable-length strings are not supported",
	'M': "dates are not supported; pass a view as int64",
	'm': "time differences are not supported; pass a view as int64",
	't': "bit fields are not supported; pass bool or uint8",
	'g': "long double is not supported; convert with .astype('float64')",
}

// refusedSizes are the numbers that NumPy or its extensions have and we do not.
var refusedSizes = map[string]string{
	"f1":  "float8 has no code in the array interface; pass the array by DLPack",
	"f10": "long double is not supported; convert with .astype('float64')",
	"f12": "long double is not supported; convert with .astype('float64')",
	"f16": "long double is not supported; convert with .astype('float64')",
	"c4":  "complex numbers of two float16 are not supported; convert with .astype('complex64')",
	"c20": "complex long double is not supported; convert with .astype('complex128')",
	"c24": "complex long double is not supported; convert with .astype('complex128')",
	"c32": "complex long double is not supported; convert with .astype('complex128')",
}

// shortCodes maps a typestr without its byte order to the element type.
var shortCodes = func() map[string]ElementType {
	codes := make(map[string]ElementType)
	for _, t := range Types() {
		if code := t.Typestr()[1:]; code[0] != 'V' {
			codes[code] = t
		}
	}
	return codes
}()

// ParseTypestr reads the typestr of the array interface: byte order, kind and size in bytes, such as "<f4". The order
// is '<' or '=' (native) or left out, as NumPy takes it, and '|' or '>' too if the element is one byte, which has none.
// Everything else is a TypeError that names what it is: big-endian elements, objects, structures, strings, dates, bit
// fields, long double.
//
// NumPy alone reads '|' before a longer element as native. It is refused here: by the interface's definition it says
// that the order is unknown.
func ParseTypestr(s string) (ElementType, error) { return parseTypestr("typestr", s) }

func parseTypestr(key, s string) (ElementType, error) {
	refuse := func(problem string) (ElementType, error) {
		accepted := acceptedTypestrs
		if key == "dtype" {
			accepted = acceptedNames // what a user writes
		}
		return Invalid, typeError(key, quote(s), "%s; accepted are %s", problem, accepted())
	}
	if s == "" {
		return refuse("missing or empty")
	}
	if strings.HasPrefix(s, "StringDType") { // what NumPy says of its own strings, instead of a typestr
		return refuse(refusedKinds['T'])
	}
	order, code := s[0], s[1:]
	named := true
	if order != '<' && order != '>' && order != '|' && order != '=' {
		order, code = '=', s
		named = len(s) > 1 && s[1] >= '0' && s[1] <= '9'
	}
	if code == "" {
		return refuse("lacks a kind and a size in bytes")
	}
	t, ok := shortCodes[code]
	if !ok {
		problem := refusedSizes[code]
		if kind := refusedKinds[code[0]]; kind != "" && named {
			problem = kind // else it is a word that begins with a kind's letter
		}
		return refuse(cmp.Or(problem, "no such element type"))
	}
	switch {
	case t.Size() == 1 || order == '<' || order == '=':
		return t, nil
	case order == '>':
		return refuse(bigEndian)
	default:
		return refuse("'|' leaves the byte order of " + strconv.Itoa(t.Size()) + "-byte elements unknown")
	}
}

const bigEndian = "big-endian elements are not supported; convert with .astype(a.dtype.newbyteorder('='))"
