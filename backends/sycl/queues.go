package sycl

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/peek"
)

const (
	// Numbers below are no addresses of queues.
	leastQueue = 4096

	// How long Idle waits for a barrier on a queue that hamr knows of nothing on, and on others.
	patience, briefly = 20 * time.Millisecond, 100 * time.Microsecond
	pause             = 20 * time.Microsecond
)

// queue is a sycl::queue in a device's context, by the reference of dpctl's that is its handle: one of
// ours, or what is to be known of somebody else's.
type queue struct {
	stream  backends.Stream
	device  *device
	inOrder bool
	own     bool

	given atomic.Int64 // how many things were enqueued, and how many of them
	seen  atomic.Int64 // were seen to be over

	mutex  sync.Mutex
	marker uintptr // an event that Idle waits for, or zero
	behind int64   // given when it was enqueued
}

func (q *queue) handle() uintptr { return uintptr(q.stream) }

func (b *Backend) newQueue(d *device) (*queue, error) {
	properties := uintptr(queueInOrder)
	if d.timed {
		properties |= queueProfiling
	}
	handle, err := b.made(b.library.CreateQueue, d.context, d.handle, handler(), properties)
	if err != nil {
		return nil, err
	}
	q := &queue{stream: backends.Stream(handle), device: d, inOrder: true, own: true}
	b.queues.Store(q.stream, q)
	return q, nil
}

// queueOf finds a queue of some device. Of a queue that somebody else made no more is kept than
// one that takes its place at the same address may have changed.
func (b *Backend) queueOf(call string, s backends.Stream) (*queue, error) {
	if s < leastQueue {
		return nil, fmt.Errorf("%w at %#x", backends.ErrNoStream, uintptr(s))
	}
	found, known := b.queues.Load(s)
	if known && found.(*queue).own {
		return found.(*queue), nil
	}
	is, err := b.isQueue(uintptr(s))
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, fmt.Errorf("%w at %#x", backends.ErrNoStream, uintptr(s))
	}
	d, err := b.deviceOf(call, uintptr(s))
	if err != nil {
		return nil, err
	}
	inOrder := truth(dl.Call(b.library.QueueIsInOrder, uintptr(s)))
	if q, ok := found.(*queue); ok && q.device == d && q.inOrder == inOrder {
		return q, nil
	}
	q := &queue{stream: s, device: d, inOrder: inOrder}
	b.queues.Store(s, q)
	return q, nil
}

// deviceOf is the device of somebody else's queue, which must be in the context that hamr works in there.
func (b *Backend) deviceOf(call string, handle uintptr) (*device, error) {
	theirs, err := b.made(b.library.QueueDevice, handle)
	if err != nil {
		return nil, err
	}
	defer dl.Call(b.library.DeleteDevice, theirs)
	for number, d := range b.devices {
		if !truth(dl.Call(b.library.DevicesAreEqual, d.handle, theirs)) {
			continue
		}
		if _, err := b.device(call, number); err != nil {
			return nil, err
		}
		context, err := b.made(b.library.QueueContext, handle)
		if err != nil {
			return nil, err
		}
		defer dl.Call(b.library.DeleteContext, context)
		if !truth(dl.Call(b.library.ContextsAreEqual, context, d.context)) {
			return nil, invalid(call, fmt.Sprintf("the queue %#x is of another context than memory of hamr's on device %d: "+
				"make it in the default one, as dpctl.SyclQueue(device) does", handle, number))
		}
		return d, nil
	}
	return nil, invalid(call, fmt.Sprintf("the queue %#x is of a device that hamr does not know, as parts of devices are",
		handle))
}

