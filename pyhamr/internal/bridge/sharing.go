package bridge

import (
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer"
)

// openedShares are arrays of other processes' elements that Python has.
var openedShares = newNumbered[*gobuffer.Array](func(uint64) error { return gobuffer.ErrFreed })

// SpareEnds is the address of gobuffer's variable of that name, which never moves.
func SpareEnds() uintptr { return uintptr(unsafe.Pointer(gobuffer.SpareEnds())) }

// The sizes of hamr/functions.h.
const (
	longestFrame     = 4096
	frameDescriptors = 2
)

// Sharing is hamr_sharing of hamr/functions.h, and Opened is hamr_opened_elements, field by field.
type (
	Sharing struct {
		Opened      uint64
		Stored      uint64
		Copying     int32
		ReadOnly    int32
		Copied      int32
		Lent        int32
		Count       int32
		Descriptors [frameDescriptors]int32
		Waits       int32
		Bytes       int64
		Frame       [longestFrame]byte
	}
	Opened struct {
		Token    uint64
		Lease    int32
		Reserved int32
	}
)

// Share makes what other processes open elements by.
func ShareElements(d *Descriptor, s *Sharing) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	take := d.toShare
	if s.Waits != 0 {
		take = d.Array
	}
	source, err := take()
	if err != nil {
		return err
	}
	defer source.Close()
	how := gobuffer.Sharing{Copy: gobuffer.Copying(s.Copying), ReadOnly: s.ReadOnly != 0, Settled: s.Waits == 0}
	switch {
	case s.Stored != 0:
		if how.Descriptor, err = storedDescriptor(s.Stored); err != nil {
			return err
		}
	case s.Opened != 0:
		opened, err := openedShares.get(s.Opened)
		if err != nil {
			return err
		}
		how.Of = opened.Memory()
	}
	made, err := source.Share(how)
	if err != nil {
		return err
	}
	s.Bytes = int64(copy(s.Frame[:], made.Frame()))
	list := made.Descriptors()
	for i, number := range list {
		s.Descriptors[i] = int32(number)
	}
	s.Count, s.Copied, s.ReadOnly, s.Lent = int32(len(list)), bit(made.Copied()), bit(made.ReadOnly()), bit(made.Lent())
	return nil
}

// toShare is Array without a stream, since nothing is waited for.
func (d *Descriptor) toShare() (*gobuffer.Array, error) {
	layout, err := d.Layout()
	if err != nil {
		return nil, err
	}
	o := gobuffer.Options{Allocator: backends.Allocator(d.Allocator), Device: int(d.Device)}
	if layout.Count() == 0 {
		return Runtime.NewArray(layout.Type, layout.Shape, o)
	}
	m, err := tokens.get(d.Memory)
	if err != nil {
		return nil, err
	}
	return gobuffer.View(m, backends.Address(d.Pointer), layout, layout.Count(), d.Flags&readOnlyFlag != 0, o).Lent(), nil
}

func bit(on bool) int32 {
	if on {
		return 1
	}
	return 0
}

// storedDescriptor is that of a sealed object's memory; nil where it lies beside others, or was written to since.
func storedDescriptor(token uint64) (*gobuffer.Descriptor, error) {
	o, err := storeObjects.get(token)
	if err != nil || o.object == nil || o.private != nil {
		return nil, err
	}
	return o.object.Descriptor(), nil
}

// OpenShared opens elements that Share was called for, in whatever process. result describes them, without memory
// unless there are none.
func OpenShared(frame []byte, descriptors []int32, result *Descriptor, opened *Opened) (err error) {
	defer Guard(&err)
	list := make([]int, len(descriptors))
	for i, number := range descriptors {
		list[i] = int(number)
	}
	shareEndings.now()
	a, err := Runtime.OpenShared(frame, list)
	if err != nil {
		return err
	}
	*opened = Opened{Lease: -1}
	m := a.Memory()
	if m == nil || a.Layout().Count() == 0 {
		result.Store(a, nil)
		return a.Close()
	}
	where := a.Allocator()
	if where.Kind() == backends.Pageable {
		where = backends.Malloc // a pickle is to have the elements
	}
	result.Stream, result.StreamOf, result.Transfer = 0, 0, int32(a.Transfer())
	result.Allocator, result.Device = int32(where), int32(a.Owner())
	result.place(uint64(a.Address()), a.Capacity(), a.Layout(), a.ReadOnly(), nil)
	*opened = Opened{Token: openedShares.keep(a), Lease: int32(m.Lease())}
	return nil
}

// EndElements gives opened elements back, which are not used any more. For a device's that waits for the device, and
// nobody waits for it.
func EndElements(token uint64) {
	a, err := openedShares.take(token)
	switch {
	case err != nil:
	case a.Owner() < 0:
		_ = a.Close()
	default:
		shareEndings.aside(openedShare{a})
	}
}

// openedShare is what Python has let go of.
type openedShare struct{ array *gobuffer.Array }

func (o openedShare) end() { _ = o.array.Close() }

// OpenElements describes at result the array that a frame and its descriptors are of.
func OpenElements(frame []byte, descriptors []int, result *Descriptor) (err error) {
	defer Guard(&err)
	shareEndings.now()
	a, err := Runtime.OpenShared(frame, descriptors)
	if err != nil {
		return err
	}
	result.Store(a, nil)
	return a.Close()
}
