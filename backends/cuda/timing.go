package cuda

import (
	"fmt"
	"math"
	"time"

	"hamr/backends"
)

// NewTimedEvent returns an event that keeps the time, to half a microsecond.
func (b *orderFloor) NewTimedEvent(device int) (backends.Event, error) {
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
func (b *orderFloor) Elapsed(device int, from, to backends.Event) (time.Duration, error) {
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
