package arrayiface

import "strings"

// formats are the codes of the buffer protocol: one of each type that has any, and what else stands for the same.
var formats = func() map[string]ElementType {
	// NumPy and PEP 3118 write Zf and Zd, Python 3.14's struct F and D.
	m := map[string]ElementType{"c": Uint8, "F": Complex64, "D": Complex128, "q": Int64, "Q": Uint64}
	for _, t := range Types() {
		if format := t.BufferFormat(); format != "" {
			m[format] = t
		}
	}
	return m
}()

var refusedFormats = map[string]string{
	"O":  "Python objects are not supported",
	"g":  "long double is not supported; convert with .astype('float64')",
	"Zg": "complex long double is not supported; convert with .astype('complex128')",
	"Ze": "complex numbers of two float16 are not supported; convert with .astype('complex64')",
	"s":  "byte strings are not supported",
	"p":  "byte strings are not supported",
	"u":  "Unicode strings are not supported",
	"w":  "Unicode strings are not supported",
	"P":  "pointers are not supported",
	"z":  "pointers are not supported",
	"Z":  "pointers are not supported",
	"t":  "bit fields are not supported",
	"x":  "padding is not supported",
}

// ParseBufferFormat reads the format of the buffer protocol (PEP 3118) of elements that are itemSize bytes each: an
// optional byte order, one of @ = < > !, and the code of one number. An empty format, also what a NULL becomes, means
// "B", as in Python's documentation of Py_buffer.
//
// 'l', 'L', 'n' and 'N' are as wide as itemSize says, 4 or 8 bytes, whatever the byte order before them: older ctypes
// write '<l' for 8 bytes (bpo-10746).
//
// A TypeError names what is not supported: big-endian numbers, structures, objects, strings, pointers, long double,
// repeat counts. It is a ValueError if itemSize is not the size of the number.
func ParseBufferFormat(format string, itemSize int) (ElementType, error) {
	code, order := format, byte('@')
	if code == "" {
		code = "B"
	}
	if strings.IndexByte("@=<>!", code[0]) >= 0 {
		order, code = code[0], code[1:]
	}
	refuse := func(problem string) (ElementType, error) {
		return Invalid, typeError("format", quote(format),
			"%s; accepted are ? b h i l q n B H I L Q N c e f d Zf Zd", problem)
	}
	t, ok := wordFormat(code, itemSize)
	if !ok {
		t, ok = formats[code]
	}
	if !ok {
		if problem := refusedFormat(code); problem != "" {
			return refuse(problem)
		}
		return refuse("no such element type")
	}
	if t.Size() != itemSize {
		return Invalid, valueError("format", quote(format), "elements have %d bytes, the buffer says %d", t.Size(), itemSize)
	}
	if (order == '>' || order == '!') && itemSize > 1 {
		return refuse(bigEndian)
	}
	return t, nil
}

// refusedFormat says why a code is known and not supported, or nothing.
func refusedFormat(code string) string {
	switch {
	case code == "":
		return "lacks the code of a number"
	case strings.HasPrefix(code, "T{"):
		return "structured elements are not supported"
	case code[0] == '(':
		return "sub-arrays are not supported"
	case code[0] == '&' || strings.HasPrefix(code, "X{"):
		return "pointers are not supported"
	}
	if rest := strings.TrimLeft(code, "0123456789"); rest != code {
		if problem, ok := refusedFormats[rest]; ok {
			return problem
		}
		return "repeat counts are not supported"
	}
	return refusedFormats[code]
}

// wordFormat reads the codes whose width depends on the system. A width that
// they cannot have gives the 8-byte type, for the caller to compare.
func wordFormat(code string, itemSize int) (ElementType, bool) {
	switch code {
	case "l", "n":
		if itemSize == Int32.Size() {
			return Int32, true
		}
		return Int64, true
	case "L", "N":
		if itemSize == Uint32.Size() {
			return Uint32, true
		}
		return Uint64, true
	}
	return Invalid, false
}
