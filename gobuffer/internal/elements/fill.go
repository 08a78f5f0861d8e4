package elements

import (
	"fmt"
	"unsafe"

	ai "hamr/arrayiface"
)

// Fill writes pattern, the bytes of exactly one element, to every element of
// the array at dst. Pattern makes such bytes from a value.
func Fill(dst unsafe.Pointer, l ai.Layout, pattern []byte) error {
	if len(pattern) != l.ItemSize() || len(pattern) == 0 {
		return fmt.Errorf("elements: a pattern of %d bytes cannot fill %s, whose elements have %d", len(pattern), l.Type,
			l.ItemSize())
	}
	same := ai.Layout{Type: l.Type, Shape: l.Shape, Strides: make([]int, len(l.Shape))}
	return CopyStrided(dst, l, unsafe.Pointer(&pattern[0]), same)
}

// Pattern converts the element of type st at src to t and returns its bytes, the first size of value.
func Pattern(t ai.ElementType, src unsafe.Pointer, st ai.ElementType) (value [16]byte, size int, err error) {
	err = Convert(unsafe.Pointer(&value), t, src, st, 1)
	return value, t.Size(), err
}
