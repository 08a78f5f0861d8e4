package gobuffer

import (
	"errors"
	"syscall"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Release drops a reference. With the last one the memory is freed, in the
// order of its stream, or its owner is told. The error is the backend's; the
// memory counts as released all the same, save where ReleasePostponed is needed.
func (m *Memory) Release() error {
	if err := m.check(); err != nil {
		return err
	}
	left := m.refs.Add(-1)
	if left > 0 {
		return nil
	}
	if left < 0 {
		panic("gobuffer: Release of released memory")
	}
	if m.Mapped() {
		return m.endMapping(false)
	}
	if m.keeps {
		//mutate:remove a temporary is kept of memory that is no more
		m.runtime.kept.ends(m)
	}
	//mutate:remove memory of a stream that has ended is released by its driver's order
	m.coverByDevice()
	if done, late := m.setAside(); done {
		return late
	}
	//mutate:replace memory that grows is freed before the device is at rest
	//mutate:with m.grower != nil => false
	//mutate:replace shared memory is unmapped under work
	//mutate:with m.attached != nil => false
	waits := m.grower != nil || m.attached != nil
	//mutate:never memory whose address a library has is handed out again under its work
	if m.every.Load() && (m.taker != nil || m.ends()) && !waits {
		return m.releaseLater()
	}
	//mutate:skip memory is released under pending work
	late := m.settleBeforeRelease()
	// A wait reports what went wrong before it, too. Only a second one says
	// whether the work is over.
	over := late == nil || m.settleBeforeRelease() == nil
	free := m.giveBack
	if !over || m.ends() && waits {
		free = m.releaseWhenIdle
	}
	if err := free(); err != nil {
		return errors.Join(late, err)
	}
	return late
}

// settleBeforeRelease waits for recorded work, save where the release can be
// enqueued behind it, or waits itself.
func (m *Memory) settleBeforeRelease() error {
	if m.freedInStreamOrder() {
		return m.followUses()
	}
	if err := m.uses.SettleIf(func(w *order.Work) bool {
		//mutate:replace another device's work is taken for covered by a free
		//mutate:with w.Device == m.context() && w.Backend == m.backend => true
		byFree := m.ends() && m.freeWaits && w.Device == m.context() && w.Backend == m.backend
		return !byFree && (!w.Foreign || m.ends()) || !w.Foreign && !w.MayHaveEnded()
	}); err != nil {
		return err
	}
	if !m.ends() || m.streams == nil || m.freeWaits || m.region.Address == 0 {
		return nil
	}
	// Other libraries may have work on the stream that the memory was taken for.
	if !order.Stays(m.backend, m.ordered()) {
		return order.Rest(m.backend, m.deviceOfUse())
	}
	w, err := m.workOn(m.ordered())
	if err != nil {
		return err
	}
	//mutate:skip frees that do not wait are not preceded by a wait
	return w.Wait()
}

// followUses makes the stream that the release is ordered on run after what is recorded.
// What it cannot be ordered with is waited for, and recorded still if that fails, too.
func (m *Memory) followUses() (late error) {
	if m.uses.OnlyOn(m.backend, m.context(), m.ordered()) {
		return nil
	}
	pending := m.uses.Pending(m.ordered(), 0)
	own, err := m.workOn(m.ordered())
	if err != nil {
		return errors.Join(err, pending.LetGo())
	}
	var ordered order.Works
	for _, w := range pending {
		//mutate:skip memory is released in stream order without following other streams
		err := own.Follow(w)
		if err != nil {
			late = errors.Join(late, err)
			//mutate:skip memory is released under what could not be ordered
			err = w.Wait()
		}
		if err == nil {
			ordered = append(ordered, w)
		}
	}
	if len(ordered) > 0 {
		late = errors.Join(late, m.mark(own, ordered))
	}
	return errors.Join(late, pending.LetGo())
}

// giveBack frees owned memory in the order of its stream, and tells the owner of other
// memory.
func (m *Memory) giveBack() error {
	if m.Mapped() {
		return m.endMapping(true)
	}
	r, a := m.runtime, m.region.Allocator
	// What is recorded still is ordered before the release; its tickets end here.
	late := m.uses.End()
	if m.attached != nil {
		if c := r.checked(); c != nil {
			//mutate:remove what was unmapped is known still
			c.frees(m)
		}
		return errors.Join(late, m.endAttached())
	}
	if !m.owned {
		if c := r.checked(); c != nil {
			c.frees(m)
		}
		r.counters[a].adopted.Add(-1)
		if r.tracing() {
			r.tracef("let go %s device %d size %d at %#x", a, m.region.Device, m.Size(), m.region.Address)
		}
		if m.foreign != nil {
			m.foreign()
		}
		if m.taker != nil {
			late = errors.Join(late, m.taker(m.ordered()))
		}
		return late
	}
	m.retire()
	if m.region.Address == 0 {
		return late
	}
	size := m.Size()
	if m.taken {
		// What was asked for when it was allocated, only its allocator knows.
		size = 0
	}
	if !m.freedInStreamOrder() && !order.Stays(m.backend, m.ordered()) {
		//mutate:remove memory is freed on a stream that has ended
		m.leaveStream() // neither the free nor a Checker's pattern needs it
	}
	if c := m.runtime.checked(); c != nil {
		if c.hold(m, size, m.ordered()) {
			return late
		}
		c.frees(m)
	}
	return errors.Join(late, m.freeOrPostpone(size, m.ordered()))
}

// freeOrPostpone has the backend free owned memory, or keeps it until its device can be reached.
func (m *Memory) freeOrPostpone(size int, s backends.Stream) error {
	err := m.backend.Free(m.region, size, s)
	if refused(err) {
		// What went wrong may have been said with that.
		if again := m.backend.Free(m.region, size, s); refused(again) {
			m.postpone()
		}
	}
	return err
}

// endAttached ends the mapping, or postpones it where its backend could not reach the device.
func (m *Memory) endAttached() error {
	r := m.runtime
	err := m.attached.End()
	if refused(err) && refused(m.attached.End()) {
		m.leaveStream()
		//mutate:remove shared memory that could not be unmapped is forgotten
		r.postponed.add(m)
		return err
	}
	if d := m.attached.Descriptor; d != nil {
		err = errors.Join(err, syscall.Close(d.Number))
	}
	r.counters[m.region.Allocator].adopted.Add(-1)
	if r.tracing() {
		r.tracef("unmap %s device %d size %d at %#x", m.region.Allocator, m.region.Device, m.Size(), m.region.Address)
	}
	return err
}

func refused(err error) bool {
	var there *backends.NotFreedError
	return errors.As(err, &there)
}

// retire makes owned memory count as freed.
func (m *Memory) retire() {
	if m.retired {
		return
	}
	m.retired = true
	m.tellWritten()
	r, a := m.runtime, m.region.Allocator
	m.gone()
	if r.tracing() {
		r.tracef("free %s device %d size %d at %#x", a, m.region.Device, m.Size(), m.region.Address)
	}
}
