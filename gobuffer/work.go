package gobuffer

import (
	"errors"
	"sync/atomic"

	"hamr/backends"
)

// work is something that was enqueued and may touch a Memory: all that a stream holds
// when somebody asks or, with a ticket, one part of it. The stream is a resolved one:
// it means the same from every thread. A work never changes.
type work struct {
	backend backends.Backend
	streams backends.Streams // nil if the backend has none
	device  int
	stream  backends.Stream
	ticket  ticket // nil: whatever the stream holds
	foreign bool   // another library's: who releases the memory knows of it
	of      *work  // the recorded one that this stands for; else nil
}

// ticket stands for work that can be waited for by itself: what a stream held at one
// moment, or an item that is on no stream. It is safe for concurrent use and lasts
// while there are references to it.
type ticket interface {
	wait() error
	done() (bool, error)
	// before makes what is enqueued on w's stream from now on run after the item,
	// without blocking. ordered is false, with or without an error, where it cannot.
	before(w *work) (ordered bool, err error)
	retain()
	release() error
}

// event is the ticket of what a stream held when it was recorded. It outlives the
// stream.
type event struct {
	backend backends.Backend
	streams backends.Streams
	device  int
	handle  backends.Event
	refs    atomic.Int32
}

//mutate:replace an event is not waited for
//mutate:with e.streams.SynchronizeEvent(e.device, e.handle) => nil
func (e *event) wait() error         { return e.streams.SynchronizeEvent(e.device, e.handle) }
func (e *event) done() (bool, error) { return e.streams.Done(e.device, e.handle) }
func (e *event) retain()             { e.refs.Add(1) }

func (e *event) before(w *work) (bool, error) {
	if w.backend != e.backend {
		return false, nil
	}
	//mutate:skip streams do not follow each other
	err := w.streams.Wait(w.device, w.stream, e.handle)
	return err == nil, err
}

func (e *event) release() error {
	if e.refs.Add(-1) > 0 {
		return nil
	}
	return e.streams.DestroyEvent(e.device, e.handle)
}

// record makes an event of what w's stream holds now; the caller releases it.
func (w *work) record() (*event, error) {
	handle, err := w.streams.NewEvent(w.device)
	if err != nil {
		return nil, err
	}
	e := &event{backend: w.backend, streams: w.streams, device: w.device, handle: handle}
	e.refs.Store(1)
	if err := w.streams.Record(w.device, handle, w.stream); err != nil {
		_ = e.release()
		return nil, err
	}
	return e, nil
}

// holdsAll reports whether w is all that v's stream holds.
func (w *work) holdsAll(v *work) bool { return w.isAllOf(v.backend, v.device, v.stream) }

// isAllOf reports whether w is all that a stream of a device holds.
func (w *work) isAllOf(b backends.Backend, device int, s backends.Stream) bool {
	return w.ticket == nil && w.stream == s && w.device == device && w.backend == b
}

func (w *work) wait() error {
	switch {
	case w.ticket != nil:
		return w.ticket.wait()
	case w.streams != nil:
		//mutate:skip a stream is not waited for
		return w.streams.Synchronize(w.device, w.stream)
	}
	return nil
}

func (w *work) idle() (bool, error) {
	switch {
	case w.ticket != nil:
		return w.ticket.done()
	case w.streams != nil:
		return w.streams.Idle(w.device, w.stream)
	}
	return true, nil
}

// follow makes what is enqueued on w's stream from now on run after the work
// before. It blocks only where two runtimes know nothing of each other.
func (w *work) follow(before *work) error {
	if before.holdsAll(w) {
		return nil
	}
	ordered, err := w.orderAfter(before)
	if ordered || err != nil {
		return err
	}
	//mutate:skip two runtimes' streams do not wait for each other
	return before.wait()
}

// orderAfter is follow without waiting.
func (w *work) orderAfter(before *work) (ordered bool, err error) {
	switch {
	case w.streams == nil:
		return false, nil
	case before.ticket != nil:
		return before.ticket.before(w)
	case w.backend != before.backend:
		return false, nil
	}
	e, err := before.record()
	if err != nil {
		return false, err
	}
	ordered, err = e.before(w)
	return ordered, errors.Join(err, e.release())
}
