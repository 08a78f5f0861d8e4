package gobuffer

import (
	"errors"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Options say where a new buffer's memory comes from and how it moves. The zero
// value is the C++ allocator; most callers set Allocator.
type Options struct {
	Allocator backends.Allocator
	Device    int // ignored for host memory
	// Stream belongs to the device or, for host memory, to the device that the buffer will be moved or copied to. Where
	// the backend is told of its end (backends.StreamKeeper), the memory does without it from then on. Any other one must
	// exist while an Array or Handle that names it is used; the release of an Ordered allocator's memory needs it, too.
	Stream backends.Stream
	// StreamOf is an allocator of the runtime that Stream belongs to, where the memory's own does not say: for host memory
	// that came from a device. Any allocator of ordinary host memory leaves it open.
	StreamOf backends.Allocator
	Transfer Transfer
	// Tag is what Runtime.Pause names the memory by, where its allocator has memory that can be paused. Copies have none.
	Tag backends.Tag
	// OrPageable takes ordinary host memory where there is no more page-locked memory to be had: Array.Allocator tells.
	OrPageable bool
}

// Array is a growable container of elements of one type. It holds one reference to its memory. Methods that only read
// may run at the same time as each other; a method that changes the Array must run alone. After an error the Array is
// as it was before the call; only if a device fails in the middle of writing to elements that the Array had already are
// these in doubt. That memory which is no longer needed could not be given back is no error of the operation that
// replaced it: it is traced.
//
// Every method of an Array that is nil, the zero value or closed may be called. Those that return an error return one
// that is ErrZero, or ErrFreed of a closed Array, save that closing again is harmless. The others return their zero
// values: no elements and no memory, which come from backends.None and are owned by backends.HostDevice.
type Array struct {
	runtime *Runtime
	options Options // what new memory is taken from, and the stream to use
	memory  *Memory // nil while there is none
	address backends.Address
	layout  arrayiface.Layout
	room    int  // elements that fit without new memory
	fixed   bool // read-only
	closed  bool
	cached  bool   // see Cached
	where   int    // the device of the stream, plus one, where only the stream can say; 0: not known
	lent    bool   // somebody else holds the memory and the stream for longer
	grows   bool   // whoever else has the memory has none of what it may grow by
	sole    bool   // nobody else has the memory, but for whom it is lent by
	inOrder bool   // see InOrder
	holder  uint32 // the access that the elements are from, or 0: see HeldBy
	stop    *backends.Stop
}

// View returns an Array over memory that already holds its elements, starting at address. It takes over one reference
// to m. room is how many elements fit from address on; it matters only if the layout is contiguous. Without a memory it
// is the zero value.
func View(m *Memory, address backends.Address, layout arrayiface.Layout, room int, readOnly bool, o Options) *Array {
	a := new(Array)
	ViewIn(a, m, address, layout, room, readOnly, o)
	return a
}

// ViewIn is View for who has room for the Array, which is the zero value.
func ViewIn(
	a *Array, m *Memory, address backends.Address, layout arrayiface.Layout, room int, readOnly bool, o Options,
) {
	if m.check() != nil {
		return
	}
	if count := layout.Count(); room < count || !layout.ContiguousC() {
		room = count
	}
	a.runtime, a.options, a.memory, a.address = m.runtime, o, m, address
	a.layout, a.room, a.fixed = layout, room, readOnly
}

// Lent says that somebody else holds a's memory and stream for longer than a is open, as during one call. Closing a
// then orders nothing. It returns a.
func (a *Array) Lent() *Array {
	if a != nil {
		a.lent = true
	}
	return a
}

// HeldBy says that a's elements are those of a handle of AccessMode, by the handle's Holder. Inside that access a may
// use and change them. 0 is no access. It returns a.
func (a *Array) HeldBy(holder uint32) *Array {
	if a != nil {
		a.holder = holder
	}
	return a
}

// InOrder makes a's accesses give elements that follow one another in C order: in a temporary if a's own do not. It
// returns a.
func (a *Array) InOrder() *Array {
	if a != nil {
		a.inOrder = true
	}
	return a
}

// Until makes a's long copies and waits end with backends.ErrStopped when stop asks. What they were to write is
// unspecified then. Use the array for one operation only. It returns a.
func (a *Array) Until(stop *backends.Stop) *Array {
	if a != nil {
		a.stop = stop
	}
	return a
}

// Holder is what HeldBy was told.
func (a *Array) Holder() uint32 {
	if !a.live() {
		return 0
	}
	return a.holder
}

// Close gives the memory back. Closing twice is harmless.
func (a *Array) Close() error {
	if a == nil || a.runtime == nil {
		return errNoArray
	}
	if !a.lent {
		a.keepTemporaries(false)
	}
	a.closed = true
	return a.drop()
}

// Free gives the memory back and leaves an empty buffer that can grow again,
// with the same allocator, device and stream.
func (a *Array) Free() error {
	if err := a.check(); err != nil {
		return err
	}
	empty, err := arrayiface.NewLayout(a.layout.Type, []int{0}, nil)
	if err != nil {
		return err
	}
	if a.cached {
		//mutate:remove a temporary is kept of elements that were given up
		a.runtime.kept.changed(a.all())
	}
	a.layout, a.room, a.fixed = empty, 0, false
	return a.drop()
}

func (a *Array) drop() error {
	m, s := a.memory, a.options.Stream
	a.memory, a.address = nil, 0
	if m == nil {
		return nil
	}
	switch {
	case a.lent:
	case m.dropsLast(s):
		m.every.Store(true)
	default:
		m.rememberOn(s, a.where)
	}
	return m.Release()
}

// SetStream changes the stream and, as in HAMR, the transfer mode with it. A per-thread stream is replaced by one that
// means the same from every thread. The work that the old stream holds is still waited for.
func (a *Array) SetStream(s backends.Stream, t Transfer) error {
	if err := a.check(); err != nil {
		return err
	}
	s, err := a.resolved(s)
	if err != nil {
		return err
	}
	if s != a.options.Stream {
		// Nobody names the old stream any more, nor the work that other libraries have on it.
		if a.memory != nil {
			//mutate:remove memory names a stream that its array left while a handle had it
			a.memory.turns.Add(1)
		}
		if err := a.memory.leaveOn(a.options.Stream); err != nil {
			return err
		}
		if a.cached {
			own := func(e *keeping) bool { return e.isOfElements(a.all()) }
			//mutate:skip a temporary that is kept names a stream that was left
			if err := a.runtime.kept.leave(a.options.Stream, own); err != nil {
				return err
			}
		}
	}
	if s != a.options.Stream && a.memory != nil {
		if err := a.memory.uses.Renamed(a.memory.backend, s); err != nil {
			return err
		}
	}
	a.where = a.memory.whereIs(s)
	a.options.Stream, a.options.StreamOf, a.options.Transfer = s, a.options.Allocator, t
	return nil
}

// resolved is a stream that a may keep.
func (a *Array) resolved(s backends.Stream) (backends.Stream, error) {
	if a.memory != nil {
		return a.memory.resolved(s)
	}
	streams := a.runtime.byAllocator[a.options.Allocator].streams
	if s == 0 || streams == nil {
		return s, nil
	}
	if _, err := a.runtime.Backend(a.options.Allocator); err != nil {
		return 0, err
	}
	return order.Resolve(streams, a.options.Allocator.Kind(), max(a.options.Device, 0), s)
}

// SetTransfer changes which movements are waited for.
func (a *Array) SetTransfer(t Transfer) {
	if a.live() {
		a.options.Transfer = t
	}
}

// Synchronize waits until no movement of hamr's touches the memory any more and,
// where the allocator's runtime has streams, until the buffer's stream is done.
func (a *Array) Synchronize() error {
	if err := a.check(); err != nil {
		return err
	}
	return errors.Join(a.memory.settleView(), a.all().settle())
}

// piece is elements of a's memory, used on a's stream.
func (a *Array) piece(at backends.Address, layout arrayiface.Layout) piece {
	return piece{memory: a.memory, address: at, layout: layout, stream: a.options.Stream, where: a.where, stop: a.stop}
}

func (a *Array) all() piece { return a.piece(a.address, a.layout) }

// become makes a the first elements of its room, in another number or shape.
func (a *Array) become(layout arrayiface.Layout) {
	//mutate:remove a temporary is kept of elements of another number
	a.runtime.kept.changed(a.all())
	a.layout = layout
}

// optionsAt returns a's options with memory from another allocator or on another existing device. The stream is kept if
// it is one of that device. Host memory keeps it, too, for the way back.
func (a *Array) optionsAt(to backends.Allocator, device int) (Options, error) {
	o := a.options
	o.Allocator, o.Device = to, device
	if o.Stream == 0 || (to == a.options.Allocator && device == a.options.Device) {
		return o, nil
	}
	if a.options.Allocator.Kind() != backends.Pageable {
		o.StreamOf = a.options.Allocator
	}
	if to.Kind() == backends.Pageable {
		return o, nil
	}
	fits, err := a.runtime.streamFits(o)
	if !fits {
		o.Stream = 0
	}
	return o, err
}

// streamFits reports whether o's stream can be used with memory from o's allocator, which is a device's.
func (r *Runtime) streamFits(o Options) (bool, error) {
	streams := r.byAllocator[o.Allocator].streams
	if streams == nil || (o.StreamOf.Kind() != backends.Pageable && o.StreamOf.Backend() != o.Allocator.Backend()) {
		return false, nil
	}
	if _, err := r.Backend(o.Allocator); err != nil {
		return false, err
	}
	device, err := streams.StreamDevice(o.Stream)
	if errors.Is(err, backends.ErrNoStream) && o.StreamOf.Kind() == backends.Pageable {
		return false, nil // host memory does not say which runtime's its stream is
	}
	return err == nil && (device < 0 || device == o.Device || o.Allocator.Kind() == backends.Pinned), err
}

// live reports whether check has no error.
func (a *Array) live() bool { return a != nil && a.runtime != nil && !a.closed }

func (a *Array) check() error {
	if a == nil || a.runtime == nil {
		return errNoArray
	}
	if a.closed {
		return errClosed
	}
	return nil
}

// checkChangeable is check before elements are changed or replaced.
func (a *Array) checkChangeable() error {
	if err := a.check(); err != nil {
		return err
	}
	if a.memory == nil || a.runtime.claims.writing.Load() == 0 {
		return nil
	}
	return a.runtime.claims.refuse(a.all(), a.holder)
}

func (a *Array) checkWritable() error {
	if err := a.checkChangeable(); err != nil || !a.fixed {
		return err
	}
	return errReadOnly
}

// Slice returns a view of elements start, start+step, … of dimension dim, in the same memory, with count elements along
// it. The view's own growth never touches its neighbours.
func (a *Array) Slice(dim, start, stop, step int) (*Array, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	layout, by, err := a.layout.Slice(dim, start, stop, step)
	return a.viewAt(layout, by, err)
}

// Index returns a view of element i of dimension dim, without that dimension.
func (a *Array) Index(dim, i int) (*Array, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	layout, by, err := a.layout.Index(dim, i)
	return a.viewAt(layout, by, err)
}

func (a *Array) viewAt(layout arrayiface.Layout, by int, err error) (*Array, error) {
	if err != nil {
		return nil, err
	}
	v := *a
	//mutate:replace a view grows where its neighbours are
	//mutate:with v.grows, v.sole = layout, layout.Count(), false, => v.sole = layout, layout.Count(),
	v.layout, v.room, v.cached, v.grows, v.sole = layout, layout.Count(), false, false, false
	if v.memory != nil {
		v.memory.Retain()
		v.address = offset(a.address, by)
	}
	return &v, nil
}

// Swap exchanges everything two buffers have, allocator and stream included, except whether they are Cached.
func (a *Array) Swap(b *Array) error {
	if err := a.check(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	*a, *b = *b, *a
	if a.cached != b.cached {
		// Neither has a use for temporaries of the other's elements.
		//mutate:remove a temporary is kept of elements that were swapped
		a.runtime.kept.changed(a.all())
		//mutate:also remove
		b.runtime.kept.changed(b.all())
		a.cached, b.cached = b.cached, a.cached
	}
	return nil
}

func (a *Array) keepTemporaries(on bool) {
	if a.cached && !on {
		a.runtime.kept.changed(a.all())
	}
	a.cached = on
}
