package gobuffer

import (
	"context"
	"runtime"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
)

// Element is a Go type that a buffer can hold.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		float32 | float64 | complex64 | complex128
}

// TypeOf returns the element type of T.
func TypeOf[T Element]() arrayiface.ElementType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return arrayiface.Bool
	case int8:
		return arrayiface.Int8
	case int16:
		return arrayiface.Int16
	case int32:
		return arrayiface.Int32
	case int64:
		return arrayiface.Int64
	case uint8:
		return arrayiface.Uint8
	case uint16:
		return arrayiface.Uint16
	case uint32:
		return arrayiface.Uint32
	case uint64:
		return arrayiface.Uint64
	case float32:
		return arrayiface.Float32
	case float64:
		return arrayiface.Float64
	case complex64:
		return arrayiface.Complex64
	}
	return arrayiface.Complex128
}

// Buffer is an Array whose elements are of type T. Array's methods that take an
// *Array accept another Buffer's Array field, of any type, and convert.
type Buffer[T Element] struct {
	*Array
}

// New returns a buffer of n uninitialised elements from allocator a, on the
// first device where a has devices. The caller closes it.
func New[T Element](a backends.Allocator, n int) (*Buffer[T], error) {
	return NewWith[T](Options{Allocator: a, Transfer: SyncHost}, n)
}

// NewOn is New on a given device.
func NewOn[T Element](device int, a backends.Allocator, n int) (*Buffer[T], error) {
	return NewWith[T](Options{Allocator: a, Device: device, Transfer: SyncHost}, n)
}

// NewWith is New with every choice given.
func NewWith[T Element](o Options, n int) (*Buffer[T], error) {
	r, err := Default()
	if err != nil {
		return nil, err
	}
	a, err := r.NewArray(TypeOf[T](), []int{n}, o)
	if err != nil {
		return nil, err
	}
	return &Buffer[T]{a}, nil
}

// From returns a buffer from allocator a that holds a copy of values.
func From[T Element](a backends.Allocator, values []T) (*Buffer[T], error) {
	b, err := New[T](a, len(values))
	if err != nil {
		return nil, err
	}
	if err := b.Put(0, values); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Typed sees a as a Buffer of T; it shares a, and is an error if the types
// differ.
func Typed[T Element](a *Array) (*Buffer[T], error) {
	if t := TypeOf[T](); a.Type() != t {
		return nil, typeError("type", t, a.Type().String())
	}
	return &Buffer[T]{a}, nil
}

// onGoHeap wraps values, which the caller has pinned for as long as the result
// is used.
func onGoHeap[T Element](r *Runtime, values []T) (*Array, error) {
	layout, err := arrayiface.NewLayout(TypeOf[T](), []int{len(values)}, nil)
	if err != nil {
		return nil, err
	}
	at := backends.Region{Allocator: backends.Malloc, Device: backends.HostDevice,
		Address: backends.Address(uintptr(unsafe.Pointer(unsafe.SliceData(values))))}
	m, err := r.Adopt(at, layout.NBytes(), 0, nil)
	if err != nil {
		return nil, err
	}
	return View(m, at.Address, layout, len(values), false, Options{Allocator: backends.Malloc, Device: backends.HostDevice, Transfer: Sync}), nil
}

// Put writes values to the elements from index at on. It returns after the
// values were read.
func (b *Buffer[T]) Put(at int, values []T) error {
	return b.withSlice(values, func(host *Array) error {
		if err := b.Set(at, host, 0, len(values)); err != nil {
			return err
		}
		return b.Synchronize()
	})
}

// Get reads len(values) elements from index start on into values.
func (b *Buffer[T]) Get(start int, values []T) error {
	return b.withSlice(values, func(host *Array) error {
		return host.Set(0, b.Array, start, len(values))
	})
}

// AppendValues adds values behind the last element.
func (b *Buffer[T]) AppendValues(values ...T) error {
	return b.withSlice(values, func(host *Array) error {
		if err := b.Append(host); err != nil {
			return err
		}
		return b.Synchronize()
	})
}

// FillValue sets every element to value.
func (b *Buffer[T]) FillValue(value T) error {
	return b.withSlice([]T{value}, b.Fill)
}

// ResizeValue is Resize whose new elements hold value.
func (b *Buffer[T]) ResizeValue(n int, value T) error {
	return b.withSlice([]T{value}, func(host *Array) error { return b.Resize(n, host) })
}

func (b *Buffer[T]) withSlice(values []T, use func(*Array) error) error {
	if len(values) == 0 {
		return b.check()
	}
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(values))
	defer pinned.Unpin()
	host, err := onGoHeap(b.runtime, values)
	if err != nil {
		return err
	}
	defer host.Close()
	return use(host)
}

// Slice is the elements of a host-accessible Handle.
type Slice[T Element] struct {
	*Handle
}

// HostAccessible returns the elements where the host can touch them: in place if
// possible, else in a temporary. It fails at once if ctx is done.
func (b *Buffer[T]) HostAccessible(ctx context.Context) (*Slice[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := Typed[T](b.Array); err != nil {
		return nil, err // it was swapped with another type's
	}
	h, err := b.Access(backends.SpaceHost, backends.HostDevice)
	if err != nil {
		return nil, err
	}
	return &Slice[T]{h}, nil
}

// Slice returns the elements as a Go slice, valid until Release. A buffer whose
// elements do not lie in C order has no such slice: it is nil; Copy the buffer
// first.
func (s *Slice[T]) Slice() []T {
	count := s.layout.Count()
	if count == 0 || s.released.Load() || !s.layout.ContiguousC() {
		return nil
	}
	return unsafe.Slice((*T)(hostPointer(s.address)), count)
}
