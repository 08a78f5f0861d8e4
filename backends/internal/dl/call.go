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

static word call12(word f, word a, word b, word c, word d, word e,
                   word g, word h, word i, word j, word k, word l, word m) {
    word (*function)(word, word, word, word, word, word, word, word, word, word, word, word) = (void *)f;
    return function(a, b, c, d, e, g, h, i, j, k, l, m);
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

// CallWith is Call for arguments whose pointers lead to heap memory that outlives the call. Unlike Call it does not
// ensure that. With up to twelve arguments it allocates nothing.
//
// Up to that many go by cgo, in half of purego's time. In the calling conventions of 64-bit Linux a function does not
// notice more arguments than it has.
func CallWith(address uintptr, arguments []uintptr) uintptr {
	var a [12]uintptr
	if n := copy(a[:], arguments); n < len(arguments) {
		result, _, _ := purego.SyscallN(address, slices.Clone(arguments)...)
		return result
	}
	switch {
	case len(arguments) > 8:
		return uintptr(C.call12(C.word(address),
			C.word(a[0]), C.word(a[1]), C.word(a[2]), C.word(a[3]), C.word(a[4]), C.word(a[5]),
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

// OnHeap returns a place that C may write to: unlike a variable on the stack it never moves, since the compiler does
// not see what becomes of its address.
//
//go:noinline
func OnHeap[T any](value T) *T { return &value }
