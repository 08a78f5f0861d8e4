package opencl

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"hamr/backends"
)

const (
	eventStatus   = 0x11D3
	profilingEnd  = 0x1283
	complete      = 0 // statuses above are before it, those below are errors
	firstOfEvents = 1 << 40
)

// events are hamr's, under numbers: a cl_event stands for one command, an event of hamr's for
// another one at each Record.
type events struct {
	list sync.Map // *event by backends.Event
	made atomic.Uint64
}

type event struct {
	device int
	timed  bool

	mutex   sync.Mutex
	adopted bool
	handle  uintptr // a cl_event; zero until it is recorded
}

// NewEvent returns an event that stands for nothing yet.
func (b *Backend) NewEvent(number int) (backends.Event, error) { return b.newEvent(number, false) }

// NewTimedEvent returns an event for Elapsed, which on hamr's own queues every event could be.
func (b *Backend) NewTimedEvent(number int) (backends.Event, error) { return b.newEvent(number, true) }

func (b *Backend) newEvent(number int, timed bool) (backends.Event, error) {
	if _, err := b.device("NewEvent", number); err != nil {
		return 0, err
	}
	return b.events.add(&event{device: number, timed: timed}), nil
}

func (list *events) add(e *event) backends.Event {
	handle := backends.Event(firstOfEvents + list.made.Add(1))
	list.list.Store(handle, e)
	return handle
}

// AdoptEvent takes a cl_event, to which it adds a reference.
func (b *Backend) AdoptEvent(number int, handle uintptr) (backends.Event, error) {
	if _, err := b.device("AdoptEvent", number); err != nil {
		return 0, err
	}
	if err := b.call(b.library.RetainEvent, handle); err != nil {
		return 0, err
	}
	return b.events.add(&event{device: number, adopted: true, handle: handle}), nil
}

func (b *Backend) event(call string, handle backends.Event) (*event, error) {
	found, ok := b.events.list.Load(handle)
	if !ok {
		return nil, failure(call, -58, fmt.Sprintf("%#x is no event of hamr's", uintptr(handle)))
	}
	return found.(*event), nil
}

// now is the cl_event that e stands for, with a reference for the caller, or zero.
func (e *event) now(b *Backend) (uintptr, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.handle == 0 {
		return 0, nil
	}
	return e.handle, b.call(b.library.RetainEvent, e.handle)
}

// become makes e stand for a cl_event, whose reference it takes.
func (e *event) become(b *Backend, handle uintptr) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	b.release(e.handle)
	e.handle = handle
}

// release drops a reference to a cl_event, or to nothing.
func (b *Backend) release(handle uintptr) {
	if handle != 0 {
		_ = b.call(b.library.ReleaseEvent, handle)
	}
}

// status is that of a cl_event.
func (b *Backend) status(handle uintptr) (int32, error) {
	value, code := info(b.library.GetEventInfo, handle, eventStatus)
	if code != success {
		return 0, failure("clGetEventInfo", code, "")
	}
	return int32(integer(value)), nil
}

// DestroyEvent leaves what waits for it waiting.
func (b *Backend) DestroyEvent(_ int, handle backends.Event) error {
	e, err := b.event("DestroyEvent", handle)
	if err != nil {
		return err
	}
	b.events.list.Delete(handle)
	e.become(b, 0)
	return nil
}

// Record enqueues a marker, which comes after everything on queues out of order, too.
func (b *Backend) Record(number int, handle backends.Event, s backends.Stream) error {
	e, err := b.event("Record", handle)
	if err != nil {
		return err
	}
	q, err := b.queueOn("Record", number, s)
	if err != nil {
		return err
	}
	marker := new(uintptr)
	if err := b.call(b.library.EnqueueMarker, q.handle(), 0, 0, uintptr(unsafe.Pointer(marker))); err != nil {
		return err
	}
	e.become(b, *marker)
	return b.call(b.library.Flush, q.handle())
}

