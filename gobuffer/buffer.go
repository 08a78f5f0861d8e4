package gobuffer

import (
	"context"
	"reflect"
	"runtime"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
)

// Element is a Go type that a buffer can hold, or a type defined from one, such as type Kelvin float64. int, uint and
// uintptr are not among them: their sizes differ between machines.
type Element interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

var elementTypes = [...]arrayiface.ElementType{
	reflect.Bool:       arrayiface.Bool,
	reflect.Int8:       arrayiface.Int8,
	reflect.Int16:      arrayiface.Int16,
	reflect.Int32:      arrayiface.Int32,
	reflect.Int64:      arrayiface.Int64,
	reflect.Uint8:      arrayiface.Uint8,
	reflect.Uint16:     arrayiface.Uint16,
	reflect.Uint32:     arrayiface.Uint32,
	reflect.Uint64:     arrayiface.Uint64,
	reflect.Float32:    arrayiface.Float32,
	reflect.Float64:    arrayiface.Float64,
	reflect.Complex64:  arrayiface.Complex64,
	reflect.Complex128: arrayiface.Complex128,
}

// TypeOf returns the element type of T, or of the type that T is defined from.
func TypeOf[T Element]() arrayiface.ElementType {
	return elementTypes[reflect.TypeFor[T]().Kind()]
}

// Buffer is an Array whose elements are of type T. Array's methods that take an *Array accept another Buffer's Array
// field, of any type, and convert.
//
// A Buffer that is nil, the zero value or closed behaves as such an Array: methods that return an error return one that
// is ErrZero or ErrFreed.
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

// From returns a buffer from allocator a that holds a copy of values. Adopt makes one of values themselves.
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

// Typed sees a as a Buffer of T; it shares a, and is an error if the element types differ.
func Typed[T Element](a *Array) (*Buffer[T], error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if t := TypeOf[T](); a.layout.Type != t {
		return nil, typeError("type", t, a.layout.Type.String())
	}
	return &Buffer[T]{a}, nil
}

// onGoHeap wraps values, which the caller has pinned until released is called, or for as long as the result is used.
func onGoHeap[T Element](r *Runtime, values []T, released func()) (*Array, error) {
	layout, err := arrayiface.NewLayout(TypeOf[T](), []int{len(values)}, nil)
	if err != nil {
		return nil, err
	}
	at := backends.Region{Allocator: backends.Malloc, Device: backends.HostDevice,
		Address: backends.Address(uintptr(unsafe.Pointer(unsafe.SliceData(values))))}
	m, err := r.Adopt(at, layout.NBytes(), 0, released)
	if err != nil {
		return nil, err
	}
	return View(m, at.Address, layout, len(values), false,
		Options{Allocator: backends.Malloc, Device: backends.HostDevice, Transfer: Sync}), nil
}

// Put writes values to the elements from index at on. It returns after the values were read.
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
	a := b.array()
	if err := a.checkWritable(); err != nil {
		return err
	}
	p, err := patternFor(a.layout.Type, value)
	if err != nil {
		return err
	}
	return a.fill(&p)
}

// Resize makes the buffer hold n elements in one dimension. Existing elements stay, in C order. New ones are zero,
// unlike New's. If you write them all anyway, b.Array.Resize(n, nil) saves that.
func (b *Buffer[T]) Resize(n int) error {
	var zero T
	return b.ResizeValue(n, zero)
}

// ResizeValue is Resize whose new elements hold value.
func (b *Buffer[T]) ResizeValue(n int, value T) error {
	a := b.array()
	if err := a.checkChangeable(); err != nil {
		return err
	}
	p, err := patternFor(a.layout.Type, value)
	if err != nil {
		return err
	}
	return a.resize([]int{n}, &p)
}

// patternFor is value as an element of type t. t is not T's if the buffer was swapped with one of another type.
func patternFor[T Element](t arrayiface.ElementType, value T) (p pattern, err error) {
	err = p.set(t, Value{TypeOf[T](), unsafe.Pointer(&value)})
	return p, err
}

func (b *Buffer[T]) withSlice(values []T, use func(*Array) error) error {
	a := b.array()
	if err := a.check(); err != nil || len(values) == 0 {
		return err
	}
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(values))
	defer pinned.Unpin()
	host, err := onGoHeap(a.runtime, values, nil)
	if err != nil {
		return err
	}
	defer host.Close()
	return use(host)
}

// Slice is the elements of a host-accessible Handle. On nil and the zero value its methods are as Handle's.
type Slice[T Element] struct {
	*Handle
}

// HostAccessible returns the elements where the host can touch them: in place if
// possible, else in a temporary. It fails at once if ctx is done.
func (b *Buffer[T]) HostAccessible(ctx context.Context) (*Slice[T], error) {
	if _, err := Typed[T](b.array()); err != nil {
		return nil, err // it was swapped with another type's
	}
	if err := over(ctx); err != nil {
		return nil, err
	}
	h, err := b.Access(backends.SpaceHost, backends.HostDevice)
	if err != nil {
		return nil, err
	}
	return &Slice[T]{h}, nil
}

// Slice returns the elements as a Go slice, valid until Release. A buffer whose elements do not lie in C order has no
// such slice: it is nil; Copy the buffer first.
func (s *Slice[T]) Slice() []T {
	h := s.handle()
	if h.check() != nil || h.released.Load() || h.memory == nil || !h.layout.ContiguousC() {
		return nil
	}
	count := h.layout.Count()
	if count == 0 {
		return nil
	}
	return unsafe.Slice((*T)(hostPointer(h.address)), count)
}

// OnHost calls f with the elements as a Go slice, in C order. If f returns nil, the buffer has what f has written. The
// slice is in place if the elements lie so and the host reaches them, else in a temporary. It is valid until f returns.
// See Array.On.
func (b *Buffer[T]) OnHost(ctx context.Context, mode Mode, f func([]T) error) error {
	if _, err := Typed[T](b.array()); err != nil {
		return err // it was swapped with another type's
	}
	if f == nil {
		return errNoFunction
	}
	return b.on(ctx, backends.SpaceHost, backends.HostDevice, request{mode: mode, inOrder: true}, func(h *Handle) error {
		return f((&Slice[T]{h}).Slice())
	})
}
