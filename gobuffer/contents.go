package gobuffer

import (
	"fmt"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/elements"
)

// Assign makes a's contents and shape those of b, converted. Allocator, owner, stream and mode stay. The same number of
// elements is written in place, and everybody who shares the memory sees that. Another number is written in place only
// if nobody shares the memory.
func (a *Array) Assign(b *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	layout, err := arrayiface.NewLayout(a.layout.Type, b.layout.Shape, nil)
	if err != nil {
		return err
	}
	if slices.Equal(a.layout.Shape, layout.Shape) {
		return a.runtime.copyElements(a.all(), b.all(), a.options.Transfer)
	}
	n := layout.Count()
	if a.layout.ContiguousC() && (n == a.layout.Count() || (n <= a.room && a.ownsRoom() && a.has())) {
		if err := a.runtime.copyElements(a.piece(a.address, layout), b.all(), a.options.Transfer); err != nil {
			return err
		}
		a.become(layout)
		return nil
	}
	next, err := b.copyTo(a.runtime, a.options, a.layout.Type)
	if err != nil {
		return err
	}
	return a.replace(next)
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
	if err := checkRun("at", at, n, a.layout.Count()); err != nil {
		return err
	}
	if err := checkRun("start", start, n, b.layout.Count()); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n == a.layout.Count() && n == b.layout.Count() && slices.Equal(a.layout.Shape, b.layout.Shape) {
		return a.runtime.copyElements(a.all(), b.all(), a.options.Transfer)
	}
	from, err := b.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	if a.layout.ContiguousC() {
		return a.runtime.copyElements(a.elements(at, at+n), from.elements(start, start+n), a.options.Transfer)
	}
	to, source := a.all(), from.elements(start, start+n)
	if len(a.layout.Shape) > 1 && to.mayShare(source) {
		// Part of it would be overwritten before it is read.
		part, err := from.Slice(0, start, start+n, 1)
		if err != nil {
			return err
		}
		defer part.Lent().Close()
		own, err := part.copyTo(a.runtime, from.options, from.layout.Type)
		if err != nil {
			return err
		}
		defer own.Close()
		source = own.all()
	}
	return a.runtime.setRun(to, at, source, a.options.Transfer)
}

// setRun writes the elements of src, which lie in C order, to dst from element at on, which do not. It writes whole
// rows at once, and then the parts of the first and the last row.
func (r *Runtime) setRun(dst piece, at int, src piece, t Transfer) error {
	left, row := src.layout.Count(), 1
	for _, n := range dst.layout.Shape[1:] {
		row *= n
	}
	for left > 0 {
		here, before := at/row, at%row
		count, rows := min(left, row-before), left/row
		var part arrayiface.Layout
		var by int
		var err error
		if before == 0 && rows > 0 {
			count = rows * row
			part, by, err = dst.layout.Slice(0, here, here+rows, 1)
		} else {
			part, by, err = dst.layout.Index(0, here)
		}
		if err != nil {
			return err
		}
		from, address := src, offset(dst.address, by)
		to := piece{memory: dst.memory, address: address, layout: part, stream: dst.stream, stop: dst.stop}
		if part.Count() == count {
			from.layout, err = arrayiface.NewLayout(src.layout.Type, part.Shape, nil)
			if err == nil {
				err = r.copyElements(to, from, t)
			}
		} else {
			from.layout.Shape = []int{count}
			err = r.setRun(to, before, from, t)
		}
		if err != nil {
			return err
		}
		at, left = at+count, left-count
		src.address = offset(src.address, count*src.layout.ItemSize())
	}
	return nil
}

// Write makes every element of a the element of b at the same place, after broadcasting b to a's shape. As in NumPy,
// leading dimensions of length 1 that only b has are ignored.
func (a *Array) Write(b *Array) error {
	from, err := a.broadcast(b)
	if err != nil {
		return err
	}
	return a.runtime.copyElements(a.piece(a.address, a.layout), from, a.options.Transfer)
}

// broadcast returns the elements of b that Write writes to a.
func (a *Array) broadcast(b *Array) (piece, error) {
	if err := a.checkWritable(); err != nil {
		return piece{}, err
	}
	if err := b.check(); err != nil {
		return piece{}, err
	}
	layout := b.layout
	for len(layout.Shape) > len(a.layout.Shape) && layout.Shape[0] == 1 {
		layout.Shape, layout.Strides = layout.Shape[1:], layout.Strides[1:]
	}
	if slices.Equal(layout.Shape, a.layout.Shape) {
		return b.piece(b.address, layout), nil
	}
	layout, err := layout.Broadcast(a.layout.Shape)
	if err != nil {
		return piece{}, err
	}
	return b.piece(b.address, layout), nil
}

