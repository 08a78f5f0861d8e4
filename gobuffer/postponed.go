package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
	"hamr/gobuffer/internal/released"
)

// endPostponed gives memory back after a wait for a device.
func (m *Memory) endPostponed(b backends.Backend, device int) (late error) {
	if m.every.Load() { // the wait does not speak for other devices
		if failed := m.uses.SettleElsewhere(b, device); failed != nil {
			//mutate:remove what another device met at a late release is not told
			late = failed
			if m.uses.SettleElsewhere(b, device) != nil {
				m.addPostponed()
				return late
			}
		}
	}
	return errors.Join(late, m.giveBack())
}

// waitedFor is the device whose work the memory waits for.
func (m *Memory) waitedFor() (b backends.Backend, device int) {
	b, device = m.backend, m.region.Device // page-locked memory is of no device, and used on any
	pending := m.uses.Recorded()
	if m.streams == nil && len(pending) > 0 {
		// This is host memory that a device uses.
		b, device = pending[0].Backend, pending[0].Device
	}
	_ = pending.LetGo() // the record keeps the tickets
	return b, device
}

func (m *Memory) addPostponed() *released.Queue[*Memory] {
	b, device := m.waitedFor()
	return m.runtime.postponed.Add(m, b, device)
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
	list, ever := p.Some()
	if !ever {
		return failed
	}
	for _, q := range list {
		if _, err := p.Release(q, (*Memory).endPostponed); err != nil && failed == nil {
			failed = err
		}
	}
	// Another goroutine may have taken memory from the queues. That is given back, too, when this returns.
	p.Wait()
	return failed
}

// releaseWhenIdle gives back memory that any stream of its device may still use. If the device cannot be waited for, as
// while a stream is captured into a graph, the memory is kept: freed too early, it would be written to while somebody
// else owns it.
func (m *Memory) releaseWhenIdle() error {
	p := &m.runtime.postponed
	m.leaveStream() // which may end while another goroutine gives the memory back
	// Whoever runs out of memory during the wait finds it on the queue.
	_, late := p.Release(m.addPostponed(), (*Memory).endPostponed)
	return late
}

// releaseLater gives back memory that any stream of its device may still use, without a wait: the memory stays on a
// queue until somebody has waited for the device. The release waits itself if too much is on the queue, or if a Checker
// is to write its pattern.
func (m *Memory) releaseLater() error {
	p := &m.runtime.postponed
	byDriver := m.isTakenOver() && !m.region.Allocator.Ordered() // which waits when it is freed
	b, device := m.waitedFor()
	q, is := p.Room(m, b, device)
	// Of a stream that may have ended nobody can ask whether it is captured.
	if !is || byDriver || m.runtime.checked() != nil && order.Stays(m.backend, m.ordered()) {
		return m.releaseWhenIdle()
	}
	m.leaveStream()
	if m.owned {
		m.retire()
	}
	m.addPostponed()
	p.Relieve(q, (*Memory).endPostponed)
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
	m.addPostponed()
}
