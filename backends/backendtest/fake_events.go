package backendtest

import (
	"fmt"
	"time"

	"hamr/backends"
)

type fakeEvent struct {
	device int
	timed  bool
	point  *point // nil until recorded
}

func (f *fakeOrder) event(call string, device int, e backends.Event) (*fakeEvent, error) {
	found, ok := f.events[e]
	if !ok {
		return nil, f.violate(call, "unknown event %#x", e)
	}
	if found.device != device {
		return nil, f.violate(call, "event %#x of device %d used for device %d: wrong device", e, found.device, device)
	}
	return found, nil
}

// NewEvent returns an event that counts as done until it is recorded.
func (f *fakeOrder) NewEvent(device int) (backends.Event, error) {
	return f.newEvent("NewEvent", device, false)
}

// NewTimedEvent returns an event for Elapsed.
func (f *fakeOrder) NewTimedEvent(device int) (backends.Event, error) {
	return f.newEvent("NewTimedEvent", device, true)
}

func (f *fakeOrder) newEvent(call string, device int, timed bool) (backends.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(call, "device %d", device); err != nil {
		return 0, err
	}
	if err := f.checkDevice(call, device); err != nil {
		return 0, err
	}
	e := backends.Event(f.newHandle())
	f.events[e] = &fakeEvent{device: device, timed: timed}
	return e, nil
}

// Elapsed is by the host's clock.
func (f *fakeOrder) Elapsed(device int, from, to backends.Event) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Elapsed", "device %d, events %#x and %#x", device, from, to); err != nil {
		return 0, err
	}
	var reached [2]time.Time
	for i, e := range [...]backends.Event{from, to} {
		event, err := f.event("Elapsed", device, e)
		switch {
		case err != nil:
			return 0, err
		case !event.timed:
			return 0, fmt.Errorf("event %#x: %w", e, backends.ErrUntimed)
		case event.point == nil:
			return 0, fmt.Errorf("event %#x: %w", e, backends.ErrNotRecorded)
		case !event.point.done:
			return 0, fmt.Errorf("event %#x: %w", e, backends.ErrNotDone)
		}
		reached[i] = event.point.reached
	}
	return reached[1].Sub(reached[0]), nil
}

// DestroyEvent leaves waits that were queued before in force.
func (f *fakeOrder) DestroyEvent(device int, e backends.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("DestroyEvent", "device %d, event %#x", device, e); err != nil {
		return err
	}
	if _, err := f.event("DestroyEvent", device, e); err != nil {
		return err
	}
	delete(f.events, e)
	f.retire(uint64(e))
	return nil
}

// Record needs an event and a stream of the same device.
func (f *fakeOrder) Record(device int, e backends.Event, s backends.Stream) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Record", "device %d, event %#x, stream %#x", device, e, s); err != nil {
		return err
	}
	event, err := f.event("Record", device, e)
	if err != nil {
		return err
	}
	stream, err := f.stream("Record", device, s)
	if err != nil {
		return err
	}
	event.point = &point{stream: stream}
	f.enqueue(stream, task{point: event.point})
	return nil
}

// Wait takes an event of any device. A later Record of e does not change it.
func (f *fakeOrder) Wait(device int, s backends.Stream, e backends.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Wait", "device %d, stream %#x, event %#x", device, s, e); err != nil {
		return err
	}
	stream, err := f.stream("Wait", device, s)
	if err != nil {
		return err
	}
	event, ok := f.events[e]
	if !ok {
		return f.violate("Wait", "unknown event %#x", e)
	}
	switch {
	case event.point == nil || event.point.done:
	case f.platform(event.point.stream.device) != f.platform(device):
		f.reach(event.point)
		return event.point.stream.takeError()
	default:
		f.enqueue(stream, task{after: event.point})
	}
	return nil
}

// Done does one item when FakeOptions.Manual is set, so that polling ends.
func (f *fakeOrder) Done(device int, e backends.Event) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Done", "device %d, event %#x", device, e); err != nil {
		return false, err
	}
	event, err := f.event("Done", device, e)
	if err != nil {
		return false, err
	}
	if event.point == nil {
		return true, nil
	}
	if event.point.done {
		return true, event.point.stream.takeError()
	}
	if f.options.Manual && !f.options.Still {
		f.step(event.point.stream)
	}
	return false, nil
}

// SynchronizeEvent does the work that e stands for.
func (f *fakeOrder) SynchronizeEvent(device int, e backends.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("SynchronizeEvent", "device %d, event %#x", device, e); err != nil {
		return err
	}
	event, err := f.event("SynchronizeEvent", device, e)
	if err != nil || event.point == nil {
		return err
	}
	f.reach(event.point)
	return event.point.stream.takeError()
}

// VendorEvent implements EventProducer: the event is its producer's own, in no table of the Fake's.
func (f *fakeOrder) VendorEvent(device int, s backends.Stream) (handle uintptr, release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("VendorEvent", "device %d, stream %#x", device, s); err != nil {
		return 0, nil, err
	}
	stream, err := f.stream("VendorEvent", device, s)
	if err != nil {
		return 0, nil, err
	}
	p := &point{stream: stream}
	f.enqueue(stream, task{point: p})
	handle = uintptr(f.newHandle())
	f.produced[handle] = p
	return handle, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.produced, handle)
	}, nil
}

// AdoptEvent knows what VendorEvent has made, until that is released.
func (f *fakeOrder) AdoptEvent(device int, handle uintptr) (backends.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("AdoptEvent", "device %d, event %#x", device, handle); err != nil {
		return 0, err
	}
	p, ok := f.produced[handle]
	if !ok || p.stream.device != device {
		return 0, f.violate("AdoptEvent", "%#x is no event of device %d", handle, device)
	}
	e := backends.Event(f.newHandle())
	f.events[e] = &fakeEvent{device: device, point: p}
	return e, nil
}
