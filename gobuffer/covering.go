package gobuffer

import (
	"errors"
	"slices"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Covering returns a stream whose synchronisation covers all unfinished work on the elements: movements of hamr, and
// what the Array's stream holds, or the default stream if it was given none. busy is false if there is no such work.
func (a *Array) Covering() (s backends.Stream, busy bool, err error) {
	w, err := a.covering()
	if err != nil || w == nil {
		return 0, false, err
	}
	return w.Stream, true, nil
}

// covering is nil if no work on the elements is pending.
func (a *Array) covering() (all *order.Work, err error) {
	if err := a.check(); err != nil || a.memory == nil {
		return nil, err
	}
	//mutate:skip the address of memory that is paused is given away
	if err := a.memory.notPaused(); err != nil {
		return nil, err
	}
	if a.memory.streams == nil {
		// No stream of the memory's own covers it.
		//mutate:replace who reads ordinary host memory is told of nothing that is pending on it
		//mutate:with a.all().settle() => nil
		return nil, a.all().settle()
	}
	// No stream covers what other runtimes do with the host's view.
	if err := a.memory.settleView(); err != nil {
		return nil, err
	}
	p := a.all()
	pending, err := p.memory.uses.Poll(p.stream, p.where)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pending.LetGo()) }()
	if len(pending) == 0 && !p.hasStream() {
		return nil, nil
	}
	own, err := p.work()
	if err != nil {
		return nil, err
	}
	if len(pending) == 1 && pending.Cover(own) {
		return own, nil
	}
	if len(pending) == 0 || a.options.Stream == 0 {
		idle := !p.hasStream()
		if !idle && !pending.Cover(own) {
			//mutate:replace the default stream is not asked for other libraries' work
			//mutate:with idle, err = own.Idle() => idle = true
			if idle, err = own.Idle(); errors.Is(err, backends.ErrCapturing) {
				// No stream can be made to run after what the default stream holds during a capture.
				idle, err = true, nil
			}
			if err != nil {
				return nil, err
			}
		}
		if len(pending) == 0 {
			if idle {
				return nil, nil
			}
			return own, nil
		}
		// Another device's stream means nothing to users of this one's memory, or, as
		// the default stream does, something else.
		one := pending[0]
		if idle && len(pending) == 1 && one.Ticket == nil && one.Device == own.Device && one.Backend == own.Backend {
			return one, nil
		}
	}
	own.Foreign = true
	for _, before := range pending {
		//mutate:skip consumers are told of a stream that does not cover what is pending
		if err := own.Follow(before); err != nil {
			return nil, err
		}
	}
	// Later calls, as waiting makes them, enqueue nothing more.
	return own, a.memory.mark(own, pending)
}

// Before makes later work on a stream of the memory's device run after all unfinished work on the elements, without
// blocking. A per-thread stream is the calling thread's.
func (a *Array) Before(s backends.Stream) error {
	if err := a.check(); err != nil {
		return err
	}
	if err := a.memory.there(); err != nil {
		return err
	}
	before, err := a.covering()
	if err != nil || before == nil {
		return err
	}
	// Not what s is resolved to: for a per-thread stream that is another one, which runs after it.
	w, err := a.memory.workOn(s)
	if err != nil {
		return err
	}
	same, err := before.IsOn(w)
	if err != nil || same {
		return err
	}
	//mutate:skip a consumer's stream does not follow what is pending
	//mutate:insert a stand-in waits in place of a consumer's per-thread stream
	//mutate:with w.Stream, _ = w.Streams.Resolve(w.Device, s)
	return w.Follow(before)
}

// Pending reports whether work on the elements, or on the Array's stream, is known to be unfinished. It does not wait.
// The error is that of finished work.
func (a *Array) Pending() (busy bool, failed error) { return Pending(a) }

// Pending is Array.Pending of any of the arrays, and asks once about a stream that several have.
func Pending(arrays ...*Array) (busy bool, failed error) {
	var room pendingRoom
	defer func() { failed = errors.Join(failed, room.all.LetGo()) }()
	var idle order.Works // all that their streams held
	ask := func(w *order.Work) (bool, error) {
		//mutate:replace one idle stream speaks for all of many arrays
		//mutate:with !idle.Cover(w) => len(idle) == 0
		if w.Ticket != nil || !idle.Cover(w) {
			if busy, err := w.Pending(); busy || err != nil {
				return busy, err
			}
			if w.Ticket == nil {
				idle = append(idle, w)
			}
		}
		return false, nil
	}
	var own []ownStream
	for _, a := range arrays {
		if err := a.check(); err != nil {
			return false, err
		}
		if a.memory == nil || a.memory.streams == nil && a.memory.uses.Idle() {
			continue
		}
		p := a.all()
		for _, w := range room.pending(&p) {
			if busy, err := ask(w); busy || err != nil {
				return busy, err
			}
		}
		at := p.ownStream()
		if !p.hasStream() || slices.Contains(own, at) {
			continue
		}
		w, err := p.work()
		if err != nil {
			return false, err
		}
		own = append(own, at)
		if busy, err := ask(w); busy || err != nil {
			return busy, err
		}
	}
	return false, nil
}
