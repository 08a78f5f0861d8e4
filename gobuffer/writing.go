package gobuffer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hamr/backends"
)

// loan is what a Handle of AccessMode has besides.
type loan struct {
	mutex     sync.Mutex // a write-back and the end come one after the other
	runtime   *Runtime
	claim     *claim // nil where there are no elements
	source    piece  // what a temporary stands for, with a reference; without memory in place
	writes    bool
	transfer  Transfer
	committed bool
}

// AccessMode is Access for code that says what it does with the elements, and when it is done. The buffer has what such
// code writes after Commit, wherever the elements were.
//
// Until Release the elements belong to the caller. Another AccessMode for some of them, by any array of the memory, is
// ErrInUse unless both are for Read. While they are in use for writing, what changes or replaces them, as Fill or
// Resize, is ErrInUse, too. Arrays that Handle.Array makes from the handle may do all that. Close and Free still work:
// Commit then writes to the memory, which others may hold. An array whose elements overlap, as those of a broadcast do,
// is for Read alone.
func (a *Array) AccessMode(s backends.Space, device int, mode Mode) (*Handle, error) {
	return a.lend(s, device, request{mode: mode})
}

// request says what is wanted of access.
type request struct {
	mode    Mode
	inOrder bool // in C order, if need be in a temporary
	keep    bool // the temporary is one of a Cached array
}