// isQueue reports whether a handle looks like a reference to a queue. A sycl::queue is a
// std::shared_ptr, whose second word leads to the object that counts its users, which begins with the
// table of functions of its class: that of our own queues. Host memory may have been given
// another runtime's stream, and it can be told from a queue only so.
func (b *Backend) isQueue(handle uintptr) (bool, error) {
	var tables [2]uintptr
	d, err := b.device("StreamDevice", 0)
	if err != nil {
		return false, err
	}
	for i, each := range []uintptr{d.queue.handle(), handle} {
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

// queueOn finds a stream that must be of a device.
func (b *Backend) queueOn(call string, number int, s backends.Stream) (*queue, error) {
	d, err := b.device(call, number)
	if err != nil {
		return nil, err
	}
	if s == 0 {
		return d.queue, nil
	}
	q, err := b.queueOf(call, s)
	if err == nil && q.device != d {
		err = invalid(call, fmt.Sprintf("the queue %#x is of device %d, and the memory of %d", uintptr(s),
			q.device.number, d.number))
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// inOrder enqueues something between barriers, where the queue keeps no order.
//
//go:uintptrescapes
func (b *Backend) inOrder(q *queue, function uintptr, arguments ...uintptr) error {
	q.given.Add(1)
	if !q.inOrder {
		if err := b.enqueue(b.library.Barrier, q.handle()); err != nil {
			return err
		}
	}
	if err := b.enqueue(function, arguments...); err != nil {
		return err
	}
	if q.inOrder {
		return nil
	}
	return b.enqueue(b.library.Barrier, q.handle())
}

// enqueue calls an entry point that returns an event, and lets go of that.
//
//go:uintptrescapes
func (b *Backend) enqueue(function uintptr, arguments ...uintptr) error {
	event, err := b.made(function, arguments...)
	if err == nil {
		b.release(event)
	}
	return err
}

// Resolve knows zero as the default queue of a device. There are no queues of threads.
func (b *Backend) Resolve(number int, s backends.Stream) (backends.Stream, error) {
	q, err := b.queueOn("Resolve", number, s)
	if err != nil {
		return 0, err
	}
	return q.stream, nil
}

// StreamDevice asks SYCL of queues that somebody else has made. What it does of addresses of something
// else that looks like one is undefined.
func (b *Backend) StreamDevice(s backends.Stream) (int, error) {
	if s == 0 {
		return backends.HostDevice, nil
	}
	q, err := b.queueOf("StreamDevice", s)
	if err != nil {
		return 0, err
	}
	return q.device.number, nil
}

// NewStream returns a queue that keeps its order and, where the device can, its events' times.
func (b *Backend) NewStream(number int) (backends.Stream, error) {
	d, err := b.device("NewStream", number)
	if err != nil {
		return 0, err
	}
	q, err := b.newQueue(d)
	if err != nil {
		return 0, err
	}
	return q.stream, nil
}

// DestroyStream deletes hamr's reference: others may have their own, and work is still done.
func (b *Backend) DestroyStream(number int, s backends.Stream) error {
	q, err := b.queueOn("DestroyStream", number, s)
	if err != nil {
		return err
	}
	b.queues.Delete(s)
	q.mutex.Lock()
	b.release(q.marker)
	q.marker = 0
	q.mutex.Unlock()
	dl.Call(b.library.DeleteQueue, q.handle())
	return nil
}

// Synchronize blocks in a barrier's event: see library.
func (b *Backend) Synchronize(number int, s backends.Stream) error {
	q, err := b.queueOn("Synchronize", number, s)
	if err != nil {
		return err
	}
	given := q.given.Load()
	if err := b.finish(q); err != nil {
		return err
	}
	q.saw(given)
	return nil
}

func (b *Backend) finish(q *queue) error {
	event, err := b.made(b.library.Barrier, q.handle())
	if err != nil {
		return err
	}
	defer b.release(event)
	return b.waitFor(event)
}

// saw says that the first so many things are over.
func (q *queue) saw(given int64) {
	for {
		before := q.seen.Load()
		if before >= given || q.seen.CompareAndSwap(before, given) {
			return
		}
	}
}

// Idle asks a barrier, since the library says nothing of queues. On a queue that does nothing a
// barrier is over in no time: that it takes its time says no more than that the queue is not idle.
func (b *Backend) Idle(number int, s backends.Stream) (bool, error) {
	q, err := b.queueOn("Idle", number, s)
	if err != nil {
		return false, err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if !b.passed(q) {
		return false, nil
	}
	wait := patience
	if q.behind = q.given.Load(); q.seen.Load() < q.behind {
		wait = briefly
	}
	if q.marker, err = b.made(b.library.Barrier, q.handle()); err != nil {
		return false, err
	}
	for begun := time.Now(); ; time.Sleep(pause) {
		if over := b.passed(q); over || time.Since(begun) > wait {
			return over, b.late(b.library.EventStatus)
		}
	}
}

// passed reports whether the queue has come to its marker, and then drops that.
func (b *Backend) passed(q *queue) bool {
	if q.marker == 0 {
		return true
	}
	if !b.over(q.marker) {
		return false
	}
	b.release(q.marker)
	q.marker = 0
	q.saw(q.behind)
	return true
}
