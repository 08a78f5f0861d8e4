package gobuffer

import (
	"errors"
	"fmt"
	"sync/atomic"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/order"
)

// Handle is a place where code in one space can touch a buffer's elements. It holds its own reference to the memory, so
// it outlives the buffer and its changes. Its methods are safe for concurrent use. On nil and the zero value those that
// return an error return one that is ErrZero, and the others their zero values.
type Handle struct {
	memory    *Memory
	address   backends.Address
	layout    arrayiface.Layout
	stream    backends.Stream
	where     int         // see Array.where
	elsewhere *order.Work // its stream, where that is not of the memory's own device
	temporary bool
	kept      bool // others may be handed the temporary, too
	readOnly  bool
	loan      *loan // of AccessMode; else nil
	released  atomic.Bool
	turns     uint32 // the memory's, when the handle was made
}

// Access returns a Handle for code in space s on the given device. The elements are in place if they are reachable
// there, else in a temporary copy. The host ignores device; below zero it is the calling thread's current one. The
// buffer does not see changes of a temporary, and a temporary of a Cached array must not be written to. The host can
// read at once, in every transfer mode. Code on a device must use Handle.Stream, or wait for it. The caller releases
// the handle.
func (a *Array) Access(s backends.Space, device int) (*Handle, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	h, err := a.access(s, device, request{mode: ReadWrite, keep: a.cached})
	if err == nil && h.temporary && !h.kept && s == backends.SpaceHost && a.runtime.tracing() {
		h.memory.watch()
	}
	return h, err
}

// access is Access of an array that was checked.
func (a *Array) access(s backends.Space, device int, wanted request) (*Handle, error) {
	if s != backends.SpaceHost && device < 0 {
		var err error
		if device, err = a.currentDevice(s); err != nil {
			return nil, err
		}
	}
	fits := !(wanted.inOrder || a.inOrder) || a.layout.ContiguousC()
	if fits && s == backends.SpaceHost && a.memory.mappable() && a.layout.Count() > 0 {
		return a.mapHandle()
	}
	if fits && a.inPlace(s, device) {
		return a.handInPlace(s, device, nil)
	}
	if fits && a.options.Allocator.SharedWith(s) {
		if said, err := a.shares(s, device); said.Is || err != nil {
			if err != nil {
				return nil, err
			}
			return a.handInPlace(s, device, &said)
		}
	}
	var copied *Array
	var kept bool
	var err error
	if wanted.keep {
		copied, kept, err = a.keptTemporary(s, device)
	} else {
		copied, err = a.temporary(s, device, wanted.mode != Write)
	}
	if err != nil {
		return nil, err
	}
	h := &Handle{memory: copied.memory, address: copied.address, layout: copied.layout, stream: copied.options.Stream,
		where: copied.where, turns: copied.memory.turned(), temporary: true, kept: kept, readOnly: kept}
	if s != backends.SpaceHost {
		//mutate:skip a temporary that is kept is handed out before it is filled
		if err := copied.order(h, copied.options.Device); err != nil {
			copied.Close()
			return nil, err
		}
	}
	if a.runtime.tracing() {
		a.runtime.tracef("handle for %s in a%s temporary at %#x of %d bytes", s, map[bool]string{true: " kept"}[kept],
			copied.address, copied.layout.NBytes())
	}
	return h, nil
}

// handInPlace is access to the elements where they are. said is why another runtime's code reaches them.
func (a *Array) handInPlace(s backends.Space, device int, said *backing.Reached) (*Handle, error) {
	h := &Handle{memory: a.memory, address: a.address, layout: a.layout, stream: a.options.Stream, where: a.where,
		turns: a.memory.turned(), readOnly: a.fixed}
	if err := a.prepare(h, s, device, said); err != nil {
		return nil, err
	}
	if a.memory != nil {
		a.memory.Retain()
	}
	if a.runtime.tracing() {
		a.runtime.tracef("handle for %s in place at %#x%s", s, a.address, said.Because())
	}
	return h, nil
}

