package bridge

import (
	"fmt"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// Create makes the memory that d asks for, filled with the element at value if that is not nil, and completes d.
func Create(d *Descriptor, value unsafe.Pointer, valueElement int32) (err error) {
	defer Guard(&err)
	t := arrayiface.ElementType(d.Element)
	count, err := arrayiface.CountElements(t, d.borrowedShape())
	if err != nil {
		return err
	}
	m, err := Runtime.NewElements(t, count, d.Options(),
		gobuffer.Value{Type: arrayiface.ElementType(valueElement), Pointer: value})
	if err != nil {
		return err
	}
	d.describeNew(m, t, count)
	return nil
}

// CreateAtOnce is Create without a value where that waits for nobody; else it reports false, and has done nothing.
func CreateAtOnce(d *Descriptor) (done bool) {
	defer otherwise(&done)
	t := arrayiface.ElementType(d.Element)
	count, err := arrayiface.CountElements(t, d.borrowedShape())
	if err != nil {
		return false
	}
	m := Runtime.NewElementsAtOnce(t, count, d.Options())
	if m == nil {
		return false
	}
	d.describeNew(m, t, count)
	return true
}

// otherwise makes a panic one more reason to call what tells of it.
func otherwise(done *bool) {
	if recover() != nil {
		*done = false
	}
}

// describeNew makes d what it asks for, in memory m, of which it gets a token.
func (d *Descriptor) describeNew(m *gobuffer.Memory, t arrayiface.ElementType, count int) {
	d.hold(m)
	d.Pointer, d.Capacity, d.Device = d.Base, int64(count), int32(m.Region().Device)
	if a := int32(m.Region().Allocator); a != d.Allocator {
		d.Allocator, d.StreamOf = a, d.Allocator
	}
	d.setFlags(false)
	if m.Grows() {
		d.Flags |= growsFlag
	}
	arrayiface.PutCStrides(d.borrowedStrides(), d.borrowedShape(), t.Size())
}

// Adopt makes d.Memory a reference to existing memory: foreign memory whose owner hears of its release, or, if released
// is nil, memory from d.Allocator that is freed here from now on.
func Adopt(d *Descriptor, released func()) (err error) {
	defer Guard(&err)
	if err := d.locate(); err != nil {
		return err
	}
	m, err := d.adopt(released)
	if err != nil {
		return err
	}
	d.Memory = tokens.put(m)
	return nil
}

// adopt makes memory of what locate has found, and completes d but for the token.
func (d *Descriptor) adopt(released func()) (m *gobuffer.Memory, err error) {
	if released == nil && d.Base == 0 {
		// Without elements there is no span, but there is a block to free.
		d.Base = d.Pointer
	}
	at := backends.Region{Address: backends.Address(d.Base), Allocator: backends.Allocator(d.Allocator),
		Device: int(d.Device)}
	if released != nil {
		m, err = Runtime.Adopt(at, int(d.Size), backends.Stream(d.Stream), released)
	} else {
		m, err = Runtime.TakeOver(at, int(d.Size), backends.Stream(d.Stream))
	}
	if err != nil {
		return nil, err
	}
	d.Device = int32(m.Region().Device)
	d.setFlags(d.Flags&readOnlyFlag != 0)
	d.Marks = marksOf(m)
	return m, nil
}

// locate sets where the memory that the elements touch starts and ends.
func (d *Descriptor) locate() error {
	layout, err := arrayiface.BorrowLayout(arrayiface.ElementType(d.Element), d.borrowedShape(), d.borrowedStrides())
	if err != nil {
		return err
	}
	low, high := layout.Span()
	d.Capacity = int64(layout.Count())
	if high == low {
		return nil
	}
	if d.Pointer == 0 {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "data",
			Value: fmt.Sprintf("NULL for %d bytes", high-low), Accepted: "the address of the elements"}
	}
	start, end := d.Pointer+uint64(low), d.Pointer+uint64(high)
	if (low < 0 && start-1 >= d.Pointer) || end < d.Pointer {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "data",
			Value:    fmt.Sprintf("%#x, and the strides reach outside the address space", d.Pointer),
			Accepted: "memory that exists"}
	}
	d.Base, d.Size = start, uint64(high-low)
	return nil
}

// Leave makes everybody who uses the memory that token stands for, and its release, run
// after what a stream holds now, see gobuffer.Memory.
func Leave(token uint64, s backends.Stream) error { return leave(token, s, (*gobuffer.Memory).Leave) }

// ReleaseAfter is Leave where the stream may have ended.
func ReleaseAfter(token uint64, s backends.Stream) error {
	return leave(token, s, (*gobuffer.Memory).LeaveLate)
}

func leave(token uint64, s backends.Stream, by func(*gobuffer.Memory, backends.Stream) error) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	m, err := tokens.get(token)
	if err != nil {
		return err
	}
	err = by(m, s)
	if released := m.Release(); err == nil {
		err = released
	}
	return err
}

// TellLater is Runtime.TellLater, for destructors.
func TellLater(err error) error { return Runtime.TellLater(err) }

// ReleaseAtOnce is Release where that waits for nobody; else it reports false, and the token is what it was.
func ReleaseAtOnce(token uint64) (done bool) {
	defer otherwise(&done)
	defer Calls.Leave(Calls.Enter())
	return tokens.release(token)
}

// Release drops the reference that token stands for.
func Release(token uint64) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	m, err := tokens.take(token)
	if err != nil {
		return err
	}
	return m.Release()
}
