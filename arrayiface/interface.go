package arrayiface

import (
	"fmt"
	"math"
)

// Interface is a checked array interface: an array in somebody else's memory.
type Interface struct {
	// Address is where element zero lies. It may be 0 if the array has no elements.
	Address  uintptr
	ReadOnly bool
	Layout   Layout
	Version  int
	// HasStream says that the producer named a stream, Stream, on which to
	// wait for its work. Without it there is nothing to wait for.
	HasStream bool
	Stream    uintptr
}

// Fields are the entries of __array_interface__ or __cuda_array_interface__ as the caller found them, converted and
// nothing more. Missing entries and those of another Python type are the caller's to report.
type Fields struct {
	Typestr string
	Shape   []int
	Strides []int // bytes; nil for None or absent

	// HasData says that data is a pair (pointer, read-only) or a buffer object; it is false for None or absent, which mean
	// the object's own buffer.
	HasData bool
	// Address is the pointer, or where the buffer begins.
	Address  uintptr
	ReadOnly bool
	// Offset is the entry offset, in bytes from the beginning of the buffer. It does not apply to a pointer.
	Offset int
	// BufferLength is the length of the buffer in bytes, -1 if data is a pointer or there is no buffer at all.
	BufferLength int

	Version int
	// Masked says that mask is neither absent nor None.
	Masked bool
	// Descr says that descr names the fields of a structure.
	Descr bool

	HasStream bool // stream is neither absent nor None
	Stream    uintptr
}

// ParseFields applies the rules of the array interface, version 3, and of the CUDA array interface, versions 0 to 3,
// also those that NumPy does not check: no mask; a version of 0 or more; no NULL pointer to elements; strides and
// offset that stay inside the buffer, or inside the address space if data is a pointer; a stream other than 0. The
// errors of [ParseTypestr] and [NewLayout] pass through; the others are ValueErrors, whose Key is the entry.
func ParseFields(f Fields) (Interface, error) {
	if f.Version < 0 {
		return Interface{}, valueError("version", fmt.Sprint(f.Version), "must be 0 or more")
	}
	if f.Masked {
		return Interface{}, valueError("mask", "",
			"masked arrays are not supported; pass the data and the mask as two arrays")
	}
	if f.HasStream && f.Stream == 0 {
		return Interface{}, valueError("stream", "0",
			"forbidden, since it does not say which default stream; use 1 for the legacy one, 2 for the per-thread one")
	}
	t, err := ParseTypestr(f.Typestr)
	if err != nil {
		// NumPy, too, reads descr only where typestr says void.
		if f.Descr && len(f.Typestr) > 1 && f.Typestr[1] == 'V' {
			return Interface{}, typeError("typestr", quote(f.Typestr),
				"structured elements are not supported; pass one field, a[name]")
		}
		return Interface{}, err
	}
	l, err := NewLayout(t, f.Shape, f.Strides)
	if err != nil {
		return Interface{}, err
	}
	address, err := f.locate(l)
	if err != nil {
		return Interface{}, err
	}
	return Interface{
		Address: address, ReadOnly: f.ReadOnly, Layout: l, Version: f.Version,
		HasStream: f.HasStream, Stream: f.Stream,
	}, nil
}

// locate finds element zero, and checks that all others are where they may be.
func (f Fields) locate(l Layout) (uintptr, error) {
	low, high := l.Span()
	at := f.Address
	if f.BufferLength >= 0 {
		if f.Offset < 0 || f.Offset > f.BufferLength {
			return 0, valueError("offset", fmt.Sprint(f.Offset), "outside the buffer of %d bytes", f.BufferLength)
		}
		if low < -f.Offset || high > f.BufferLength-f.Offset {
			key, value := f.blame(high - low)
			return 0, valueError(key, value,
				"the array of shape %s reaches bytes %d to %d from offset %d, outside the buffer of %d bytes",
				tuple(f.Shape), low, high, f.Offset, f.BufferLength)
		}
		at += uintptr(f.Offset)
		if at < f.Address {
			return 0, valueError("data", address(f.Address),
				"a buffer of %d bytes does not fit the address space there", f.BufferLength)
		}
	} else if !f.HasData {
		return 0, valueError("data", "", "missing or None, and the object has no buffer of its own")
	}
	if high == 0 {
		return at, nil
	}
	if f.Address == 0 {
		return 0, valueError("data", "0", "a NULL pointer to %d bytes", l.NBytes())
	}
	if uintptr(-low) > at || uintptr(high-1) > math.MaxUint-at {
		return 0, valueError("data", address(f.Address), "bytes %d to %d from there leave the address space", low, high)
	}
	return at, nil
}

// blame picks the entry that puts an array of the given reach outside its
// buffer: the offset if the buffer is large enough.
func (f Fields) blame(reach int) (key, value string) {
	switch {
	case reach <= f.BufferLength:
		return "offset", fmt.Sprint(f.Offset)
	case f.Strides != nil:
		return "strides", tuple(f.Strides)
	default:
		return "shape", tuple(f.Shape)
	}
}