func (a *Array) lend(s backends.Space, device int, wanted request) (*Handle, error) {
	if wanted.mode < Read || wanted.mode > ReadWrite {
		return nil, valueError("mode", wanted.mode, "Read, Write, ReadWrite")
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if wanted.mode.Writes() {
		if a.fixed {
			return nil, errReadOnly
		}
		if err := a.checkApart(); err != nil {
			return nil, err
		}
	}
	l := &loan{runtime: a.runtime, writes: wanted.mode.Writes(), transfer: a.options.Transfer}
	if a.memory != nil {
		var err error
		if l.claim, err = a.runtime.claims.add(a.all(), wanted.mode, a.holder); err != nil {
			return nil, err
		}
	}
	if wanted.keep = a.cached && !l.writes; l.writes {
		//mutate:remove a temporary is kept whose elements an access writes
		a.runtime.kept.changed(a.all())
	}
	h, err := a.access(s, device, wanted)
	if err != nil {
		a.runtime.claims.remove(l.claim)
		return nil, err
	}
	if l.claim != nil && !h.temporary {
		a.runtime.claims.inPlace(l.claim, true)
	}
	if h.temporary && a.memory != nil {
		l.source = a.all()
		l.source.memory.Retain()
	}
	h.loan = l
	// Most libraries for devices have no read-only arrays, and refuse them.
	h.readOnly = (h.readOnly && !h.kept) || (s == backends.SpaceHost && !wanted.mode.Writes())
	return h, nil
}

// checkApart refuses arrays whose elements overlap. A temporary has a copy of each, so an element that was written
// would be undone by one that was not. They are refused in place, too, so that a program fails alike on every machine.
func (a *Array) checkApart() error {
	if a.layout.ContiguousC() || !a.layout.ElementsOverlap() {
		return nil
	}
	of := fmt.Sprintf("of shape %v and strides %v, some of whose elements lie on each other", a.layout.Shape,
		a.layout.Strides)
	return valueError("buffer", of, "one whose elements lie apart, which copy() makes; this one is for reading, by mode r")
}

// Commit writes the handle's elements back to the buffer. It runs after the work on the handle's stream, and after the
// work on the stream that the buffer had when the handle was made. Whoever uses the buffer from now on comes after it.
// For elements in place, or for reading, it does nothing. It may be called more than once. An error means that a device
// has failed, before or while it wrote the buffer's elements.
func (h *Handle) Commit() error { return h.CommitUntil(nil) }

// CommitUntil is Commit until stop asks: see Array.Until.
func (h *Handle) CommitUntil(stop *backends.Stop) error {
	if err := h.check(); err != nil {
		return err
	}
	l := h.loan
	if l == nil {
		if h.released.Load() {
			return errReleased
		}
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if h.released.Load() {
		return errReleased
	}
	l.committed = true
	if l.source.memory == nil || !l.writes {
		return nil
	}
	if l.runtime.tracing() {
		l.runtime.tracef("write back from a temporary at %#x to %#x", h.address, l.source.address)
	}
	//mutate:replace a write-back does not follow the stream that the temporary is used on
	//mutate:with stream: h.stream, stop: stop => stop: stop
	written := piece{memory: h.memory, address: h.address, layout: h.layout, stream: h.stream, stop: stop}
	//mutate:insert a write-back does not follow the buffer's own stream
	//mutate:with l.source.stream = 0
	return l.runtime.copyElements(l.source, written, l.transfer)
}

// Holder is what Array.HeldBy takes: 0 of a handle that is not of AccessMode.
func (h *Handle) Holder() uint32 {
	if h == nil || h.loan == nil || h.loan.claim == nil {
		return 0
	}
	return h.loan.claim.number
}

// Array returns the elements as an Array of a memory that there is, for operations inside the
// access; the caller closes it.
func (h *Handle) Array() (*Array, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if h.released.Load() {
		return nil, errReleased
	}
	if h.memory == nil {
		return nil, valueError("handle", "of no elements", "one of elements")
	}
	r := h.memory.region
	o := Options{Allocator: r.Allocator, Device: r.Device, Stream: h.stream, Transfer: SyncHost}
	if h.elsewhere != nil || h.memory.kind == backends.Pageable {
		o.Stream = 0 // it is not one of the memory's device
	}
	return View(h.memory.Retain(), h.address, h.layout, h.layout.Count(), h.readOnly, o).HeldBy(h.Holder()), nil
}

// LeaveStream makes a handle of AccessMode independent of its stream, which has ended. See Memory.Forget.
func (h *Handle) LeaveStream() {
	if h == nil {
		return
	}
	if l := h.loan; l != nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		h.stream, l.source.stream = 0, 0
	}
}

// releaseLoan is Release of a handle of AccessMode.
func (h *Handle) releaseLoan() (late error) {
	l := h.loan
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if h.released.Swap(true) {
		return nil
	}
	if h.memory != nil {
		//mutate:remove elements that were lent leave nothing behind
		late = h.remember()
	}
	// While the memory is there: afterwards its bytes may be somebody else's.
	l.runtime.claims.remove(l.claim)
	if h.memory != nil {
		late = errors.Join(late, h.memory.Release())
	}
	if l.source.memory == nil {
		return late
	}
	if l.writes && !l.committed && l.runtime.tracing() {
		l.runtime.tracef("drop what was written to a temporary at %#x: it is not written back", h.address)
	}
	return errors.Join(late, l.source.memory.Release())
}

// On calls f with the elements where code in space s on a device can use them. If f returns nil, the array has what f
// has written. After an error or a panic of f, what was written in place stays, and a temporary is dropped. The handle
// ends with f. On fails at once if ctx is done. See AccessMode.
func (a *Array) On(ctx context.Context, s backends.Space, device int, mode Mode, f func(*Handle) error) error {
	return a.on(ctx, s, device, request{mode: mode}, f)
}

// OnHost is On for code on the host.
func (a *Array) OnHost(ctx context.Context, mode Mode, f func(*Handle) error) error {
	return a.On(ctx, backends.SpaceHost, backends.HostDevice, mode, f)
}

var errNoFunction = valueError("f", "nil", "a function")

// over is why ctx allows nothing more, or nil.
func over(ctx context.Context) error {
	if ctx == nil {
		return valueError("ctx", "nil", "a context, such as context.Background()")
	}
	return ctx.Err()
}

func (a *Array) on(
	ctx context.Context, s backends.Space, device int, wanted request, f func(*Handle) error,
) (err error) {
	if err := a.check(); err != nil {
		return err
	}
	if err := over(ctx); err != nil {
		return err
	}
	if f == nil {
		return errNoFunction
	}
	h, err := a.lend(s, device, wanted)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Release()) }()
	if err := f(h); err != nil {
		return err
	}
	return h.Commit()
}
