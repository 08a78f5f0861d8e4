package gobuffer

import (
	"hamr/arrayiface"
	"hamr/gobuffer/internal/elements"
	"unsafe"
)

// pattern is the bytes of one element.
type pattern struct {
	room [16]byte
	size int
}

// bytes is nil if there is no pattern.
func (p *pattern) bytes() []byte {
	if p == nil {
		return nil
	}
	return p.room[:p.size]
}

// set makes p what value is as an element of type t. It fails if t cannot hold the value.
func (p *pattern) set(t arrayiface.ElementType, value Value) error {
	if t == value.Type && t.Valid() {
		p.size = copy(p.room[:], unsafe.Slice((*byte)(value.Pointer), t.Size()))
		return nil
	}
	if err := elements.Representable(t, value.Pointer, value.Type); err != nil {
		return err
	}
	p.size = t.Size()
	return elements.Convert(unsafe.Pointer(&p.room), t, value.Pointer, value.Type, 1)
}

// Value is one element in host memory; a nil Pointer is no value.
type Value struct {
	Type    arrayiface.ElementType
	Pointer unsafe.Pointer
}
