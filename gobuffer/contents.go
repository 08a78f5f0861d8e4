package gobuffer

import (
	"fmt"
	"math"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/elements"
)

// leastCapacity is what the first Append reserves, as HAMR does.
const leastCapacity = 8

// Reserve makes room for at least n elements. If value is not nil, room that is
// newly taken holds it. Contents and size stay.
func (a *Array) Reserve(n int, value *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	pattern, err := a.pattern(value)
	if err != nil {
		return err
	}
	if err := a.checkCount(n); err != nil {
		return err
	}
	if n <= a.room && a.ownsRoom() {
		return nil
	}
	return a.grow(max(n, a.Size()), a.Size(), pattern)
}

// Resize makes the buffer hold n elements in one dimension. Elements in front
// are kept in C order; new ones hold value, or are not initialised if value is
// nil.
func (a *Array) Resize(n int, value *Array) error { return a.ResizeShape([]int{n}, value) }

// ResizeShape is Resize to a shape of any number of dimensions.
func (a *Array) ResizeShape(shape []int, value *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	layout, err := arrayiface.NewLayout(a.here.layout.Type, shape, nil)
	if err != nil {
		return err
	}
	pattern, err := a.pattern(value)
	if err != nil {
		return err
	}
	old, n := a.Size(), layout.Count()
	if n > a.room || !a.here.layout.ContiguousC() || (n > old && !a.ownsRoom()) {
		if err := a.grow(n, min(old, n), pattern); err != nil {
			return err
		}
	} else if n > old && pattern != nil {
		if err := a.runtime.fillElements(a.elements(old, n), pattern, a.order()); err != nil {
			return err
		}
	}
	a.here.layout = layout
	return nil
}

// ownsRoom reports whether the elements behind the last one are this buffer's
// to write.
func (a *Array) ownsRoom() bool {
	return a.here.memory != nil && a.here.memory.owned && !a.fixed && a.here.layout.ContiguousC()
}

func (a *Array) checkCount(n int) error {
	if n < 0 {
		return valueError("n", n, "a count of zero or more")
	}
	if n > math.MaxInt64/2/max(a.here.layout.ItemSize(), 1) {
		return valueError("n", n, "a count whose bytes fit in 62 bits")
	}
	return nil
}

// grow moves the first keep elements to new memory for n elements, the rest of
// which holds pattern if there is one. The layout becomes one-dimensional.
func (a *Array) grow(n, keep int, pattern []byte) error {
	flat, err := arrayiface.NewLayout(a.here.layout.Type, []int{n}, nil)
	if err != nil {
		return err
	}
	m, err := a.runtime.Allocate(a.options.Allocator, a.options.Device, flat.NBytes(), a.options.Stream, false)
	if err != nil {
		return err
	}
	next := newArray(a.runtime, a.options, m, flat)
	kept, err := a.here.layout.WithType(flat.Type)
	if err == nil {
		err = a.moveInto(next, keep, pattern)
	}
	if err != nil {
		next.Close()
		return err
	}
	old := a.here.memory
	*a = *next
	a.here.layout = kept
	if old != nil {
		return old.Release()
	}
	return nil
}

func (a *Array) moveInto(next *Array, keep int, pattern []byte) error {
	if pattern != nil {
		if err := a.runtime.fillElements(next.elements(keep, next.room), pattern, a.order()); err != nil {
			return err
		}
	}
	if keep == 0 {
		return nil
	}
	from, err := a.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	return a.runtime.copyElements(next.elements(0, keep), from.elements(0, keep), a.order())
}

// flat returns the elements in C order in one dimension: a view where they lie
// so already, else a copy by the same allocator.
func (a *Array) flat() (*Array, error) {
	if !a.here.layout.ContiguousC() {
		return a.copyTo(a.options, a.here.layout.Type, []int{a.Size()})
	}
	v := *a
	layout, err := a.here.layout.Reshape([]int{a.Size()})
	if err != nil {
		return nil, err
	}
	v.here.layout = layout
	if v.here.memory != nil {
		v.here.memory.Retain()
	}
	return &v, nil
}

