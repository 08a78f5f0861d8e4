package cuda

import (
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// orderFloor is the floor of streams and events. Of memory it knows only pools, which it tells when a stream ends.
type orderFloor struct {
	contextFloor

	kept        keptStreams
	substitutes substitutes
	timed       timedEvents
}

const disableTiming = 2

// keptStreams are streams of other owners that last until DropStream.
type keptStreams struct {
	mu   sync.Mutex
	here map[backends.Stream]bool
}

// substitute holds an event's record in place of the event itself. A substitute without an event holds no record: the
// event is reused, and was not recorded since.
type substitute struct {
	event, context uintptr
}

// substitutes also stand in for events that were recorded on streams of other
// contexts than their device's primary one: the driver wants an event and the
// stream that it is recorded on to be of one context.
type substitutes struct {
	count   atomic.Int32
	mu      sync.Mutex
	byEvent map[backends.Event]substitute
}

func (s *substitutes) get(e backends.Event) (substitute, bool) {
	if s.count.Load() == 0 {
		return substitute{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byEvent[e]
	return found, ok
}

func (s *substitutes) set(e backends.Event, by substitute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byEvent == nil {
		s.byEvent = map[backends.Event]substitute{}
	}
	s.byEvent[e] = by
	s.count.Store(int32(len(s.byEvent)))
}

func (s *substitutes) remove(e backends.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byEvent, e)
	s.count.Store(int32(len(s.byEvent)))
}

// timedEvents are the events that keep the time, and whether each was recorded. They are not reused. The driver has
// the same code for an event without a record and for one without timing.
type timedEvents struct {
	count    atomic.Int32
	mu       sync.Mutex
	recorded map[backends.Event]bool
}

func (t *timedEvents) get(e backends.Event) (recorded, timed bool) {
	if t.count.Load() == 0 {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	recorded, timed = t.recorded[e]
	return recorded, timed
}

func (t *timedEvents) add(e backends.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recorded == nil {
		t.recorded = map[backends.Event]bool{}
	}
	t.recorded[e] = false
	t.count.Store(int32(len(t.recorded)))
}

// note says that an event has been recorded, if it is one of them.
func (t *timedEvents) note(e backends.Event) {
	if recorded, timed := t.get(e); timed && !recorded {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.recorded[e] = true
	}
}

func (t *timedEvents) remove(e backends.Event) (was bool) {
	if _, was = t.get(e); was {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.recorded, e)
		t.count.Store(int32(len(t.recorded)))
	}
	return was
}

// flags are those of the driver's events that hold e's records.
func (t *timedEvents) flags(e backends.Event) uintptr {
	if _, timed := t.get(e); timed {
		return 0
	}
	return disableTiming
}
