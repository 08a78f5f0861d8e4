// Package released keeps memory that nobody refers to any more and that cannot be freed yet: in a queue for each device
// that has to be waited for, or aside until the work that is recorded on it is over.
package released

import (
	"errors"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/waiting"
	"hamr/gobuffer/internal/order"
)

const (
	// A goroutine waits for the device once manyBytes, or manyCount allocations, wait for it. A rare wait disturbs
	// neither the device's work nor a capture into a graph.
	manyBytes = 64 << 20
	manyCount = 1024
	// At most this part of a device's memory waits. A release beyond that waits itself.
	shareOfDevice = 8
	// mostUnknown is the same limit where no device says how much memory it has.
	mostUnknown = 1 << 30
)

// Sized is memory of so many bytes.
type Sized interface{ Size() int }

// Queues hold memory without references. Whether other libraries' work on it is over, no backend could say, or the
// device was out of reach.
type Queues[M Sized] struct {
	mutex  sync.Mutex // of what follows
	queues []*Queue[M]
	giving waiting.Underway // what a wait has covered is freed; an owner may then release more
	Never  bool             // for tests: a release waits itself
}

// Queue is such memory of one device, in the order of its release.
type Queue[M Sized] struct {
	backend backends.Backend
	device  int
	list    []M
	bytes   int64       // in list
	added   int         // since the start
	asked   atomic.Bool // a goroutine waits for the device
	most    sync.Once
	limit   int64 // what may wait, set by most
}

// Add puts m on the queue of a device and returns that.
func (p *Queues[M]) Add(m M, b backends.Backend, device int) *Queue[M] {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	q := p.queueOf(b, device)
	q.list = append(q.list, m)
	q.bytes += int64(m.Size())
	q.added++
	return q
}

func (p *Queues[M]) queueOf(b backends.Backend, device int) *Queue[M] {
	for _, q := range p.queues {
		if q.backend == b && q.device == device {
			return q
		}
	}
	q := &Queue[M]{backend: b, device: device}
	p.queues = append(p.queues, q)
	return q
}

// Some returns the queues that hold memory; ever is whether any did.
func (p *Queues[M]) Some() (list []*Queue[M], ever bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, q := range p.queues {
		if len(q.list) > 0 {
			list = append(list, q)
		}
	}
	return list, len(p.queues) > 0
}

// last is how many allocations were ever added to the queue, as take needs it.
func (p *Queues[M]) last(q *Queue[M]) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return q.added
}

// take removes and returns what was on the queue when last returned mark and is still there.
func (p *Queues[M]) take(q *Queue[M], mark int) []M {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	count := max(len(q.list)-(q.added-mark), 0)
	taken := q.list[:count:count]
	if q.list = q.list[count:]; len(q.list) == 0 {
		q.list = nil
	}
	for _, m := range taken {
		q.bytes -= int64(m.Size())
	}
	return taken
}

// Release waits for the queue's device, and has end give back each piece of memory that was on the queue before. The
// wait says nothing about what is added during it. over is false if the device cannot be waited for.
func (p *Queues[M]) Release(q *Queue[M], end func(m M, b backends.Backend, device int) error) (over bool, late error) {
	mark := p.last(q)
	if over, late = order.SettleDevice(q.backend, q.device); !over {
		return false, late
	}
	defer p.giving.End(p.giving.Begin())
	for _, m := range p.take(q, mark) {
		late = errors.Join(late, end(m, q.backend, q.device))
	}
	return true, late
}

// Wait waits until what other goroutines have taken from the queues is back, too.
func (p *Queues[M]) Wait() { p.giving.Wait() }

// Room returns m's queue, and whether m may stay there until somebody else waits for the device.
func (p *Queues[M]) Room(m M, b backends.Backend, device int) (q *Queue[M], is bool) {
	p.mutex.Lock()
	q = p.queueOf(b, device)
	bytes := q.bytes + int64(m.Size())
	p.mutex.Unlock()
	return q, bytes <= p.mostBytes(q) || q.isCaptured()
}

// Relieve starts a goroutine that releases the queue if much is on it.
func (p *Queues[M]) Relieve(q *Queue[M], end func(m M, b backends.Backend, device int) error) {
	most := p.mostBytes(q)
	p.mutex.Lock()
	much := q.bytes > min(manyBytes, most/2) || len(q.list) > manyCount
	p.mutex.Unlock()
	if !much || q.isCaptured() || !q.asked.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer q.asked.Store(false)
		_, _ = p.Release(q, end) // the device reports again what went wrong there
	}()
}

// isCaptured reports whether a stream that waits for the default one is being captured into a graph. A wait would end
// the capture.
func (q *Queue[M]) isCaptured() bool {
	streams, ok := backends.As[backends.Streams](q.backend)
	if !ok {
		return false
	}
	_, err := streams.Idle(max(q.device, 0), 0)
	return errors.Is(err, backends.ErrCapturing)
}

// mostBytes is how much may wait for a device.
func (p *Queues[M]) mostBytes(q *Queue[M]) int64 {
	if p.Never {
		return 0
	}
	q.most.Do(func() {
		q.limit = mostUnknown
		if reporter, ok := backends.As[backends.MemoryReporter](q.backend); ok {
			if _, total, err := reporter.MemoryInfo(max(q.device, 0)); err == nil {
				q.limit = total / shareOfDevice
			}
		}
	})
	return q.limit
}
