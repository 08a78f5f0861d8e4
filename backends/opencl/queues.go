package opencl

import (
	"fmt"
	"slices"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/peek"
	"hamr/backends/internal/queues"
)

const (
	queueContext    = 0x1090
	queueDevice     = 0x1091
	queueProperties = 0x1093

	// The most that hamr lets pile up on a queue that keeps no order. PoCL looks through all of that at
	// each barrier, and at each end of a command: 800 copies took it 40 ms, and 1600 of them 8 s.
	mostUnfinished = 256
)

// driver implements queues.Runtime.
type driver struct{ *Backend }

func (r driver) Default(call string, number int) (*queues.Queue, error) {
	d, err := r.device(call, number)
	if err != nil {
		return nil, err
	}
	return d.queue, nil
}

func (r driver) Create(number int) (*queues.Queue, error) { return r.newQueue(r.devices[number]) }

func (b *Backend) newQueue(d *device) (*queues.Queue, error) {
	handle, err := b.made(b.library.CreateCommandQueue, d.context, d.handle, queueProfiling)
	if err != nil {
		return nil, err
	}
	return b.queues.Own(handle, d.number), nil
}

func (r driver) Release(queue uintptr) error { return r.call(r.library.ReleaseCommandQueue, queue) }

// Inspect asks the driver, once the handle looks like a queue's.
func (r driver) Inspect(call string, queue uintptr) (device int, ordered bool, err error) {
	if !r.isObject(queue) {
		return 0, false, queues.NoStream(queue)
	}
	var facts [3]uint64
	for i, what := range []uintptr{queueContext, queueDevice, queueProperties} {
		value, code := info(r.library.GetCommandQueueInfo, queue, what)
		if code != success {
			return 0, false, failure("clGetCommandQueueInfo", code, "")
		}
		facts[i] = integer(value)
	}
	for _, d := range r.devices {
		if uint64(d.handle) != facts[1] {
			continue
		}
		if _, err := r.device(call, d.number); err != nil {
			return 0, false, err
		}
		if uint64(d.context) != facts[0] {
			return 0, false, failure(call, invalidContext,
				fmt.Sprintf("the queue %#x is of another context than memory of hamr's on device %d: "+
					"make it in that of a hamr stream of the device", queue, d.number))
		}
		return d.number, facts[2]&queueOutOfOrder == 0, nil
	}
	return 0, false, failure(call, invalidDevice,
		fmt.Sprintf("the queue %#x is of a device that hamr does not know", queue))
}

// isObject reports whether a handle looks like one of OpenCL's: each begins with the address of its
// platform's table of functions, which the loader calls without a check. Host memory may have been given
// another runtime's stream, which only this tells from a queue.
func (b *Backend) isObject(handle uintptr) bool {
	first, readable, believed := peek.Word(handle)
	return believed || readable && slices.ContainsFunc(b.devices, func(d *device) bool {
		table, _, _ := peek.Word(d.handle)
		return table == first
	})
}

// inOrder enqueues something after all that is on the queue, and has the driver begin.
func (b *Backend) inOrder(q *queues.Queue, enqueue func() error) error {
	if !q.Ordered && q.Unfinished() >= mostUnfinished {
		if err := b.queues.Finish(q); err != nil {
			return err
		}
	}
	if err := b.queues.InOrder(q, enqueue); err != nil {
		return err
	}
	// Another queue may wait only for events that were flushed.
	return b.call(b.library.Flush, q.Handle())
}

func (r driver) Barrier(queue uintptr) error {
	return r.call(r.library.EnqueueBarrier, queue, 0, 0, 0)
}

func (r driver) Finish(queue uintptr) error { return r.call(r.library.Finish, queue) }

// Mark enqueues a marker, whose event others may wait for.
func (r driver) Mark(queue uintptr) (uintptr, error) {
	marker := new(uintptr)
	if err := r.call(r.library.EnqueueMarker, queue, 0, 0, uintptr(unsafe.Pointer(marker))); err != nil {
		return 0, err
	}
	return *marker, r.call(r.library.Flush, queue)
}

// Behind enqueues a barrier. For an event of another device's context the barrier waits for an event of
// its own context, which a goroutine sets.
func (r driver) Behind(q *queues.Queue, event uintptr, device int) error {
	if device != q.Device {
		here, err := r.bridge(r.devices[q.Device], event)
		if err != nil {
			return err
		}
		defer r.Drop(here)
		event = here
	}
	list := &[1]uintptr{event}
	return r.inOrder(q, func() error {
		return r.call(r.library.EnqueueBarrier, q.Handle(), 1, uintptr(unsafe.Pointer(list)), 0)
	})
}

func (driver) InvalidQueue(call, message string) error { return failure(call, invalidDevice, message) }

func (driver) InvalidEvent(call, message string) error { return failure(call, invalidEvent, message) }

// queueOn returns the queue of a stream, and its device.
func (b *Backend) queueOn(call string, number int, s backends.Stream) (*queues.Queue, *device, error) {
	q, err := b.queues.On(call, number, s)
	if err != nil {
		return nil, nil, err
	}
	return q, b.devices[number], nil
}