// Wait enqueues a barrier. For an event of another device's context that waits for an event of
// its own, which a goroutine sets.
func (b *Backend) Wait(number int, s backends.Stream, handle backends.Event) error {
	e, err := b.event("Wait", handle)
	if err != nil {
		return err
	}
	q, err := b.queueOn("Wait", number, s)
	if err != nil {
		return err
	}
	after, err := e.now(b)
	if err != nil || after == 0 {
		return err
	}
	defer b.release(after)
	if status, err := b.status(after); err == nil && status == complete {
		return nil
	}
	if e.device != number {
		if after, err = b.bridge(q.device, after); err != nil {
			return err
		}
		defer b.release(after)
	}
	list := &[1]uintptr{after}
	return b.inOrder(q, func() error {
		return b.call(b.library.EnqueueBarrier, q.handle(), 1, uintptr(unsafe.Pointer(list)), 0)
	})
}

// bridge returns an event of a device's context that is complete when one of another is.
func (b *Backend) bridge(d *device, after uintptr) (uintptr, error) {
	here, err := b.made(b.library.CreateUserEvent, d.context)
	if err != nil {
		return 0, err
	}
	for _, each := range []uintptr{here, after} { // the goroutine's own
		if err := b.call(b.library.RetainEvent, each); err != nil {
			return 0, err
		}
	}
	go func() {
		status := int32(complete)
		var failed *backends.DeviceError
		if err := b.waitFor(after); errors.As(err, &failed) {
			status = int32(failed.Code)
		}
		_ = b.call(b.library.SetUserEventStatus, here, uintptr(uint32(status)))
		b.release(after)
		b.release(here)
	}()
	return here, nil
}

func (b *Backend) waitFor(handle uintptr) error {
	list := &[1]uintptr{handle}
	return b.call(b.library.WaitForEvents, 1, uintptr(unsafe.Pointer(list)))
}

// Done reports the error of what the event stands for, too.
func (b *Backend) Done(_ int, handle backends.Event) (bool, error) {
	e, err := b.event("Done", handle)
	if err != nil {
		return false, err
	}
	now, err := e.now(b)
	if err != nil || now == 0 {
		return err == nil, err
	}
	defer b.release(now)
	status, err := b.status(now)
	if err == nil && status < complete {
		err = failure("clGetEventInfo", status, "what the event stands for has failed")
	}
	return err == nil && status == complete, err
}

// SynchronizeEvent blocks in clWaitForEvents.
func (b *Backend) SynchronizeEvent(_ int, handle backends.Event) error {
	e, err := b.event("SynchronizeEvent", handle)
	if err != nil {
		return err
	}
	now, err := e.now(b)
	if err != nil || now == 0 {
		return err
	}
	defer b.release(now)
	return b.waitFor(now)
}

// Elapsed compares when the markers were over, by the device's clock in nanoseconds.
func (b *Backend) Elapsed(_ int, from, to backends.Event) (time.Duration, error) {
	var ends [2]uint64
	for i, handle := range [...]backends.Event{from, to} {
		e, err := b.event("Elapsed", handle)
		if err != nil {
			return 0, err
		}
		now, err := e.now(b)
		if err != nil {
			return 0, err
		}
		defer b.release(now)
		if !e.timed {
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrUntimed)
		}
		if now == 0 {
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrNotRecorded)
		}
		if status, err := b.status(now); err != nil || status > complete {
			return 0, errors.Join(err, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrNotDone))
		}
		value, code := info(b.library.GetEventProfilingInfo, now, profilingEnd)
		switch code {
		case success:
			ends[i] = integer(value)
		case profilingUnavailable: // on a queue that somebody else made
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrUntimed)
		default:
			return 0, failure("clGetEventProfilingInfo", code, "")
		}
	}
	return time.Duration(ends[1] - ends[0]), nil
}
