package arrayiface

import (
	"fmt"
	"strconv"
)

// The type codes of DLPack 1.2, DLDataTypeCode in dlpack.h, by the names they have there without the prefix kDL.
const (
	dlInt            = 0
	dlUint           = 1
	dlFloat          = 2
	dlOpaqueHandle   = 3
	dlBfloat         = 4
	dlComplex        = 5
	dlBool           = 6
	dlFloat8E3M4     = 7
	dlFloat8E4M3     = 8
	dlFloat8E4M3B11  = 9
	dlFloat8E4M3FN   = 10
	dlFloat8E4M3FNUZ = 11
	dlFloat8E5M2     = 12
	dlFloat8E5M2FNUZ = 13
	dlFloat8E8M0FNU  = 14
	dlFloat6E2M3FN   = 15
	dlFloat6E3M2FN   = 16
	dlFloat4E2M1FN   = 17
)

var dlRefused = map[uint8]string{
	dlOpaqueHandle: "opaque handles",
	dlFloat6E2M3FN: "float6_e2m3fn elements, which do not fill whole bytes,",
	dlFloat6E3M2FN: "float6_e3m2fn elements, which do not fill whole bytes,",
	dlFloat4E2M1FN: "float4_e2m1fn elements, which do not fill whole bytes,",
}

// dlFamilies are the codes that stand for types of several sizes.
var dlFamilies = map[uint8]string{
	dlInt: "int", dlUint: "uint", dlFloat: "float", dlBfloat: "bfloat", dlComplex: "complex", dlBool: "bool",
}

// dlSuggested says what a producer can do whose elements we lack.
var dlSuggested = map[string]string{
	"complex32": "complex64",
	"float128":  "float64",
}

// DLPack gives the code and the number of bits of DLPack's DLDataType; its
// lanes are always 1. Both are 0 if e is not valid.
func (e ElementType) DLPack() (code, bits uint8) {
	return e.element().dlCode, uint8(e.Size() * 8)
}

// FromDLPack reads a DLDataType. It refuses, with a TypeError that names them, vectors (lanes other than 1), types of
// less than a byte, and what else no [ElementType] stands for.
func FromDLPack(code, bits uint8, lanes uint16) (ElementType, error) {
	value := fmt.Sprintf("(code %d, bits %d, lanes %d)", code, bits, lanes)
	if lanes != 1 {
		return Invalid, typeError("dtype", value, "vector elements are not supported; lanes must be 1")
	}
	for _, t := range Types() {
		if c, b := t.DLPack(); c == code && b == bits {
			return t, nil
		}
	}
	name, known := dlRefused[code]
	if family, ok := dlFamilies[code]; ok {
		number := family + strconv.Itoa(int(bits))
		name, known = number+" elements", true
		switch {
		case bits%8 != 0:
			name += ", which do not fill whole bytes,"
		case dlSuggested[number] != "":
			return Invalid, typeError("dtype", value, "%s are not supported; convert them to %s", name, dlSuggested[number])
		}
	}
	if known {
		return Invalid, typeError("dtype", value, "%s are not supported; accepted are %s", name, acceptedNames())
	}
	return Invalid, typeError("dtype", value, "no such element type; accepted are %s", acceptedNames())
}
