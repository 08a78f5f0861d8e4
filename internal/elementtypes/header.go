package main

import (
	"fmt"
	"strings"

	"hamr/arrayiface"
)

// header is include/hamr/types.h.
func header() string {
	var b strings.Builder
	fmt.Fprintf(&b, "/* %s */\n", mark)
	b.WriteString(`
/* What one element of an array is, for C and C++. It includes nothing. */
#ifndef HAMR_TYPES_H
#define HAMR_TYPES_H

/* How elements are read. */
typedef enum hamr_element_kind {
`)
	for k := arrayiface.KindInvalid; k <= arrayiface.KindComplex; k++ {
		fmt.Fprintf(&b, "    %s = %d,\n", kindEnumerator(k), k)
	}
	b.WriteString(`} hamr_element_kind;

/* The numbers never change; new ones are appended. */
typedef enum hamr_element_type {
    HAMR_INVALID = 0,
`)
	for _, t := range arrayiface.Types() {
		fmt.Fprintf(&b, "    %s = %d,\n", enumerator(t), t)
	}
	b.WriteString(`} hamr_element_type;

/* The length of a table by element type, HAMR_INVALID among them. */
`)
	fmt.Fprintf(&b, "#define HAMR_ELEMENT_TYPE_COUNT %d\n", arrayiface.NumTypes)
	b.WriteString(`
/* X(type, number, name, size, kind, DLPack's code, its bits, typestr of the array interface,
 * format of the buffer protocol, format of Arrow) for each type but HAMR_INVALID, in the order
 * of their numbers. The size is in bytes; names are NumPy's and ml_dtypes'; "" is a format that
 * does not exist. */
#define HAMR_ELEMENT_TYPES(X)`)
	for _, t := range arrayiface.Types() {
		code, bits := t.DLPack()
		fmt.Fprintf(&b, " \\\n    X(%s, %d, %q, %d, %s, %d, %d, %q, %q, %q)", enumerator(t), t, t.String(), t.Size(),
			kindEnumerator(t.Kind()), code, bits, t.Typestr(), t.BufferFormat(), t.ArrowFormat())
	}
	b.WriteString(`

/* X(type, the C type whose values the elements are) for each that has one. They are those of
 * <stdint.h>, <stdbool.h> and, in C++, <complex>. */
#ifdef __cplusplus
#define HAMR_COMPLEX(real) std::complex<real>
#else
#define HAMR_COMPLEX(real) real _Complex
#endif
#define HAMR_C_TYPES(X)`)
	for _, t := range arrayiface.Types() {
		if c := cType(t); c != "" {
			fmt.Fprintf(&b, " \\\n    X(%s, %s)", enumerator(t), c)
		}
	}
	b.WriteString("\n\n#endif\n")
	return b.String()
}

func enumerator(t arrayiface.ElementType) string { return "HAMR_" + strings.ToUpper(t.String()) }

func kindEnumerator(k arrayiface.Kind) string { return "HAMR_KIND_" + strings.ToUpper(k.String()) }

// cType is empty for types that C has no numbers of: their bits need not be those of a C
// type of the same size.
func cType(t arrayiface.ElementType) string {
	switch t {
	case arrayiface.Bool:
		return "bool"
	case arrayiface.Int8, arrayiface.Int16, arrayiface.Int32, arrayiface.Int64,
		arrayiface.Uint8, arrayiface.Uint16, arrayiface.Uint32, arrayiface.Uint64:
		return t.String() + "_t"
	case arrayiface.Float32:
		return "float"
	case arrayiface.Float64:
		return "double"
	case arrayiface.Complex64:
		return "HAMR_COMPLEX(float)"
	case arrayiface.Complex128:
		return "HAMR_COMPLEX(double)"
	}
	return ""
}
