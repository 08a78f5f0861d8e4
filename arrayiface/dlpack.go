package arrayiface

import "fmt"

// The type codes of DLPack 1.1, DLDataTypeCode in dlpack.h, by the names they
// have there without the prefix kDL.
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
)

var dlRefused = map[uint8]string{
	dlOpaqueHandle:   "opaque handles",
	dlFloat8E3M4:     "float8_e3m4 elements",
	dlFloat8E4M3:     "float8_e4m3 elements",
	dlFloat8E4M3B11:  "float8_e4m3b11fnuz elements",
	dlFloat8E4M3FNUZ: "float8_e4m3fnuz elements",
	dlFloat8E5M2FNUZ: "float8_e5m2fnuz elements",
	dlFloat8E8M0FNU:  "float8_e8m0fnu elements",
}

// DLPack gives the code and the number of bits of DLPack's DLDataType; its
// lanes are always 1. Both are 0 if e is not valid.
func (e ElementType) DLPack() (code, bits uint8) {
	return e.element().dlCode, uint8(e.Size() * 8)
}

// FromDLPack reads a DLDataType. It refuses, with a TypeError, vectors (lanes
// other than 1), types of less than a byte, and codes that no [ElementType]
// stands for.
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
	if name, ok := dlRefused[code]; ok {
		return Invalid, typeError("dtype", value, "%s are not supported; accepted are %s", name, acceptedNames())
	}
	if bits%8 != 0 {
		return Invalid, typeError("dtype", value, "elements that do not fill whole bytes are not supported; accepted are %s", acceptedNames())
	}
	return Invalid, typeError("dtype", value, "no such element type; accepted are %s", acceptedNames())
}