// temporary is room for the elements for code in space s, or a copy of them. It tries the allocators that make such
// memory, in their order, and takes the first one that the device has.
func (a *Array) temporary(s backends.Space, device int, copying bool) (copied *Array, err error) {
	list, err := a.runtime.temporariesIn(s)
	if err != nil {
		return nil, err
	}
	for _, to := range list {
		var o Options
		if o, err = a.optionsAt(to, device); err == nil {
			if s == backends.SpaceHost {
				// Code on the host knows no streams: it reads at once.
				o.Transfer = Sync
			}
			if copying {
				copied, err = a.copyTo(a.runtime, o, a.layout.Type)
			} else {
				copied, err = a.runtime.NewArray(a.layout.Type, a.layout.Shape, o)
			}
		}
		if !errors.Is(err, backends.ErrUnavailable) {
			break
		}
	}
	return copied, err
}

// prepare makes the elements ready for code in space s that uses them in place: the host waits for work on them, and a
// device must exist. said is why another runtime's code may use them.
func (a *Array) prepare(h *Handle, s backends.Space, device int, said *backing.Reached) error {
	if s == backends.SpaceHost {
		return a.all().settle()
	}
	if said != nil && said.Runtime != nil {
		return a.orderFor(said.Runtime, h, device)
	}
	if device != a.options.Device {
		b, err := a.runtime.Backend(a.options.Allocator)
		if err == nil {
			_, err = backing.Device(b, a.options.Allocator, device)
		}
		if err != nil {
			return err
		}
	}
	return a.order(h, device)
}

// order makes the handle's stream run after all work on the elements: the Array's stream or, on a device that the
// memory is not of, the default stream there.
func (a *Array) order(h *Handle, device int) error {
	p := a.all()
	if err := a.memory.there(); err != nil {
		return err
	}
	if !p.hasStream() {
		return nil
	}
	pending := p.pending()
	elsewhere := device != a.options.Device
	if len(pending) == 0 && !elsewhere {
		return nil
	}
	own, err := p.work()
	if err != nil || (!elsewhere && len(pending) == 1 && pending.Cover(own)) {
		return errors.Join(err, pending.LetGo())
	}
	target := own
	if elsewhere {
		target = &order.Work{Backend: own.Backend, Streams: own.Streams, Device: device}
		if target.Stream, err = a.memory.streams.Resolve(device, 0); err != nil {
			return errors.Join(err, pending.LetGo())
		}
		h.stream, h.elsewhere = 0, target
	}
	for _, before := range pending {
		//mutate:skip a handle's stream does not follow what is pending
		if err := target.Follow(before); err != nil {
			return errors.Join(err, pending.LetGo())
		}
	}
	if elsewhere && !pending.Cover(own) {
		//mutate:skip managed memory is not followed to another device
		if err := target.Follow(own); err != nil {
			return errors.Join(err, pending.LetGo())
		}
	}
	if elsewhere {
		h.elsewhere.Foreign = true
		a.memory.uses.AddGuest(h.elsewhere)
	}
	marked := *target
	marked.Foreign = true // unless it stands for work of hamr's
	return errors.Join(a.memory.mark(&marked, pending), pending.LetGo())
}

// Release drops the handle's reference. The memory is changed or freed only after the work that the handle's stream
// holds now. If SetStream has given the array another stream since, an event stands for that work. The error is the
// backend's; the handle is released all the same. Releasing twice is harmless.
func (h *Handle) Release() error {
	if err := h.check(); err != nil {
		return err
	}
	if h.loan != nil {
		return h.releaseLoan()
	}
	if h.released.Swap(true) || h.memory == nil {
		return nil
	}
	late := h.remember()
	return errors.Join(late, h.memory.Release())
}

// check refuses handles that no access returned: the elements of others have a type.
func (h *Handle) check() error {
	if h == nil || !h.layout.Type.Valid() {
		return errNoHandle
	}
	return nil
}

