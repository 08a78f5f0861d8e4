package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

const (
	// A goroutine waits for the device once asideBytes, or asideCount allocations, wait for it. Waiting seldom disturbs
	// neither the device's work nor a capture into a graph.
	asideBytes = 64 << 20
	asideCount = 1024
	// At most this part of a device's memory waits. A release beyond that waits itself.
	asideShare = 8
	// asideMost is the same limit where no device says how much memory it has.
	asideMost = 1 << 30
)

// add puts m on a queue and returns it.
func (p *postponed) add(m *Memory) *queue {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	q := p.queueOf(m)
	q.list = append(q.list, m)
	q.bytes += int64(m.Size())
	q.added++
	return q
}

func (p *postponed) queueOf(m *Memory) *queue {
	b, device := m.backend, m.region.Device // page-locked memory is of no device, and used on any
	pending := m.uses.Recorded()
	if m.streams == nil && len(pending) > 0 {
		// This is host memory that a device uses.
		b, device = pending[0].Backend, pending[0].Device
	}
	_ = pending.LetGo() // the record keeps the tickets
	for _, q := range p.queues {
		if q.backend == b && q.device == device {
			return q
		}
	}
	q := &queue{backend: b, device: device}
	p.queues = append(p.queues, q)
	return q
}

// some returns the queues that hold memory; ever is whether any did.
func (p *postponed) some() (list []*queue, ever bool) {
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
func (p *postponed) last(q *queue) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return q.added
}

// take removes and returns what was on the queue when last returned mark and is still there.
func (p *postponed) take(q *queue, mark int) []*Memory {
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

// release waits for the queue's device and gives back what was on the queue before. The wait says nothing about what is
// added during it.
func (p *postponed) release(q *queue) (over bool, late error) {
	mark := p.last(q)
	if over, late = order.SettleDevice(q.backend, q.device); !over {
		return false, late
	}
	defer p.giving.End(p.giving.Begin())
	for _, m := range p.take(q, mark) {
		if m.every.Load() { // the wait does not speak for other devices
			if failed := m.uses.SettleElsewhere(q.backend, q.device); failed != nil {
				//mutate:remove what another device met at a late release is not told
				late = errors.Join(late, failed)
				if m.uses.SettleElsewhere(q.backend, q.device) != nil {
					p.add(m)
					continue
				}
			}
		}
		late = errors.Join(late, m.giveBack())
	}
	return true, late
}

// room returns m's queue, and whether m may stay there until somebody else waits for the device.
func (p *postponed) room(m *Memory) (q *queue, is bool) {
	p.mutex.Lock()
	q = p.queueOf(m)
	bytes := q.bytes + int64(m.Size())
	p.mutex.Unlock()
	return q, bytes <= p.mostBytes(q) || q.isCaptured()
}

// relieve starts a goroutine that releases the queue if much is on it.
func (p *postponed) relieve(q *queue) {
	most := p.mostBytes(q)
	p.mutex.Lock()
	much := q.bytes > min(asideBytes, most/2) || len(q.list) > asideCount
	p.mutex.Unlock()
	if !much || q.isCaptured() || !q.asked.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer q.asked.Store(false)
		_, _ = p.release(q) // the device reports again what went wrong there
	}()
}

// isCaptured reports whether a stream that waits for the default one is being captured into a graph. A wait would end
// the capture.
func (q *queue) isCaptured() bool {
	streams, ok := backends.As[backends.Streams](q.backend)
	if !ok {
		return false
	}
	_, err := streams.Idle(max(q.device, 0), 0)
	return errors.Is(err, backends.ErrCapturing)
}

// mostBytes is how much may wait for a device.
func (p *postponed) mostBytes(q *queue) int64 {
	if p.never {
		return 0
	}
	q.most.Do(func() {
		q.limit = asideMost
		if reporter, ok := backends.As[backends.MemoryReporter](q.backend); ok {
			if _, total, err := reporter.MemoryInfo(max(q.device, 0)); err == nil {
				q.limit = total / asideShare
			}
		}
	})
	return q.limit
}

// ReleasePostponed gives back the memory whose release was postponed. It waits for the devices that could not be waited
// for at the release, and for the work on memory that is aside. It also unloads the modules of kernels that nobody
// uses. Memory whose device still cannot be waited for is kept, and the error says so.
func (r *Runtime) ReleasePostponed() error {
	if err := r.check(); err != nil {
		return err
	}
	failed := errors.Join(r.modules.Settle(), r.settleAside())
	p := &r.postponed
	list, ever := p.some()
	if !ever {
		return failed
	}
	for _, q := range list {
		if _, err := p.release(q); err != nil && failed == nil {
			failed = err
		}
	}
	// Another goroutine may have taken memory from the queues. That is given back, too, when this returns.
	p.giving.Wait()
	return failed
}

// releaseWhenIdle gives back memory that any stream of its device may still use. If the device cannot be waited for, as
// while a stream is captured into a graph, the memory is kept: freed too early, it would be written to while somebody
// else owns it.
func (m *Memory) releaseWhenIdle() error {
	p := &m.runtime.postponed
	m.leaveStream() // which may end while another goroutine gives the memory back
	// Whoever runs out of memory during the wait finds it on the queue.
	_, late := p.release(p.add(m))
	return late
}

// releaseLater gives back memory that any stream of its device may still use, without a wait: the memory stays on a
// queue until somebody has waited for the device. The release waits itself if too much is on the queue, or if a Checker
// is to write its pattern.
func (m *Memory) releaseLater() error {
	p := &m.runtime.postponed
	byDriver := m.isTakenOver() && !m.region.Allocator.Ordered() // which waits when it is freed
	q, is := p.room(m)
	// Of a stream that may have ended nobody can ask whether it is captured.
	if !is || byDriver || m.runtime.checked() != nil && order.Stays(m.backend, m.ordered()) {
		return m.releaseWhenIdle()
	}
	m.leaveStream()
	if m.owned {
		m.retire()
	}
	p.add(m)
	p.relieve(q)
	return nil
}

// leaveStream moves the release of the memory to the default stream: nobody keeps its own stream alive any more.
func (m *Memory) leaveStream() {
	if m.streams == nil {
		return
	}
	s, _ := m.streams.Resolve(m.context(), 0)
	m.stream.Store(uintptr(s))
}

// postpone keeps memory that its backend could not take back because the device was out of reach. The memory counts as
// living again and goes back after a wait for the device.
func (m *Memory) postpone() {
	m.retired = false
	m.back()
	if m.runtime.tracing() {
		m.runtime.tracef("keep %v at %#x until its device can be reached", m, m.region.Address)
	}
	m.leaveStream()
	m.runtime.postponed.add(m)
}
