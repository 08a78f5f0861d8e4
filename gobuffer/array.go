package gobuffer

import (
	"fmt"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
)

// Options say where a new buffer's memory comes from and how it moves. The zero
// value is the C++ allocator; most callers set Allocator.
type Options struct {
	Allocator backends.Allocator
	Device    int // ignored for host memory
	Stream    backends.Stream
	Transfer  Transfer
}

// Array is a growable container of elements of one type. It holds one reference
// to its memory. Methods that only read may run at the same time as each other;
// a method that changes the Array must run alone. After an error the Array is
// as it was before the call.
type Array struct {
	runtime *Runtime
	options Options // what new memory is taken from, and the stream to use
	here    piece   // here.memory is nil while there is no memory
	room    int     // elements that fit without new memory
	fixed   bool    // read-only
	closed  bool
}

// NewArray returns an Array of the given shape whose elements are not
// initialised.
func (r *Runtime) NewArray(t arrayiface.ElementType, shape []int, o Options) (*Array, error) {
	layout, err := arrayiface.NewLayout(t, shape, nil)
	if err != nil {
		return nil, err
	}
	m, err := r.Allocate(o.Allocator, o.Device, layout.NBytes(), o.Stream, false)
	if err != nil {
		return nil, err
	}
	return newArray(r, o, m, layout), nil
}

// Value is one element in host memory; a nil Pointer is no value.
type Value struct {
	Type    arrayiface.ElementType
	Pointer unsafe.Pointer
}

// NewFilledArray is NewArray whose elements hold value, if there is one. A value
// that the type cannot hold is an error.
func (r *Runtime) NewFilledArray(t arrayiface.ElementType, shape []int, o Options, value Value) (*Array, error) {
	a, err := r.NewArray(t, shape, o)
	if err != nil || value.Pointer == nil {
		return a, err
	}
	pattern, err := patternOf(t, value)
	if err == nil {
		err = r.fillElements(a.here, pattern, a.order())
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func newArray(r *Runtime, o Options, m *Memory, layout arrayiface.Layout) *Array {
	o.Device = m.region.Device
	return &Array{runtime: r, options: o, here: piece{m, m.region.Address, layout}, room: layout.Count()}
}

// View returns an Array over memory that already holds its elements, starting
// at address. It takes over one reference to m. room is how many elements fit
// from address on; it matters only if the layout is contiguous.
func View(m *Memory, address backends.Address, layout arrayiface.Layout, room int, readOnly bool, o Options) *Array {
	if count := layout.Count(); room < count || !layout.ContiguousC() {
		room = count
	}
	return &Array{runtime: m.runtime, options: o, here: piece{m, address, layout}, room: room, fixed: readOnly}
}

// Close gives the memory back. Closing twice is harmless.
func (a *Array) Close() error {
	a.closed = true
	return a.drop()
}

// Free gives the memory back and leaves an empty buffer that can grow again,
// with the same allocator, device and stream.
func (a *Array) Free() error {
	if a.closed {
		return ErrFreed
	}
	empty, err := arrayiface.NewLayout(a.here.layout.Type, []int{0}, nil)
	if err != nil {
		return err
	}
	a.here.layout, a.room, a.fixed = empty, 0, false
	return a.drop()
}

func (a *Array) drop() error {
	m := a.here.memory
	a.here.memory, a.here.address = nil, 0
	if m == nil {
		return nil
	}
	return m.Release()
}

// Type returns what one element is.
func (a *Array) Type() arrayiface.ElementType { return a.here.layout.Type }

// Layout returns type, shape and strides in bytes. The caller must not change
// its slices.
func (a *Array) Layout() arrayiface.Layout { return a.here.layout }

// Size returns the number of elements.
func (a *Array) Size() int { return a.here.layout.Count() }

// Capacity returns how many elements fit without new memory.
func (a *Array) Capacity() int { return a.room }

// Address returns where element zero is, in the owner's address space; zero if
// there is no memory.
func (a *Array) Address() backends.Address { return a.here.address }

// Memory returns the memory without a new reference, or nil.
func (a *Array) Memory() *Memory { return a.here.memory }

// Allocator returns where the memory came from, and where new memory will.
func (a *Array) Allocator() backends.Allocator { return a.options.Allocator }

// Owner returns the device that owns the memory, or backends.HostDevice.
func (a *Array) Owner() int { return a.options.Device }

// ReadOnly reports whether the contents must not be written.
func (a *Array) ReadOnly() bool { return a.fixed }

// Stream returns the stream that movements are enqueued on.
func (a *Array) Stream() backends.Stream { return a.options.Stream }

// Transfer returns which movements are waited for.
func (a *Array) Transfer() Transfer { return a.options.Transfer }

// Options returns what new memory would be taken from.
func (a *Array) Options() Options { return a.options }

// SetStream changes the stream and, as in HAMR, the transfer mode with it.
func (a *Array) SetStream(s backends.Stream, t Transfer) { a.options.Stream, a.options.Transfer = s, t }

// SetTransfer changes which movements are waited for.
func (a *Array) SetTransfer(t Transfer) { a.options.Transfer = t }

// Accessible reports whether code in space s reaches the elements in place.
func (a *Array) Accessible(s backends.Space) bool { return a.options.Allocator.ReachableFrom(s) }

// Synchronize waits until no movement of hamr's touches the memory any more and,
// where the allocator's runtime has streams, until the buffer's stream is done.
func (a *Array) Synchronize() error {
	if a.closed {
		return ErrFreed
	}
	m := a.here.memory
	if m == nil {
		return nil
	}
	if err := m.settle(); err != nil {
		return err
	}
	if s, ok := m.backend.(backends.Streams); ok {
		return s.Synchronize(m.region.Device, a.options.Stream)
	}
	return nil
}

func (a *Array) order() order { return order{a.options.Stream, a.options.Transfer} }

func (a *Array) check() error {
	if a.closed {
		return ErrFreed
	}
	return nil
}

func (a *Array) checkWritable() error {
	if a.closed {
		return ErrFreed
	}
	if a.fixed {
		return valueError("buffer", "read-only", "a writable buffer; copy() makes one")
	}
	return nil
}

// Slice returns a view of elements start, start+step, … of dimension dim, in the
// same memory, with count elements along it. The view's own growth never touches
// its neighbours.
func (a *Array) Slice(dim, start, stop, step int) (*Array, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	layout, by, err := a.here.layout.Slice(dim, start, stop, step)
	return a.viewAt(layout, by, err)
}

// Index returns a view of element i of dimension dim, without that dimension.
func (a *Array) Index(dim, i int) (*Array, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	layout, by, err := a.here.layout.Index(dim, i)
	return a.viewAt(layout, by, err)
}

func (a *Array) viewAt(layout arrayiface.Layout, by int, err error) (*Array, error) {
	if err != nil {
		return nil, err
	}
	v := *a
	v.here.layout, v.room = layout, layout.Count()
	if v.here.memory != nil {
		v.here.memory.Retain()
		v.here.address = offset(a.here.address, by)
	}
	return &v, nil
}

// Swap exchanges everything two buffers have, allocator and stream included.
func (a *Array) Swap(b *Array) error {
	if a.closed || b.closed {
		return ErrFreed
	}
	*a, *b = *b, *a
	return nil
}

// String is for messages; Text prints the elements.
func (a *Array) String() string {
	return fmt.Sprintf("buffer of %d %s (allocator %s, owner %d)", a.Size(), a.Type(), a.options.Allocator, a.options.Device)
}
