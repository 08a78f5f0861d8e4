package order

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/waiting"
	"hamr/gobuffer/internal/failures"
)

// Work is something that was enqueued and may touch memory: all that a stream holds when somebody asks or, with a
// ticket, one part of it. The stream is a resolved one: it means the same from every thread. A work never changes.
type Work struct {
	Backend backends.Backend
	Streams backends.Streams // nil if the backend has none
	Device  int
	Stream  backends.Stream
	Ticket  Ticket // nil: whatever the stream holds
	Foreign bool   // another library's: who releases the memory knows of it
	of      *Work  // the recorded one that this stands for; else nil
}

// Ticket stands for work that can be waited for by itself: what a stream held at one moment, or an item that is on no
// stream. It is safe for concurrent use and lasts while there are references to it.
type Ticket interface {
	Wait() error
	Done() (bool, error)
	// Before makes what is enqueued on w's stream from now on run after the item,
	// without blocking. ordered is false, with or without an error, where it cannot.
	Before(w *Work) (ordered bool, err error)
	Retain()
	Release() error
}

// Event is the ticket of what a stream held when it was recorded. It outlives the stream.
type Event struct {
	backend backends.Backend
	streams backends.Streams
	device  int
	handle  backends.Event
	refs    atomic.Int32
}

// Wait, Done, Retain, Before and Release make an Event a Ticket.
//
//mutate:replace an event is not waited for
//mutate:with e.streams.SynchronizeEvent(e.device, e.handle) => nil
func (e *Event) Wait() error         { return e.streams.SynchronizeEvent(e.device, e.handle) }
func (e *Event) Done() (bool, error) { return e.streams.Done(e.device, e.handle) }
func (e *Event) Retain()             { e.refs.Add(1) }

func (e *Event) Before(w *Work) (bool, error) {
	if w.Backend != e.backend {
		return false, nil
	}
	//mutate:skip streams do not follow each other
	err := w.Streams.Wait(w.Device, w.Stream, e.handle)
	return err == nil, err
}

func (e *Event) Release() error {
	if e.refs.Add(-1) > 0 {
		return nil
	}
	return e.streams.DestroyEvent(e.device, e.handle)
}

// Record makes an event of what w's stream holds now; the caller releases it.
func (w *Work) Record() (*Event, error) {
	handle, err := w.Streams.NewEvent(w.Device)
	if err != nil {
		return nil, err
	}
	e := w.EventOf(handle)
	if err := w.Streams.Record(w.Device, handle, w.Stream); err != nil {
		_ = e.Release()
		return nil, err
	}
	return e, nil
}

// EventOf is an event of w's backend and device; the caller releases it.
func (w *Work) EventOf(handle backends.Event) *Event {
	e := &Event{backend: w.Backend, streams: w.Streams, device: w.Device, handle: handle}
	e.refs.Store(1)
	return e
}

// With is w by a ticket, which it takes over.
func (w *Work) With(t Ticket) *Work {
	held := *w
	held.Ticket = t
	return &held
}

// StandsFor reports whether w stands for a recorded work that is all that v's stream holds.
func (w *Work) StandsFor(v *Work) bool { return w.of != nil && w.of.HoldsAll(v) }

// HoldsAll reports whether w is all that v's stream holds.
func (w *Work) HoldsAll(v *Work) bool { return w.isAllOf(v.Backend, v.Device, v.Stream) }

// isAllOf reports whether w is all that a stream of a device holds.
func (w *Work) isAllOf(b backends.Backend, device int, s backends.Stream) bool {
	return w.Ticket == nil && w.Stream == s && w.Device == device && w.Backend == b
}

// Wait returns when the work is over.
func (w *Work) Wait() error {
	switch {
	case w.Ticket != nil:
		return w.Ticket.Wait()
	case w.Streams != nil:
		//mutate:skip a stream is not waited for
		return w.Streams.Synchronize(w.Device, w.Stream)
	}
	return nil
}

// Idle reports whether the work is over.
func (w *Work) Idle() (bool, error) {
	switch {
	case w.Ticket != nil:
		return w.Ticket.Done()
	case w.Streams != nil:
		return w.Streams.Idle(w.Device, w.Stream)
	}
	return true, nil
}

// Follow makes what is enqueued on w's stream from now on run after the work
// before. It blocks only where two runtimes know nothing of each other.
func (w *Work) Follow(before *Work) error {
	if before.HoldsAll(w) {
		return nil
	}
	ordered, err := w.orderAfter(before)
	if ordered || err != nil {
		return err
	}
	//mutate:skip two runtimes' streams do not wait for each other
	return before.Wait()
}

// orderAfter is Follow without waiting.
func (w *Work) orderAfter(before *Work) (ordered bool, err error) {
	switch {
	case w.Streams == nil:
		return false, nil
	case before.Ticket != nil:
		return before.Ticket.Before(w)
	case w.Backend != before.Backend:
		return false, nil
	}
	e, err := before.Record()
	if err != nil {
		return false, err
	}
	ordered, err = e.Before(w)
	return ordered, errors.Join(err, e.Release())
}

// IsOn reports whether v's stream, which need not be resolved, is a name of w's. A stream
// that stands in for a per-thread one is not the same.
func (w *Work) IsOn(v *Work) (bool, error) {
	if w.Stream == v.Stream || w.Device != v.Device {
		return w.HoldsAll(v), nil
	}
	own, err := w.Streams.Resolve(w.Device, 0)
	if err != nil || own != w.Stream {
		return false, err
	}
	named, err := w.Streams.Resolve(w.Device, v.Stream)
	return named == own, err
}

// WaitUntil is Wait until stop asks. Without a stop it does nothing: then nobody minds how long
// whoever comes next takes.
func (w *Work) WaitUntil(stop *backends.Stop) error {
	if stop == nil {
		return nil
	}
	var pauses waiting.Pauses
	defer pauses.End()
	for {
		idle, err := w.Idle()
		if idle || errors.Is(err, backends.ErrCapturing) {
			return nil
		}
		if err != nil {
			return err
		}
		//mutate:never a wait does not end when it is asked to
		if stop.Asked() {
			return backends.ErrStopped
		}
		pauses.Next(math.MaxInt64)
	}
}

// Pending is the opposite of Idle, but for what cannot be asked.
func (w *Work) Pending() (bool, error) {
	idle, err := w.Idle()
	if errors.Is(err, backends.ErrCapturing) {
		return false, nil
	}
	return !idle && err == nil, err
}

// Resolve turns a stream that may be used on a device, or with page-locked memory on any, into one that means the
// same from every thread.
func Resolve(
	streams backends.Streams, kind backends.MemoryKind, device int, s backends.Stream,
) (backends.Stream, error) {
	if s != 0 {
		number, err := streams.StreamDevice(s)
		switch {
		case err != nil:
			return 0, err
		case number < 0:
		case kind == backends.Pinned:
			device = number
		case number != device:
			return 0, failures.Value("stream", fmt.Sprintf("%#x of device %d", uintptr(s), number),
				fmt.Sprintf("a stream of device %d, where the memory is", device))
		}
	}
	return streams.Resolve(device, s)
}
