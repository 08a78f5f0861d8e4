//go:build trial

package trial

import (
	"fmt"
	"time"

	"hamr/backends"
)

// NewTimedEvent returns an event for Elapsed.
func (b *Backend) NewTimedEvent(device int) (backends.Event, error) {
	return b.newEvent("NewTimedEvent", device, true)
}

// Elapsed is by the host's clock.
func (b *Backend) Elapsed(device int, from, to backends.Event) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Elapsed"); err != nil {
		return 0, err
	}
	var over [2]time.Time
	for i, handle := range [...]backends.Event{from, to} {
		e, err := b.event("Elapsed", device, handle)
		switch {
		case err != nil:
			return 0, err
		case !e.timed:
			return 0, fmt.Errorf("event %#x: %w", handle, backends.ErrUntimed)
		case e.item == nil:
			return 0, fmt.Errorf("event %#x: %w", handle, backends.ErrNotRecorded)
		case !e.item.done:
			return 0, fmt.Errorf("event %#x: %w", handle, backends.ErrNotDone)
		}
		over[i] = e.item.over
	}
	return over[1].Sub(over[0]), nil
}
