package dl

/*
#include <stdint.h>

typedef uintptr_t word;

static word call4(word f, word a, word b, word c, word d) {
    return ((word (*)(word, word, word, word))f)(a, b, c, d);
}

static word call8(word f, word a, word b, word c, word d, word e, word g, word h, word i) {
    return ((word (*)(word, word, word, word, word, word, word, word))f)(a, b, c, d, e, g, h, i);
}

static word call12(word f, word a, word b, word c, word d, word e, word g, word h, word i, word j, word k, word l, word m) {
    return ((word (*)(word, word, word, word, word, word, word, word, word, word, word, word))f)(a, b, c, d, e, g, h, i, j, k, l, m);
}
*/
import "C"

import (
	"slices"

	"github.com/ebitengine/purego"
)

// Call calls the C function at address with up to fifteen integers or pointers
// and returns its integer result. A result narrower than uintptr has undefined
// upper bits: convert it to its C type.
//
//go:uintptrescapes
func Call(address uintptr, arguments ...uintptr) uintptr { return CallWith(address, arguments) }

// CallWith is Call for arguments of which those that are pointers lead to what is on the heap and
// outlives the call: unlike Call it does not see to that, and with up to twelve it allocates nothing.
//
// So many go by cgo, in half of purego's time: in the calling conventions of 64-bit Linux a
// function does not notice arguments that it does not have.
func CallWith(address uintptr, arguments []uintptr) uintptr {
	var a [12]uintptr
	if n := copy(a[:], arguments); n < len(arguments) {
		result, _, _ := purego.SyscallN(address, slices.Clone(arguments)...)
		return result
	}
	switch {
	case len(arguments) > 8:
		return uintptr(C.call12(C.word(address), C.word(a[0]), C.word(a[1]), C.word(a[2]), C.word(a[3]), C.word(a[4]), C.word(a[5]),
			C.word(a[6]), C.word(a[7]), C.word(a[8]), C.word(a[9]), C.word(a[10]), C.word(a[11])))
	case len(arguments) <= 4:
		return uintptr(C.call4(C.word(address), C.word(a[0]), C.word(a[1]), C.word(a[2]), C.word(a[3])))
	}
	return uintptr(C.call8(C.word(address), C.word(a[0]), C.word(a[1]), C.word(a[2]), C.word(a[3]),
		C.word(a[4]), C.word(a[5]), C.word(a[6]), C.word(a[7])))
}

// Callback returns the address of a C function that calls f, whose arguments and result are numbers. It is never
// freed, and there are 2,000 of them at most: one for each purpose.
func Callback(f any) uintptr { return purego.NewCallback(f) }
