//go:build trial

package trial

import (
	"fmt"
	"slices"
	"sync/atomic"

	"hamr/backends"
)

// handlesMade is of the whole process.
var handlesMade atomic.Uint64

const firstQueue = 0x7A1B0000

// event stands for what a queue held when it was recorded.
type event struct {
	device int
	timed  bool
	item   *item // nil until then
}

func (b *Backend) newQueue(device int) *queue {
	q := &queue{handle: backends.Stream(firstQueue + handlesMade.Add(1)), device: device}
	b.queues[q.handle] = q
	return q
}

// queueFor finds a stream that must be of a device.
func (b *Backend) queueFor(call string, s backends.Stream, device int) (*queue, error) {
	d, err := b.device(call, device)
	if err != nil {
		return nil, err
	}
	if s == 0 {
		return d.queue, nil
	}
	q, ok := b.queues[s]
	if !ok || q.device != device {
		return nil, b.violate(call, "%#x is no stream of device %d", s, device)
	}
	return q, nil
}

// Resolve knows zero as the queue of a device. There are no streams of threads.
func (b *Backend) Resolve(device int, s backends.Stream) (backends.Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Resolve"); err != nil {
		return 0, err
	}
	q, err := b.queueFor("Resolve", s, device)
	if err != nil {
		return 0, err
	}
	return q.handle, nil
}

// StreamDevice knows every stream that exists, and no other number.
func (b *Backend) StreamDevice(s backends.Stream) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("StreamDevice"); err != nil {
		return 0, err
	}
	if s == 0 {
		return backends.HostDevice, nil
	}
	if q, ok := b.queues[s]; ok {
		return q.device, nil
	}
	return 0, fmt.Errorf("%w at %#x", backends.ErrNoStream, uintptr(s))
}

// NewStream returns a queue.
func (b *Backend) NewStream(device int) (backends.Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("NewStream"); err != nil {
		return 0, err
	}
	if _, err := b.device("NewStream", device); err != nil {
		return 0, err
	}
	return b.newQueue(device).handle, nil
}

// DestroyStream returns at once; the work is still done.
func (b *Backend) DestroyStream(device int, s backends.Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("DestroyStream"); err != nil {
		return err
	}
	q, err := b.queueFor("DestroyStream", s, device)
	if err != nil {
		return err
	}
	if q == b.devices[device].queue {
		return b.violate("DestroyStream", "the queue of device %d itself", device)
	}
	delete(b.queues, s)
	return nil
}

// Synchronize does all that the queue holds.
func (b *Backend) Synchronize(device int, s backends.Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Synchronize"); err != nil {
		return err
	}
	q, err := b.queueFor("Synchronize", s, device)
	if err != nil {
		return err
	}
	b.finish(q.everything()...)
	return nil
}

// SynchronizeDevice does all work of a device, on queues that have ended, too.
func (b *Backend) SynchronizeDevice(device int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("SynchronizeDevice"); err != nil {
		return err
	}
	if _, err := b.device("SynchronizeDevice", device); err != nil {
		return err
	}
	b.finish(slices.DeleteFunc(slices.Clone(b.undone), func(i *item) bool { return i.device != device })...)
	return nil
}

// Idle does some work, so that polling ends.
func (b *Backend) Idle(device int, s backends.Stream) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Idle"); err != nil {
		return false, err
	}
	q, err := b.queueFor("Idle", s, device)
	if err != nil {
		return false, err
	}
	if len(q.everything()) == 0 {
		return true, nil
	}
	b.step()
	return false, nil
}

// NewEvent returns an event that stands for nothing yet.
func (b *Backend) NewEvent(device int) (backends.Event, error) {
	return b.newEvent("NewEvent", device, false)
}

func (b *Backend) newEvent(call string, device int, timed bool) (backends.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(call); err != nil {
		return 0, err
	}
	if _, err := b.device(call, device); err != nil {
		return 0, err
	}
	handle := backends.Event(firstQueue + handlesMade.Add(1))
	b.events[handle] = &event{device: device, timed: timed}
	return handle, nil
}

// event finds one that must be of a device; HostDevice is any.
func (b *Backend) event(call string, device int, handle backends.Event) (*event, error) {
	e, ok := b.events[handle]
	if !ok || (device != backends.HostDevice && e.device != device) {
		return nil, b.violate(call, "%#x is no event of device %d", handle, device)
	}
	return e, nil
}

// DestroyEvent leaves what waits for it waiting.
func (b *Backend) DestroyEvent(device int, handle backends.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("DestroyEvent"); err != nil {
		return err
	}
	_, err := b.event("DestroyEvent", device, handle)
	delete(b.events, handle)
	return err
}

// Record enqueues a marker behind everything.
func (b *Backend) Record(device int, handle backends.Event, s backends.Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Record"); err != nil {
		return err
	}
	e, err := b.event("Record", device, handle)
	if err != nil {
		return err
	}
	q, err := b.queueFor("Record", s, device)
	if err != nil {
		return err
	}
	e.item = b.enqueue(q, &item{what: "marker"}, q.everything()...)
	return nil
}

// Wait enqueues a barrier that runs after the event.
func (b *Backend) Wait(device int, s backends.Stream, handle backends.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Wait"); err != nil {
		return err
	}
	q, err := b.queueFor("Wait", s, device)
	if err != nil {
		return err
	}
	e, err := b.event("Wait", backends.HostDevice, handle)
	if err != nil || e.item == nil {
		return err
	}
	q.makeBarrier(b.enqueue(q, &item{what: "wait"}, append(q.everything(), e.item)...))
	return nil
}

// Done does some work, so that polling ends.
func (b *Backend) Done(device int, handle backends.Event) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Done"); err != nil {
		return false, err
	}
	e, err := b.event("Done", device, handle)
	if err != nil {
		return false, err
	}
	if e.item == nil || e.item.done {
		return true, nil
	}
	b.step()
	return false, nil
}

// SynchronizeEvent does the work that the event stands for.
func (b *Backend) SynchronizeEvent(device int, handle backends.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("SynchronizeEvent"); err != nil {
		return err
	}
	e, err := b.event("SynchronizeEvent", device, handle)
	if err != nil || e.item == nil {
		return err
	}
	b.finish(e.item)
	return nil
}