// elements is the run [start, stop) of a contiguous buffer, which may lie beyond
// its size but not beyond its room.
func (a *Array) elements(start, stop int) piece {
	size := a.here.layout.ItemSize()
	return piece{a.here.memory, offset(a.here.address, start*size),
		arrayiface.Layout{Type: a.here.layout.Type, Shape: []int{stop - start}, Strides: []int{size}}}
}

// Append adds the elements of b, in C order and converted, behind the last one.
// The capacity doubles, from 8 on. b may be the buffer itself or a view of it.
func (a *Array) Append(b *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	size, more := a.Size(), b.Size()
	if more == 0 {
		return nil
	}
	if size > math.MaxInt-more {
		return valueError("size", fmt.Sprintf("%d + %d", size, more), "a sum that fits in 63 bits")
	}
	// The view keeps b's elements alive while a moves to new memory.
	from, err := b.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	need := size + more
	if need > a.room || !a.ownsRoom() {
		room := max(a.room, leastCapacity)
		for room < need {
			if room > math.MaxInt/2 {
				room = need
				break
			}
			room *= 2
		}
		if err := a.checkCount(room); err != nil {
			return err
		}
		if err := a.grow(room, size, nil); err != nil {
			return err
		}
	}
	layout, err := arrayiface.NewLayout(a.here.layout.Type, []int{need}, nil)
	if err != nil {
		return err
	}
	if err := a.runtime.copyElements(a.elements(size, need), from.here, a.order()); err != nil {
		return err
	}
	a.here.layout = layout
	return nil
}

// Assign makes the contents and shape those of b, converted. Allocator, owner,
// stream and mode stay. Elements are written in place where they fit.
func (a *Array) Assign(b *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	layout, err := arrayiface.NewLayout(a.here.layout.Type, b.here.layout.Shape, nil)
	if err != nil {
		return err
	}
	if sameShape(a.here.layout.Shape, layout.Shape) {
		return a.runtime.copyElements(a.here, b.here, a.order())
	}
	n := layout.Count()
	if n <= a.room && a.here.layout.ContiguousC() && (n <= a.Size() || a.ownsRoom()) {
		if err := a.runtime.copyElements(piece{a.here.memory, a.here.address, layout}, b.here, a.order()); err != nil {
			return err
		}
		a.here.layout = layout
		return nil
	}
	next, err := b.copyTo(a.options, a.here.layout.Type, b.here.layout.Shape)
	if err != nil {
		return err
	}
	old := a.here.memory
	*a = *next
	if old != nil {
		return old.Release()
	}
	return nil
}

// Set writes n elements of b, from start on, to the elements of a from at on.
// Both count in C order; the elements are converted.
func (a *Array) Set(at int, b *Array, start, n int) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	if err := checkRun("at", at, n, a.Size()); err != nil {
		return err
	}
	if err := checkRun("start", start, n, b.Size()); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n == a.Size() && n == b.Size() && sameShape(a.here.layout.Shape, b.here.layout.Shape) {
		return a.runtime.copyElements(a.here, b.here, a.order())
	}
	from, err := b.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	if a.here.layout.ContiguousC() {
		return a.runtime.copyElements(a.elements(at, at+n), from.elements(start, start+n), a.order())
	}
	if len(a.here.layout.Shape) == 1 {
		part, err := a.Slice(0, at, at+n, 1)
		if err != nil {
			return err
		}
		defer part.Close()
		return a.runtime.copyElements(part.here, from.elements(start, start+n), a.order())
	}
	return a.setScattered(at, from, start, n)
}

// setScattered writes a run of C order into a buffer whose elements do not lie
// in C order, through a copy that has them so.
func (a *Array) setScattered(at int, from *Array, start, n int) error {
	whole, err := a.copyTo(a.options, a.here.layout.Type, a.here.layout.Shape)
	if err != nil {
		return err
	}
	defer whole.Close()
	o := a.order()
	if err := a.runtime.copyElements(whole.elements(at, at+n), from.elements(start, start+n), o); err != nil {
		return err
	}
	return a.runtime.copyElements(a.here, whole.here, o)
}

