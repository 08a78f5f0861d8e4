package queues

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// leastQueue is the lowest address of a queue.
const leastQueue = 4096

// Queue is a queue of a device: one of ours, or what is known of somebody else's.
type Queue struct {
	Stream  backends.Stream
	Device  int
	Ordered bool
	own     bool

	given atomic.Int64 // how many pieces of work were enqueued
	seen  atomic.Int64 // how many of these are known to be over

	mutex  sync.Mutex
	marker uintptr // the event that Idle asks, or zero
	behind int64   // given when the marker was enqueued
}

// Handle returns the runtime's handle.
func (q *Queue) Handle() uintptr { return uintptr(q.Stream) }

// Unfinished returns how many pieces of work are not known to be over.
func (q *Queue) Unfinished() int { return int(q.given.Load() - q.seen.Load()) }

// saw notes that the first pieces of work are over.
func (q *Queue) saw(given int64) {
	for {
		before := q.seen.Load()
		if before >= given || q.seen.CompareAndSwap(before, given) {
			return
		}
	}
}

// Queues finds the queues of a backend. It is safe for concurrent use.
type Queues struct {
	runtime Runtime
	known   sync.Map // *Queue by backends.Stream
	events  events
}

// New returns the Queues of a runtime.
func New(runtime Runtime) *Queues { return &Queues{runtime: runtime} }

// Own adds a new queue that keeps its order and that DestroyStream releases.
func (l *Queues) Own(handle uintptr, device int) *Queue {
	q := &Queue{Stream: backends.Stream(handle), Device: device, Ordered: true, own: true}
	l.known.Store(q.Stream, q)
	return q
}

// Forget removes a queue.
func (l *Queues) Forget(s backends.Stream) { l.known.Delete(s) }

// Of returns the queue of a stream on any device. Another queue may take the place of somebody else's at the same
// address, so the runtime is asked about those each time.
func (l *Queues) Of(call string, s backends.Stream) (*Queue, error) {
	if s < leastQueue {
		return nil, NoStream(uintptr(s))
	}
	found, _ := l.known.Load(s)
	q, known := found.(*Queue)
	if known && q.own {
		return q, nil
	}
	device, ordered, err := l.runtime.Inspect(call, uintptr(s))
	if err != nil {
		return nil, err
	}
	if !known || q.Device != device || q.Ordered != ordered {
		q = &Queue{Stream: s, Device: device, Ordered: ordered}
		l.known.Store(s, q)
	}
	return q, nil
}

// On returns the queue of a stream, which must be on the device. Zero is the device's default queue.
func (l *Queues) On(call string, device int, s backends.Stream) (*Queue, error) {
	standard, err := l.runtime.Default(call, device)
	if err != nil || s == 0 {
		return standard, err
	}
	q, err := l.Of(call, s)
	if err != nil {
		return nil, err
	}
	if q.Device != standard.Device {
		return nil, l.runtime.InvalidQueue(call, fmt.Sprintf("the queue %#x is of device %d, and the memory of %d",
			uintptr(s), q.Device, standard.Device))
	}
	return q, nil
}

// InOrder enqueues a piece of work, between barriers where the queue keeps no order.
func (l *Queues) InOrder(q *Queue, enqueue func() error) error {
	q.given.Add(1)
	if q.Ordered {
		return enqueue()
	}
	if err := l.runtime.Barrier(q.Handle()); err != nil {
		return err
	}
	if err := enqueue(); err != nil {
		return err
	}
	return l.runtime.Barrier(q.Handle())
}

// Finish blocks until all work on a queue is over.
func (l *Queues) Finish(q *Queue) error {
	given := q.given.Load()
	if err := l.runtime.Finish(q.Handle()); err != nil {
		return err
	}
	q.saw(given)
	return nil
}
