package sycl

import (
	"fmt"
	"unsafe"

	"hamr/backends/internal/dl"
	"hamr/backends/internal/peek"
	"hamr/backends/internal/queues"
)

// driver implements queues.Runtime. A stream is a reference of dpctl's to a sycl::queue.
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
	properties := uintptr(queueInOrder)
	if d.timed {
		properties |= queueProfiling
	}
	handle, err := b.made(b.library.CreateQueue, d.context, d.handle, handler(), properties)
	if err != nil {
		return nil, err
	}
	return b.queues.Own(handle, d.number), nil
}

func (r driver) Release(queue uintptr) error {
	dl.Call(r.library.DeleteQueue, queue)
	return nil
}

// Inspect asks SYCL, once the handle looks like a queue's.
func (r driver) Inspect(call string, queue uintptr) (device int, ordered bool, err error) {
	is, err := r.isQueue(queue)
	if err != nil {
		return 0, false, err
	}
	if !is {
		return 0, false, queues.NoStream(queue)
	}
	if device, err = r.deviceOf(call, queue); err != nil {
		return 0, false, err
	}
	return device, truth(dl.Call(r.library.QueueIsInOrder, queue)), nil
}

// deviceOf is the device of somebody else's queue, which must be in the context that hamr uses there.
func (b *Backend) deviceOf(call string, handle uintptr) (int, error) {
	theirs, err := b.made(b.library.QueueDevice, handle)
	if err != nil {
		return 0, err
	}
	defer dl.Call(b.library.DeleteDevice, theirs)
	for number, d := range b.devices {
		if !truth(dl.Call(b.library.DevicesAreEqual, d.handle, theirs)) {
			continue
		}
		if _, err := b.device(call, number); err != nil {
			return 0, err
		}
		context, err := b.made(b.library.QueueContext, handle)
		if err != nil {
			return 0, err
		}
		defer dl.Call(b.library.DeleteContext, context)
		if !truth(dl.Call(b.library.ContextsAreEqual, context, d.context)) {
			return 0, invalid(call, fmt.Sprintf("the queue %#x is of another context than memory of hamr's on device %d: "+
				"make it in the default one, as dpctl.SyclQueue(device) does", handle, number))
		}
		return number, nil
	}
	return 0, invalid(call,
		fmt.Sprintf("the queue %#x is of a device that hamr does not know, as parts of devices are", handle))
}

// isQueue reports whether a handle looks like a reference to a queue. A sycl::queue is a
// std::shared_ptr, whose second word leads to the object that counts its users. That object begins with the
// table of functions of its class, which is the same for our own queues. Host memory may have been given
// another runtime's stream, which only this tells from a queue.
func (b *Backend) isQueue(handle uintptr) (bool, error) {
	var tables [2]uintptr
	d, err := b.device("StreamDevice", 0)
	if err != nil {
		return false, err
	}
	for i, each := range []uintptr{d.queue.Handle(), handle} {
		counter, readable, believed := peek.Word(each + wordSize)
		if readable {
			tables[i], readable, believed = peek.Word(counter)
		}
		if believed {
			return true, nil
		}
		if !readable {
			return false, nil
		}
	}
	return tables[0] == tables[1], nil
}

const wordSize = 8

// inOrder enqueues something after all that is on the queue.
//
//go:uintptrescapes
func (b *Backend) inOrder(q *queues.Queue, function uintptr, arguments ...uintptr) error {
	return b.queues.InOrder(q, func() error { return b.enqueue(function, arguments...) })
}

// enqueue calls an entry point that returns an event, and drops that.
//
//go:uintptrescapes
func (b *Backend) enqueue(function uintptr, arguments ...uintptr) error {
	event, err := b.made(function, arguments...)
	if err == nil {
		b.release(event)
	}
	return err
}

func (r driver) Barrier(queue uintptr) error { return r.enqueue(r.library.Barrier, queue) }

func (r driver) Mark(queue uintptr) (uintptr, error) { return r.made(r.library.Barrier, queue) }

// Finish blocks in a barrier's event: see library.
func (r driver) Finish(queue uintptr) error {
	event, err := r.Mark(queue)
	if err != nil {
		return err
	}
	defer r.release(event)
	return r.WaitFor(event)
}

// Behind enqueues a barrier. For an event of another device, whose context may be another one, it blocks
// the caller.
func (r driver) Behind(q *queues.Queue, event uintptr, device int) error {
	if device != q.Device {
		return r.WaitFor(event)
	}
	list := dl.OnHeap([1]uintptr{event})
	return r.inOrder(q, r.library.BarrierBehind, q.Handle(), uintptr(unsafe.Pointer(list)), 1)
}

func (driver) InvalidQueue(call, message string) error { return invalid(call, message) }

func (driver) InvalidEvent(call, message string) error { return invalid(call, message) }