// Copy returns a new buffer with the same elements in C order, converted to t, by the allocator and on the device of o.
// The caller closes it. backends.Same stands for a's own allocator. If o has a's stream and the copy is on another
// device, where that stream means nothing, the copy uses the default stream.
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
	if o.Stream == a.options.Stream && o.Stream != 0 {
		b, err := a.runtime.Backend(o.Allocator)
		if err != nil {
			return nil, err
		}
		if o.Device, err = backing.Device(b, o.Allocator, o.Device); err != nil {
			return nil, err
		}
		at, err := a.optionsAt(o.Allocator, o.Device)
		if err != nil {
			return nil, err
		}
		o.Stream, o.StreamOf = at.Stream, at.StreamOf
	}
	return a.copyTo(a.runtime, o, t)
}

func (a *Array) copyTo(r *Runtime, o Options, t arrayiface.ElementType) (*Array, error) {
	next, err := r.NewArray(t, a.layout.Shape, o)
	if err != nil {
		return nil, err
	}
	if err := r.copyElements(next.all(), a.all(), o.Transfer); err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// Move moves the contents to memory of another allocator or device. It does nothing if they are there already. Between
// a device and the host the stream is kept; between two devices it cannot be.
func (a *Array) Move(to backends.Allocator, device int) error {
	if err := a.checkChangeable(); err != nil {
		return err
	}
	b, err := a.runtime.Backend(to)
	if err != nil {
		return err
	}
	if device, err = backing.Device(b, to, device); err != nil {
		return err
	}
	if to == a.options.Allocator && device == a.options.Device {
		return nil
	}
	o, err := a.optionsAt(to, device)
	if err != nil {
		return err
	}
	next, err := a.copyTo(a.runtime, o, a.layout.Type)
	if err != nil {
		return err
	}
	return a.replace(next)
}

// Text returns the elements as HAMR prints them, shortened if there are more than limit; zero is no limit.
func (a *Array) Text(limit int) (string, error) {
	if err := a.check(); err != nil {
		return "", err
	}
	if a.layout.Count() == 0 {
		return elements.Text(nil, a.layout, limit), nil
	}
	p, leave, err := a.all().enter(false)
	if err != nil {
		return "", err
	}
	defer leave()
	if ends := elements.Ends(a.layout.Count(), limit); ends > 0 && !p.onHost() {
		return a.runtime.textOfEnds(p, ends)
	}
	host, free, err := a.runtime.onHost(p)
	if err != nil {
		return "", err
	}
	defer free()
	return elements.Text(host.pointer(), host.layout, limit), nil
}

// textOfEnds copies only the elements at both ends to the host.
func (r *Runtime) textOfEnds(p piece, ends int) (string, error) {
	size, count := p.layout.ItemSize(), p.layout.Count()
	layout, err := arrayiface.NewLayout(p.layout.Type, []int{2 * ends}, nil)
	if err != nil {
		return "", err
	}
	m, err := r.Allocate(backends.Malloc, backends.HostDevice, layout.NBytes(), 0, false)
	if err != nil {
		return "", err
	}
	defer m.Release()
	host := piece{memory: m, address: m.region.Address, layout: layout}
	at := func(i int) int {
		if i >= ends {
			i += count - 2*ends
		}
		return elements.Offset(p.layout, i)
	}
	for i, next := 0, 0; i < 2*ends; i = next {
		for next = i + 1; next < 2*ends && at(next) == at(i)+(next-i)*size; next++ {
			continue
		}
		bytes := arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{(next - i) * size}, Strides: []int{1}}
		to, from := piece{memory: m, address: offset(host.address, i*size), layout: bytes}, p
		from.address, from.layout = offset(p.address, at(i)), bytes
		if err := r.copyBytes(to, from, Sync); err != nil {
			return "", err
		}
	}
	return elements.TextOfEnds(host.pointer(), layout), nil
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

// Fill sets every element to value, converted.
func (a *Array) Fill(value *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if value == nil {
		return valueError("value", "nil", "a single value")
	}
	p, err := a.patternOf(value)
	if err != nil {
		return err
	}
	return a.fill(p)
}

// fill is Fill by an array that was checked.
func (a *Array) fill(p *pattern) error {
	return a.runtime.fillElements(a.all(), p.bytes(), a.options.Transfer)
}

// patternOf returns the single element of value as an element of a, or nil if value is nil.
func (a *Array) patternOf(value *Array) (*pattern, error) {
	if value == nil {
		return nil, nil
	}
	if err := value.check(); err != nil {
		return nil, err
	}
	if value.layout.Count() != 1 {
		return nil, valueError("value", fmt.Sprintf("an array of %d elements", value.layout.Count()), "a single value")
	}
	host, free, err := a.runtime.onHost(value.all())
	if err != nil {
		return nil, err
	}
	defer free()
	p := new(pattern)
	return p, p.set(a.layout.Type, Value{host.layout.Type, host.pointer()})
}
