package opencl

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/peek"
)

const (
	queueContext    = 0x1090
	queueDevice     = 0x1091
	queueProperties = 0x1093

	// Numbers below are no addresses of queues.
	leastQueue = 4096

	// How long Idle waits for a marker on a queue that hamr knows of nothing on, and on others.
	patience, briefly = 20 * time.Millisecond, 100 * time.Microsecond
	pause             = 20 * time.Microsecond

	// The most that hamr lets pile up on a queue that keeps no order. PoCL looks through all of that at
	// each barrier, and at each end of a command: 800 copies took it 40 ms, and 1600 of them 8 s.
	mostUnfinished = 256
)

// queue is a cl_command_queue in a device's context: one of ours, or what is to be known of
// somebody else's.
type queue struct {
	stream     backends.Stream
	device     *device
	outOfOrder bool
	own        bool

	given atomic.Int64 // how many things were enqueued, and how many of them
	seen  atomic.Int64 // were seen to be over

	mutex  sync.Mutex
	marker uintptr // an event that Idle waits for, or zero
	behind int64   // given when it was enqueued
}

func (q *queue) handle() uintptr { return uintptr(q.stream) }

func (b *Backend) newQueue(d *device) (*queue, error) {
	handle, err := b.made(b.library.CreateCommandQueue, d.context, d.handle, queueProfiling)
	if err != nil {
		return nil, err
	}
	q := &queue{stream: backends.Stream(handle), device: d, own: true}
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
	if !b.isObject(uintptr(s)) {
		return nil, fmt.Errorf("%w at %#x", backends.ErrNoStream, uintptr(s))
	}
	var facts [3]uint64
	for i, what := range []uintptr{queueContext, queueDevice, queueProperties} {
		value, code := info(b.library.GetCommandQueueInfo, uintptr(s), what)
		if code != success {
			return nil, failure("clGetCommandQueueInfo", code, "")
		}
		facts[i] = integer(value)
	}
	for _, d := range b.devices {
		if uint64(d.handle) != facts[1] {
			continue
		}
		if _, err := b.device(call, d.number); err != nil {
			return nil, err
		}
		if uint64(d.context) != facts[0] {
			return nil, failure(call, invalidContext,
				fmt.Sprintf("the queue %#x is of another context than memory of hamr's on device %d: "+
					"make it in that of a hamr stream of the device", uintptr(s), d.number))
		}
		if q, ok := found.(*queue); ok && q.device == d && q.outOfOrder == (facts[2]&queueOutOfOrder != 0) {
			return q, nil
		}
		q := &queue{stream: s, device: d, outOfOrder: facts[2]&queueOutOfOrder != 0}
		b.queues.Store(s, q)
		return q, nil
	}
	return nil, failure(call, invalidDevice,
		fmt.Sprintf("the queue %#x is of a device that hamr does not know", uintptr(s)))
}

// isObject reports whether a handle looks like one of OpenCL's: each begins with the address of its
// platform's table of functions, which the loader jumps to unseen. Host memory may have been given
// another runtime's stream, and it can be told from a queue only so.
func (b *Backend) isObject(handle uintptr) bool {
	first, readable, believed := peek.Word(handle)
	return believed || readable && slices.ContainsFunc(b.devices, func(d *device) bool {
		table, _, _ := peek.Word(d.handle)
		return table == first
	})
}

// queueFor finds a stream that must be of a device.
func (b *Backend) queueFor(call string, d *device, s backends.Stream) (*queue, error) {
	if s == 0 {
		return d.queue, nil
	}
	q, err := b.queueOf(call, s)
	if err == nil && q.device != d {
		err = failure(call, invalidDevice,
			fmt.Sprintf("the queue %#x is of device %d, and the memory of %d", uintptr(s), q.device.number, d.number))
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (b *Backend) queueOn(call string, number int, s backends.Stream) (*queue, error) {
	d, err := b.device(call, number)
	if err != nil {
		return nil, err
	}
	return b.queueFor(call, d, s)
}

// inOrder enqueues something between barriers, where the queue keeps no order, and has the
// driver begin.
func (b *Backend) inOrder(q *queue, enqueue func() error) error {
	if given := q.given.Add(1); q.outOfOrder {
		if given-q.seen.Load() > mostUnfinished {
			if err := b.call(b.library.Finish, q.handle()); err != nil {
				return err
			}
			q.saw(given - 1)
		}
		if err := b.barrier(q); err != nil {
			return err
		}
	}
	if err := enqueue(); err != nil {
		return err
	}
	if q.outOfOrder {
		if err := b.barrier(q); err != nil {
			return err
		}
	}
	// Events of one queue may be waited for on another one only once they were flushed.
	return b.call(b.library.Flush, q.handle())
}

func (b *Backend) barrier(q *queue) error {
	return b.call(b.library.EnqueueBarrier, q.handle(), 0, 0, 0)
}

// Resolve knows zero as the default queue of a device. There are no queues of threads.
func (b *Backend) Resolve(number int, s backends.Stream) (backends.Stream, error) {
	q, err := b.queueOn("Resolve", number, s)
	if err != nil {
		return 0, err
	}
	return q.stream, nil
}

// StreamDevice asks the driver of queues that somebody else has made. What it does of addresses
// of something else is undefined.
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

// NewStream returns a queue that keeps its order and its events' times.
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

// DestroyStream drops hamr's reference: others may have their own, and work is still done.
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
	return b.call(b.library.ReleaseCommandQueue, q.handle())
}

// Synchronize blocks in clFinish.
func (b *Backend) Synchronize(number int, s backends.Stream) error {
	q, err := b.queueOn("Synchronize", number, s)
	if err != nil {
		return err
	}
	given := q.given.Load()
	if err := b.call(b.library.Finish, q.handle()); err != nil {
		return err
	}
	q.saw(given)
	return nil
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

// Idle asks a marker, since OpenCL says nothing of queues. On a queue that does nothing a marker
// is over in no time: that it takes its time says no more than that the queue is not idle.
func (b *Backend) Idle(number int, s backends.Stream) (bool, error) {
	q, err := b.queueOn("Idle", number, s)
	if err != nil {
		return false, err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if over, err := b.passed(q); err != nil || !over {
		return false, err
	}
	wait := patience
	if q.behind = q.given.Load(); q.seen.Load() < q.behind {
		wait = briefly
	}
	marker := new(uintptr)
	if err := b.call(b.library.EnqueueMarker, q.handle(), 0, 0, uintptr(unsafe.Pointer(marker))); err != nil {
		return false, err
	}
	q.marker = *marker
	if err := b.call(b.library.Flush, q.handle()); err != nil {
		return false, err
	}
	for begun := time.Now(); ; time.Sleep(pause) {
		if over, err := b.passed(q); over || err != nil || time.Since(begun) > wait {
			return over, err
		}
	}
}

// passed reports whether the queue has come to its marker, and then drops that.
func (b *Backend) passed(q *queue) (bool, error) {
	if q.marker == 0 {
		return true, nil
	}
	status, err := b.status(q.marker)
	if err == nil && status > complete {
		return false, nil
	}
	b.release(q.marker)
	q.marker = 0
	if err == nil && status < complete {
		err = failure("clEnqueueMarkerWithWaitList", status, "what was enqueued before has failed")
	}
	q.saw(q.behind)
	return err == nil, err
}
