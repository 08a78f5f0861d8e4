package cuda

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hamr/backends"
)

// timedEvents are the events that keep the time, which are not reused, and whether each was
// recorded: the driver has one code for an event without a record and one without timing.
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

// NewTimedEvent returns an event that keeps the time, to half a microsecond.
func (b *Backend) NewTimedEvent(device int) (backends.Event, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	handle, err := v.createEvent(0)
	if err != nil {
		return 0, err
	}
	b.timed.add(backends.Event(handle))
	return backends.Event(handle), nil
}

// Elapsed asks the driver, which keeps the time as a float32 of milliseconds.
func (b *Backend) Elapsed(device int, from, to backends.Event) (time.Duration, error) {
	for _, e := range [...]backends.Event{from, to} {
		switch recorded, timed := b.timed.get(e); {
		case !timed:
			return 0, fmt.Errorf("event %#x: %w", uintptr(e), backends.ErrUntimed)
		case !recorded:
			return 0, fmt.Errorf("event %#x: %w", uintptr(e), backends.ErrNotRecorded)
		}
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	elapsed := b.driver.EventElapsed
	if b.driver.EventElapsedNow != 0 {
		elapsed = b.driver.EventElapsedNow
	}
	over, err := b.answered(elapsed, v.slot(0), b.recordOf(from), b.recordOf(to))
	if err == nil && !over {
		err = fmt.Errorf("events %#x and %#x: %w", uintptr(from), uintptr(to), backends.ErrNotDone)
	}
	if err != nil {
		return 0, err
	}
	milliseconds := math.Float32frombits(uint32(v.out[0]))
	return time.Duration(float64(milliseconds) * float64(time.Millisecond)), nil
}
