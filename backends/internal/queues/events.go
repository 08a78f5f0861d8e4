package queues

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hamr/backends"
)

// firstOfEvents is below the numbers of our events.
const firstOfEvents = 1 << 40

// events are ours, under numbers. An event of the runtime's stands for one command; ours stands for another one after
// each Record.
type events struct {
	list sync.Map // *event by backends.Event
	made atomic.Uint64
}

type event struct {
	device int
	timed  bool

	mutex  sync.Mutex
	handle uintptr // a reference to the runtime's event; zero until it is recorded
}

func (list *events) add(e *event) backends.Event {
	handle := backends.Event(firstOfEvents + list.made.Add(1))
	list.list.Store(handle, e)
	return handle
}

// Events returns all events that were not destroyed.
func (l *Queues) Events() (all []backends.Event) {
	l.events.list.Range(func(handle, _ any) bool {
		all = append(all, handle.(backends.Event))
		return true
	})
	return all
}

// NewEvent returns an event that stands for nothing yet.
func (s Streams) NewEvent(device int) (backends.Event, error) { return s.newEvent(device, false) }

// NewTimedEvent returns an event for Elapsed.
func (s Streams) NewTimedEvent(device int) (backends.Event, error) { return s.newEvent(device, true) }

func (s Streams) newEvent(device int, timed bool) (backends.Event, error) {
	if _, err := s.queues.runtime.Default("NewEvent", device); err != nil {
		return 0, err
	}
	return s.queues.events.add(&event{device: device, timed: timed}), nil
}

// AdoptEvent takes an event of the runtime's, to which it adds a reference.
func (s Streams) AdoptEvent(device int, handle uintptr) (backends.Event, error) {
	if _, err := s.queues.runtime.Default("AdoptEvent", device); err != nil {
		return 0, err
	}
	own, err := s.queues.runtime.Retain(handle)
	if err != nil {
		return 0, err
	}
	return s.queues.events.add(&event{device: device, handle: own}), nil
}

func (l *Queues) event(call string, handle backends.Event) (*event, error) {
	found, ok := l.events.list.Load(handle)
	if !ok {
		return nil, l.runtime.InvalidEvent(call, fmt.Sprintf("%#x is no event of hamr's", uintptr(handle)))
	}
	return found.(*event), nil
}

// now returns a reference for the caller to the runtime's event that e stands for, or zero.
func (l *Queues) now(e *event) (uintptr, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.handle == 0 {
		return 0, nil
	}
	return l.runtime.Retain(e.handle)
}

func (l *Queues) find(call string, handle backends.Event) (e *event, now uintptr, err error) {
	if e, err = l.event(call, handle); err == nil {
		now, err = l.now(e)
	}
	return e, now, err
}

// become makes e stand for an event of the runtime's, whose reference it takes.
func (l *Queues) become(e *event, handle uintptr) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	l.drop(e.handle)
	e.handle = handle
}

func (l *Queues) drop(handle uintptr) {
	if handle != 0 {
		l.runtime.Drop(handle)
	}
}

// DestroyEvent leaves what waits for the event waiting.
func (s Streams) DestroyEvent(_ int, handle backends.Event) error {
	e, err := s.queues.event("DestroyEvent", handle)
	if err != nil {
		return err
	}
	s.queues.events.list.Delete(handle)
	s.queues.become(e, 0)
	return nil
}

// Record enqueues a marker, which comes after everything on queues that keep no order, too.
func (s Streams) Record(device int, handle backends.Event, stream backends.Stream) error {
	e, err := s.queues.event("Record", handle)
	if err != nil {
		return err
	}
	q, err := s.queues.On("Record", device, stream)
	if err != nil {
		return err
	}
	marker, err := s.queues.runtime.Mark(q.Handle())
	if marker != 0 {
		s.queues.become(e, marker)
	}
	return err
}

// Wait makes later work on the queue wait for what the event stands for now.
func (s Streams) Wait(device int, stream backends.Stream, handle backends.Event) error {
	e, err := s.queues.event("Wait", handle)
	if err != nil {
		return err
	}
	q, err := s.queues.On("Wait", device, stream)
	if err != nil {
		return err
	}
	after, err := s.queues.now(e)
	if err != nil || after == 0 {
		return err
	}
	defer s.queues.drop(after)
	if status, err := s.queues.runtime.Status(after); err == nil && status == Complete {
		return nil
	}
	return s.queues.runtime.Behind(q, after, e.device)
}

// Done reports the error of what the event stands for, too.
func (s Streams) Done(_ int, handle backends.Event) (bool, error) {
	_, now, err := s.queues.find("Done", handle)
	if err != nil || now == 0 {
		return err == nil, err
	}
	defer s.queues.drop(now)
	status, err := s.queues.runtime.Status(now)
	if err == nil && status < Complete {
		err = s.queues.runtime.Failed(status, false)
	}
	if err != nil {
		return false, err
	}
	return status == Complete, s.queues.runtime.Late()
}

// SynchronizeEvent blocks until the event is over.
func (s Streams) SynchronizeEvent(_ int, handle backends.Event) error {
	_, now, err := s.queues.find("SynchronizeEvent", handle)
	if err != nil || now == 0 {
		return err
	}
	defer s.queues.drop(now)
	return s.queues.runtime.WaitFor(now)
}

// Elapsed compares when the markers were over, by the device's clock in nanoseconds.
func (s Streams) Elapsed(_ int, from, to backends.Event) (time.Duration, error) {
	var ends [2]uint64
	for i, handle := range [...]backends.Event{from, to} {
		refused := func(why error) error { return fmt.Errorf("event %#x: %w", uintptr(handle), why) }
		e, now, err := s.queues.find("Elapsed", handle)
		if err != nil {
			return 0, err
		}
		defer s.queues.drop(now)
		if !e.timed {
			return 0, refused(backends.ErrUntimed)
		}
		if now == 0 {
			return 0, refused(backends.ErrNotRecorded)
		}
		if status, err := s.queues.runtime.Status(now); err != nil || status > Complete {
			return 0, errors.Join(err, refused(backends.ErrNotDone))
		}
		end, known, err := s.queues.runtime.End(now)
		if err != nil {
			return 0, err
		}
		if !known {
			return 0, refused(backends.ErrUntimed)
		}
		ends[i] = end
	}
	return time.Duration(ends[1] - ends[0]), nil
}