// remember records what the handle's stream holds. If an Array has left a stream since the handle was made, perhaps
// nobody names this stream any more, and it may end before the memory. An event then stands for what it holds. Work
// that can be neither recorded nor replaced by an event is waited for.
func (h *Handle) remember() error {
	m := h.memory
	if h.elsewhere != nil {
		marked := *h.elsewhere
		_ = m.mark(&marked, nil) // drops no ticket
		m.uses.DropGuest(h.elsewhere)
		return nil
	}
	//mutate:replace a handle that is released leaves nothing behind
	//mutate:with m.region.Address == 0 => m != nil
	if !m.hasStream(h.stream) || m.region.Address == 0 {
		return nil
	}
	if m.dropsLast(h.stream) {
		m.every.Store(true)
		return nil
	}
	turned := h.stream != 0 && m.turned() != h.turns
	if (turned || m.kind == backends.Pinned) && !order.Stays(m.backend, h.stream) {
		where := h.where
		if turned {
			where = 0
		}
		m.rememberEnding(h.stream, where)
		return nil
	}
	w, err := m.workOn(h.stream)
	if err != nil {
		// Nobody can tell which device's it is.
		m.every.Store(true)
		return err
	}
	s, err := w.Streams.Resolve(w.Device, h.stream)
	if err == nil {
		w.Stream = s
		m.remember(w)
		// This comes last: whoever leaves a stream first counts that, and then looks at what is recorded.
		if h.stream == 0 || m.turned() == h.turns {
			return nil
		}
		err = m.leave(w)
	}
	if err == nil {
		return nil
	}
	if w.Wait() != nil {
		m.every.Store(true)
		return err
	}
	return errors.Join(err, m.uses.Over(w))
}

// turned is how often an Array of the memory has turned from a stream.
func (m *Memory) turned() uint32 {
	if m == nil {
		return 0
	}
	return m.turns.Load()
}

// Detach ends the handle and returns its reference to the memory, or nil. The caller takes over the ordering of work on
// the elements. If the handle's stream is of another device than the memory, what it holds is waited for as long as the
// memory exists.
func (h *Handle) Detach() *Memory {
	if h.check() != nil || h.released.Swap(true) {
		return nil
	}
	return h.memory
}

// Stream returns the stream to use the elements on, of the device that was asked for. It runs after all work on them
// that was enqueued before. Zero is the default stream.
func (h *Handle) Stream() backends.Stream {
	if h == nil {
		return 0
	}
	return h.stream
}

// Temporary reports whether the elements were copied to be reachable.
func (h *Handle) Temporary() bool { return h != nil && h.temporary }

// Kept reports whether others may be handed the same temporary, see Array.Cached.
func (h *Handle) Kept() bool { return h != nil && h.kept }

// ReadOnly reports whether the elements must not be written.
func (h *Handle) ReadOnly() bool { return h != nil && h.readOnly }

// Address returns where element zero is.
func (h *Handle) Address() backends.Address {
	if h == nil {
		return 0
	}
	return h.address
}

// Layout returns type, shape and strides in bytes.
func (h *Handle) Layout() arrayiface.Layout {
	if h == nil {
		return arrayiface.Layout{}
	}
	return h.layout
}

// Memory returns the memory without a new reference, or nil.
func (h *Handle) Memory() *Memory {
	if h == nil {
		return nil
	}
	return h.memory
}

// String is for messages.
func (h *Handle) String() string {
	switch {
	case h == nil:
		return "<nil>"
	case h.check() != nil:
		return "handle that no access gave"
	case h.released.Load():
		return "released handle"
	}
	how := "in place"
	if h.temporary {
		how = "in a temporary"
	}
	return fmt.Sprintf("handle of %d %s %s at %#x", h.layout.Count(), h.layout.Type, how, h.address)
}

// mapHandle is Access for the host where it has to map the memory. The elements are in place, since the buffer and the
// handle see each other's changes.
func (a *Array) mapHandle() (*Handle, error) {
	home := a.memory
	home.mapping.mutex.Lock()
	p, err := a.all().toHost(!a.fixed)
	home.mapping.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	if err := p.settle(); err != nil {
		return nil, errors.Join(err, p.memory.Release())
	}
	if a.runtime.tracing() {
		a.runtime.tracef("handle for %s mapped at %#x", backends.SpaceHost, p.address)
	}
	return &Handle{memory: p.memory, address: p.address, layout: p.layout, readOnly: a.fixed}, nil
}
