package gobuffer

import (
	"errors"

	"hamr/gobuffer/internal/order"
)

// Release drops a reference. With the last one the memory is freed, in the order of its stream, or its owner is told.
// The error is the backend's; the memory counts as released all the same, save where ReleasePostponed is needed.
func (m *Memory) Release() error {
	if m == nil {
		return errNoMemory
	}
	left := m.refs.Add(-1)
	if left > 0 {
		return nil
	}
	if left < 0 {
		if err := m.check(); err != nil {
			m.refs.Add(1)
			return err
		}
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
	//mutate:with m.attachment() != nil => false
	waits := m.grower != nil || m.attachment() != nil
	//mutate:never memory whose address a library has is handed out again under its work
	if m.every.Load() && (m.isTakenBack() || m.ends()) && !waits {
		return m.releaseLater()
	}
	//mutate:skip memory is released under pending work
	late := m.settleBeforeRelease()
	// A wait reports what went wrong before it, too. Only a second one says whether the work is over.
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

// settleBeforeRelease waits for recorded work, unless the release can be enqueued behind the work or waits itself.
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

// followUses makes the stream that orders the release run after the recorded work. It waits for work that cannot be
// ordered so. If the wait fails, too, the work stays recorded.
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
