package elements

import (
	"strings"
	"unsafe"

	ai "hamr/arrayiface"
)

const (
	textPerLine = 8
	textEdge    = 3
)

// Text prints the elements of the array at src in C order, whatever its shape, as upstream HAMR prints a buffer: in
// braces, ", " between elements and a line feed after it before each whose index is a multiple of 8. Numbers print as
// Python's repr does, but floats that are whole without ".0". Of more than limit elements, if limit is positive, only
// the first and last three are printed, around "...", as NumPy does.
func Text(src unsafe.Pointer, l ai.Layout, limit int) string {
	n := l.Count()
	if Ends(n, limit) > 0 {
		return TextOfEnds(src, l)
	}
	var b strings.Builder
	b.WriteByte('{')
	writeElements(&b, src, l, 0, n)
	b.WriteByte('}')
	return b.String()
}

// Ends returns how many of n elements Text prints at each end, or zero if it prints all.
func Ends(n, limit int) int {
	if limit > 0 && n > limit && n > 2*textEdge {
		return textEdge
	}
	return 0
}

// TextOfEnds is Text of more elements than it prints; l needs to have but those that it does.
func TextOfEnds(src unsafe.Pointer, l ai.Layout) string {
	n := l.Count()
	var b strings.Builder
	b.WriteByte('{')
	writeElements(&b, src, l, 0, textEdge)
	b.WriteString(", ..., ")
	writeElements(&b, src, l, n-textEdge, n)
	b.WriteByte('}')
	return b.String()
}

func writeElements(b *strings.Builder, src unsafe.Pointer, l ai.Layout, from, to int) {
	for i := from; i < to; i++ {
		if i > from {
			b.WriteString(", ")
			if i%textPerLine == 0 && from == 0 {
				b.WriteByte('\n')
			}
		}
		b.WriteString(load(unsafe.Add(src, Offset(l, i)), l.Type).String())
	}
}

// Offset returns where an element is, counted in C order, relative to element zero.
func Offset(l ai.Layout, index int) int {
	at := 0
	for d := len(l.Shape) - 1; d >= 0; d-- {
		at += index % l.Shape[d] * l.Strides[d]
		index /= l.Shape[d]
	}
	return at
}
