package main

import (
	"cmp"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"hamr/arrayiface"
)

// A kernelType is an element type that kernels tell apart, or what they only copy.
type kernelType struct {
	words []string // of its name
	kind  string   // of backends.ElementKind
	size  int      // bytes
	part  int      // bytes of what is loaded at once: a complex number's parts are
}

// kernelTypes lists them by kind, then by size. No number of theirs is kept anywhere:
// the kernels and those who launch them are built of the same list.
func kernelTypes() (list []kernelType) {
	types := slices.DeleteFunc(arrayiface.Types(), func(t arrayiface.ElementType) bool { return !t.OnDevices() })
	slices.SortStableFunc(types, func(a, b arrayiface.ElementType) int {
		return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Size(), b.Size()))
	})
	for _, t := range types {
		k := kernelType{size: t.Size(), part: t.Size()}
		switch t.Kind() {
		case arrayiface.KindBool:
			list = append(list, kernelType{words: []string{"boolean"}, kind: "Boolean", size: 1, part: 1})
			continue
		case arrayiface.KindSigned:
			k.words, k.kind = []string{"signed"}, "Signed"
		case arrayiface.KindUnsigned:
			k.words, k.kind = []string{"unsigned"}, "Unsigned"
		case arrayiface.KindFloat:
			k.words, k.kind = []string{"float"}, "Float"
			if t == arrayiface.BFloat16 {
				k.words, k.kind = []string{"brain", "float"}, "BrainFloat"
			}
		case arrayiface.KindComplex:
			k.words, k.kind, k.part = []string{"complex"}, "ComplexNumber", t.Size()/2
		}
		k.words = append(k.words, fmt.Sprint(8*k.size))
		list = append(list, k)
	}
	return append(list, kernelType{words: []string{"opaque", "128"}})
}

// kernelHeader is backends/cuda/kernels/element_types.h.
func kernelHeader(types []kernelType) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n", mark)
	b.WriteString(`
// The types that hamr_convert tells apart. Of a complex source only whether it is zero
// can be asked for; all else is done with its parts. opaque_128 is 16 bytes that are
// only copied.
#pragma once

namespace hamr {

enum element_type : unsigned {
`)
	for _, k := range types {
		fmt.Fprintf(&b, "    %s,\n", strings.Join(k.words, "_"))
	}
	b.WriteString("};\n\n} // namespace hamr\n")
	return b.String()
}

// kernelTable is backends/cuda/element_types.go.
func kernelTable(types []kernelType) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n", mark)
	b.WriteString(`
package cuda

import "hamr/backends"

// kernelType is a type that the kernels tell apart: element_type of
// kernels/element_types.h.
type kernelType uint32

const (
`)
	for i, k := range types {
		b.WriteString(goName(k))
		if i == 0 {
			b.WriteString(" kernelType = iota")
		}
		b.WriteByte('\n')
	}
	b.WriteString(")\n\nvar kernelTypes = map[backends.Element]kernelType{\n")
	for _, k := range types {
		if k.kind != "" {
			fmt.Fprintf(&b, "{Kind: backends.%s, Size: %d}: %s,\n", k.kind, k.size, goName(k))
		}
	}
	b.WriteString("}\n\nvar kernelParts = [...]int{\n")
	for _, k := range types {
		if k.part != 0 {
			fmt.Fprintf(&b, "%s: %d,\n", goName(k), k.part)
		}
	}
	b.WriteString("}\n")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		panic(err) // what is written above is no Go
	}
	return string(text)
}

func goName(k kernelType) string {
	name := "kernel"
	for _, w := range k.words {
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	return name
}
