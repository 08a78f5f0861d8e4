package sycl

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const (
	statusComplete = 3
	firstOfEvents  = 1 << 40
)

// events are hamr's, under numbers: a sycl::event stands for one command, an event of hamr's for
// another one at each Record.
type events struct {
	list sync.Map // *event by backends.Event
	made atomic.Uint64
}

type event struct {
	device int
	timed  bool

	mutex  sync.Mutex
	handle uintptr // a reference to a sycl::event; zero until it is recorded
}

// NewEvent returns an event that stands for nothing yet.
func (b *Backend) NewEvent(number int) (backends.Event, error) { return b.newEvent(number, false) }

// NewTimedEvent returns an event for Elapsed.
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

// AdoptEvent takes a reference to a sycl::event, which it copies.
func (b *Backend) AdoptEvent(number int, handle uintptr) (backends.Event, error) {
	if _, err := b.device("AdoptEvent", number); err != nil {
		return 0, err
	}
	own, err := b.made(b.library.CopyEvent, handle)
	if err != nil {
		return 0, err
	}
	return b.events.add(&event{device: number, handle: own}), nil
}

func (b *Backend) event(call string, handle backends.Event) (*event, error) {
	found, ok := b.events.list.Load(handle)
	if !ok {
		return nil, invalid(call, fmt.Sprintf("%#x is no event of hamr's", uintptr(handle)))
	}
	return found.(*event), nil
}

// now is a reference for the caller to the sycl::event that e stands for, or zero.
func (b *Backend) now(call string, handle backends.Event) (*event, uintptr, error) {
	e, err := b.event(call, handle)
	if err != nil {
		return nil, 0, err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.handle == 0 {
		return e, 0, nil
	}
	own, err := b.made(b.library.CopyEvent, e.handle)
	return e, own, err
}

// become makes e stand for a sycl::event, whose reference it takes.
func (e *event) become(b *Backend, handle uintptr) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	b.release(e.handle)
	e.handle = handle
}

// release deletes a reference to a sycl::event, or to nothing.
func (b *Backend) release(handle uintptr) {
	if handle != 0 {
		dl.Call(b.library.DeleteEvent, handle)
	}
}

// over reports whether a sycl::event is complete.
func (b *Backend) over(handle uintptr) bool {
	return uint32(dl.Call(b.library.EventStatus, handle)) == statusComplete
}

// waitFor has asynchronous exceptions told to the handler. Of another one it only returns early.
func (b *Backend) waitFor(handle uintptr) error {
	dl.Call(b.library.WaitForEvent, handle)
	if err := b.late(b.library.WaitForEvent); err != nil {
		return err
	}
	if !b.over(handle) {
		return b.refused(b.library.WaitForEvent)
	}
	return nil
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

// Record enqueues a barrier, which comes after everything on queues out of order, too.
func (b *Backend) Record(number int, handle backends.Event, s backends.Stream) error {
	e, err := b.event("Record", handle)
	if err != nil {
		return err
	}
	q, err := b.queueOn("Record", number, s)
	if err != nil {
		return err
	}
	marker, err := b.made(b.library.Barrier, q.handle())
	if err == nil {
		e.become(b, marker)
	}
	return err
}

// Wait enqueues a barrier. For an event of another device, whose context may be another one, it blocks the
// caller.
func (b *Backend) Wait(number int, s backends.Stream, handle backends.Event) error {
	q, err := b.queueOn("Wait", number, s)
	if err != nil {
		return err
	}
	e, after, err := b.now("Wait", handle)
	if err != nil || after == 0 {
		return err
	}
	defer b.release(after)
	if b.over(after) {
		return nil
	}
	if e.device != number {
		return b.waitFor(after)
	}
	list := onHeap([1]uintptr{after})
	return b.inOrder(q, b.library.BarrierBehind, q.handle(), uintptr(unsafe.Pointer(list)), 1)
}

// Done reports what has failed on any queue, too.
func (b *Backend) Done(_ int, handle backends.Event) (bool, error) {
	_, now, err := b.now("Done", handle)
	if err != nil || now == 0 {
		return err == nil, err
	}
	defer b.release(now)
	return b.over(now), b.late(b.library.EventStatus)
}

// SynchronizeEvent blocks until the event is complete.
func (b *Backend) SynchronizeEvent(_ int, handle backends.Event) error {
	_, now, err := b.now("SynchronizeEvent", handle)
	if err != nil || now == 0 {
		return err
	}
	defer b.release(now)
	return b.waitFor(now)
}

// Elapsed compares when the barriers were over, by the device's clock in nanoseconds.
func (b *Backend) Elapsed(_ int, from, to backends.Event) (time.Duration, error) {
	var ends [2]uint64
	for i, handle := range [...]backends.Event{from, to} {
		e, now, err := b.now("Elapsed", handle)
		if err != nil {
			return 0, err
		}
		defer b.release(now)
		switch {
		case !e.timed:
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrUntimed)
		case now == 0:
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrNotRecorded)
		case !b.over(now):
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrNotDone)
		}
		if ends[i] = uint64(dl.Call(b.library.EventEnd, now)); ends[i] == 0 { // on a queue without times
			return 0, fmt.Errorf("event %#x: %w", uintptr(handle), backends.ErrUntimed)
		}
	}
	return time.Duration(ends[1] - ends[0]), nil
}
