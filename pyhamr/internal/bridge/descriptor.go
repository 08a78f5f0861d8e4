// Package bridge keeps what Python holds of the Go core: tokens for memory,
// descriptions of arrays in C structs, and errors taken apart; and has the bodies of all
// that the two interfaces offer: gopy's (package pyhamr) and C's (package cabi).
package bridge

import (
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// Descriptor is hamr_array of hamr/functions.h, field by field; package cabi asserts that the layouts agree.
type Descriptor struct {
	Memory    uint64
	Base      uint64
	Size      uint64
	Pointer   uint64
	Capacity  int64
	Stream    uint64
	Marks     uint64
	Allocator int32
	Device    int32
	Element   int32
	Transfer  int32
	Flags     uint32
	NDim      int32
	StreamOf  int32
	Holder    uint32
	Shape     *int64
	Strides   *int64
}

// The flags of hamr/functions.h.
const (
	readOnlyFlag   = 1
	reachableShift = 1 // the first space's flag; the others follow
	reachableFlags = (mappedFlag - 1) &^ readOnlyFlag
	mappedFlag     = 1 << 16
	keptFlag       = 1 << 17
	growsFlag      = 1 << 18
	soleFlag       = 1 << 19
	orPageableFlag = 1 << 20
	promptFlag     = 1 << 21 // no more than a slice: then a *BusyError
	inOrderFlag    = 1 << 22 // accesses give elements in C order
	lentFlag       = 1 << 23 // of the store's calls: a token keeps the elements that are described
	privateFlag    = 1 << 24 // of GetObject: nobody else sees what is written
)

// borrowedShape is d's own memory: valid during the call.
func (d *Descriptor) borrowedShape() []int {
	return unsafe.Slice((*int)(unsafe.Pointer(d.Shape)), d.NDim)
}

func (d *Descriptor) borrowedStrides() []int {
	return unsafe.Slice((*int)(unsafe.Pointer(d.Strides)), d.NDim)
}

// Layout returns type, shape and strides, checked.
func (d *Descriptor) Layout() (arrayiface.Layout, error) {
	return arrayiface.NewLayout(arrayiface.ElementType(d.Element), d.borrowedShape(), d.borrowedStrides())
}

// Options returns where new memory is to come from.
func (d *Descriptor) Options() gobuffer.Options {
	return gobuffer.Options{
		Allocator: backends.Allocator(d.Allocator),
		Device:    int(d.Device),
		Stream:    backends.Stream(d.Stream),
		StreamOf:  backends.Allocator(d.StreamOf),
		Transfer:  gobuffer.Transfer(d.Transfer),

		OrPageable: d.Flags&orPageableFlag != 0,
		Tag:        tagFor(backends.Allocator(d.Allocator)),
	}
}

// Array returns the array that d describes, with a reference of its own to the
// memory; the caller closes it before Python lets go of the memory and the stream.
func (d *Descriptor) Array() (*gobuffer.Array, error) {
	layout, err := d.Layout()
	if err != nil {
		return nil, err
	}
	a := new(gobuffer.Array)
	return a, d.view(a, layout)
}

// borrowed is Array for the length of a call that keeps neither shape nor strides.
func (d *Descriptor) borrowed() (*gobuffer.Array, error) {
	a := new(gobuffer.Array)
	return a, d.borrow(a)
}

// borrow makes a, which is the zero value, what borrowed returns.
func (d *Descriptor) borrow(a *gobuffer.Array) error {
	layout, err := arrayiface.BorrowLayout(arrayiface.ElementType(d.Element), d.borrowedShape(), d.borrowedStrides())
	if err != nil {
		return err
	}
	return d.view(a, layout)
}

// view makes a the array that d describes.
func (d *Descriptor) view(a *gobuffer.Array, layout arrayiface.Layout) error {
	m, err := d.memory()
	if err != nil {
		return err
	}
	readOnly := d.Flags&readOnlyFlag != 0
	gobuffer.ViewIn(a, m, backends.Address(d.Pointer), layout, int(d.Capacity), readOnly, d.Options())
	a.Lent()
	if d.Holder != 0 {
		a.HeldBy(d.Holder)
	}
	if d.Flags&(growsFlag|soleFlag) != 0 {
		a.Growing(d.Flags&growsFlag != 0, d.Flags&soleFlag != 0)
	}
	if d.Flags&inOrderFlag != 0 {
		a.InOrder()
	}
	if d.Flags&keptFlag != 0 {
		return a.Cached(true)
	}
	return nil
}

// memory returns a new reference. Token 0 is memory that Python keeps alive
// during the call, such as a number's bytes, or no memory at all.
func (d *Descriptor) memory() (*gobuffer.Memory, error) {
	if d.Memory != 0 {
		return tokens.get(d.Memory)
	}
	at := backends.Region{Address: backends.Address(d.Base), Allocator: backends.Allocator(d.Allocator),
		Device: int(d.Device)}
	return Runtime.Adopt(at, int(d.Size), backends.Stream(d.Stream), nil)
}

// Store describes a in d. before is what d's source described: if the memory is still the same its token stays, else a
// new one is made, which Python owns. d.Shape and d.Strides have room for 64 entries.
func (d *Descriptor) Store(a *gobuffer.Array, before *Descriptor) {
	d.Memory, d.Base, d.Size, d.Marks = 0, 0, 0, 0
	m, o := a.Memory(), a.Options()
	if m != nil && (m.Owned() || m.Size() > 0) {
		if token := before.tokenOf(m); token != 0 {
			d.Memory, d.Base, d.Size, d.Marks = token, before.Base, uint64(m.Size()), before.Marks
		} else {
			d.hold(m.Retain())
		}
	}
	d.Stream, d.StreamOf, d.Transfer = uint64(o.Stream), int32(o.StreamOf), int32(o.Transfer)
	d.Allocator, d.Device, d.Holder = int32(o.Allocator), int32(o.Device), a.Holder()
	d.place(uint64(a.Address()), a.Capacity(), a.Layout(), a.ReadOnly(), m)
	if a.Grows() {
		d.Flags |= growsFlag
	}
}

// storeWritten is Store of an array that before describes, and of which only elements have changed.
func (d *Descriptor) storeWritten(a *gobuffer.Array, before *Descriptor) {
	size, shape, strides := a.Memory().Size(), d.Shape, d.Strides
	if before.Memory == 0 || size == 0 {
		d.Store(a, before)
		return
	}
	*d = *before
	d.Size, d.Shape, d.Strides = uint64(size), shape, strides
	d.Flags &= reachableFlags | readOnlyFlag | mappedFlag | growsFlag
	copy(unsafe.Slice(shape, d.NDim), unsafe.Slice(before.Shape, d.NDim))
	copy(unsafe.Slice(strides, d.NDim), unsafe.Slice(before.Strides, d.NDim))
}

// tokenOf returns d's token if it stands for m, else 0. d may be nil.
func (d *Descriptor) tokenOf(m *gobuffer.Memory) uint64 {
	if d == nil || d.Memory == 0 {
		return 0
	}
	mine, err := tokens.get(d.Memory)
	if err != nil {
		return 0
	}
	defer mine.Release()
	if mine != m {
		return 0
	}
	return d.Memory
}

// StoreHandle describes h, which it detaches, in d and gives Python a token for its
// memory unless that is the one before has.
func (d *Descriptor) StoreHandle(h *gobuffer.Handle, before *Descriptor) error {
	m := h.Detach()
	d.describe(h, m, before)
	if m == nil {
		return nil
	}
	return m.Release()
}

// describe makes d what h is, whose memory is m.
func (d *Descriptor) describe(h *gobuffer.Handle, m *gobuffer.Memory, before *Descriptor) {
	d.Stream, d.StreamOf, d.Transfer = uint64(h.Stream()), before.StreamOf, before.Transfer
	d.Allocator, d.Device, d.Holder = before.Allocator, before.Device, before.Holder
	if holder := h.Holder(); holder != 0 {
		d.Holder = holder
	}
	switch {
	case m != nil && h.Temporary():
		d.hold(m.Retain())
		d.Allocator, d.Device = int32(m.Region().Allocator), int32(m.Region().Device)
	case m != nil && m.Mapped() && before.tokenOf(m) == 0:
		d.hold(m.Retain())
	default:
		d.Memory, d.Base, d.Size, d.Marks = before.Memory, before.Base, before.Size, before.Marks
	}
	d.place(uint64(h.Address()), h.Layout().Count(), h.Layout(), h.ReadOnly(), m)
	if h.Kept() {
		d.Flags |= keptFlag
	}
}

func (d *Descriptor) place(pointer uint64, capacity int, layout arrayiface.Layout, readOnly bool, m *gobuffer.Memory) {
	d.Pointer, d.Capacity, d.Element = pointer, int64(capacity), int32(layout.Type)
	d.setFlags(readOnly)
	if m != nil && m.Mapped() {
		// The allocator's memory, where the host alone has it.
		d.Flags = d.Flags&readOnlyFlag | 1<<reachableShift | mappedFlag
	}
	d.NDim = int32(layout.NDim())
	copy(unsafe.Slice((*int)(unsafe.Pointer(d.Shape)), layout.NDim()), layout.Shape)
	copy(unsafe.Slice((*int)(unsafe.Pointer(d.Strides)), layout.NDim()), layout.Strides)
}

func (d *Descriptor) setFlags(readOnly bool) {
	d.Flags = uint32(Reach(backends.Allocator(d.Allocator))) << reachableShift
	if readOnly {
		d.Flags |= readOnlyFlag
	}
}

var reach = func() (table [32]uint8) {
	for _, a := range backends.Allocators() {
		for _, s := range backends.Spaces() {
			if a.ReachableFrom(s) {
				table[a] |= 1 << s
			}
		}
	}
	return table
}()

// Reach has a bit for each space that reaches an allocator's memory in place.
func Reach(a backends.Allocator) int {
	if a < 0 || int(a) >= len(reach) {
		return 0
	}
	return int(reach[a])
}

// hold makes d describe m, of which it gets a token.
func (d *Descriptor) hold(m *gobuffer.Memory) {
	d.Memory = tokens.put(m)
	d.Base, d.Size = uint64(m.Region().Address), uint64(m.Size())
	d.Marks = marksOf(m)
}

// marksOf is where C reads whether work is pending on m; a device may be reading host
// memory, too. The token keeps m alive; Go's collector never moves what is on the heap,
// and pinning m for every array would cost as much as all the rest of adopting it.
func marksOf(m *gobuffer.Memory) uint64 {
	if m.Asynchronous() {
		announceDevices()
	}
	return uint64(uintptr(unsafe.Pointer(m.Marks())))
}