// Write makes every element of a the one that b has at the same place, after
// broadcasting b to a's shape.
func (a *Array) Write(b *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	layout, err := b.here.layout.Broadcast(a.here.layout.Shape)
	if err != nil {
		return err
	}
	return a.runtime.copyElements(a.here, piece{b.here.memory, b.here.address, layout}, a.order())
}

// Fill sets every element to value, converted.
func (a *Array) Fill(value *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	pattern, err := a.pattern(value)
	if err != nil {
		return err
	}
	return a.runtime.fillElements(a.here, pattern, a.order())
}

// Copy returns a new buffer with the same elements in C order, converted to t,
// by the allocator and on the device that o names. backends.Same as allocator
// stands for a's own.
func (a *Array) Copy(o Options, t arrayiface.ElementType) (*Array, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if o.Allocator == backends.Same {
		o.Allocator = a.options.Allocator
		if o.Device == backends.HostDevice {
			o.Device = a.options.Device
		}
	}
	return a.copyTo(o, t, a.here.layout.Shape)
}

func (a *Array) copyTo(o Options, t arrayiface.ElementType, shape []int) (*Array, error) {
	next, err := a.runtime.NewArray(t, shape, o)
	if err != nil {
		return nil, err
	}
	to := next.here
	if !sameShape(shape, a.here.layout.Shape) {
		if to.layout, err = to.layout.Reshape(a.here.layout.Shape); err != nil {
			next.Close()
			return nil, err
		}
	}
	if err := a.runtime.copyElements(to, a.here, next.order()); err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// Move takes the contents to memory of another allocator or device. It does
// nothing if they are there already.
func (a *Array) Move(to backends.Allocator, device int) error {
	if err := a.check(); err != nil {
		return err
	}
	b, err := a.runtime.Backend(to)
	if err != nil {
		return err
	}
	if device, err = a.runtime.checkDevice(b, to, device); err != nil {
		return err
	}
	if to == a.options.Allocator && device == a.options.Device {
		return nil
	}
	o := a.options
	o.Allocator, o.Device = to, device
	next, err := a.copyTo(o, a.here.layout.Type, a.here.layout.Shape)
	if err != nil {
		return err
	}
	old := a.here.memory
	*a = *next
	if old != nil {
		return old.Release()
	}
	return nil
}

// Text returns the elements as HAMR prints them, shortened if there are more
// than limit; zero is no limit.
func (a *Array) Text(limit int) (string, error) {
	if err := a.check(); err != nil {
		return "", err
	}
	if a.Size() == 0 {
		return elements.Text(nil, a.here.layout, limit), nil
	}
	o := a.order()
	o.transfer = Sync
	host, free, err := a.runtime.onHost(a.here, o, true)
	if err != nil {
		return "", err
	}
	defer free()
	return elements.Text(host.pointer(), host.layout, limit), nil
}

// pattern returns the bytes of one element that value, which has one element,
// stands for. It fails if the buffer's type cannot hold it.
func (a *Array) pattern(value *Array) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	if err := value.check(); err != nil {
		return nil, err
	}
	if value.Size() != 1 {
		return nil, valueError("value", fmt.Sprintf("an array of %d elements", value.Size()), "a single value")
	}
	o := order{value.options.Stream, Sync}
	host, free, err := a.runtime.onHost(value.here, o, true)
	if err != nil {
		return nil, err
	}
	defer free()
	return patternOf(a.here.layout.Type, Value{host.layout.Type, host.pointer()})
}

// patternOf returns the bytes of one element of type t that value stands for.
func patternOf(t arrayiface.ElementType, value Value) ([]byte, error) {
	if err := elements.Representable(t, value.Pointer, value.Type); err != nil {
		return nil, err
	}
	bytes, n, err := elements.Pattern(t, value.Pointer, value.Type)
	if err != nil {
		return nil, err
	}
	return bytes[:n], nil
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func checkRun(name string, start, n, size int) error {
	if n < 0 {
		return valueError("n", n, "a count of zero or more")
	}
	if start < 0 || start > size {
		return indexError(name, start, fmt.Sprintf("0 … %d", size))
	}
	if n > size-start {
		return indexError("n", n, fmt.Sprintf("at most %d from %s=%d on", size-start, name, start))
	}
	return nil
}
