package gobuffer

import "hamr/gobuffer/internal/order"

// replace makes a what next is, which must not be used any more. After an error, a is as before and next is closed.
func (a *Array) replace(next *Array) error {
	old := *a
	// Late failures of work on the old memory are the operation's own.
	if err := old.memory.settleBeforeReplaced(); err != nil {
		next.Close()
		return err
	}
	left := old.leaveStream(next)
	*a = *next
	a.cached = old.cached
	//mutate:remove a temporary is kept of elements that were replaced
	a.runtime.kept.changed(old.all())
	end := old.drop
	if left {
		end = old.memory.Release // drop would name the stream again
	}
	if err := end(); err != nil && a.runtime.tracing() {
		a.runtime.tracef("while giving back replaced memory: %v", err)
	}
	return nil
}

// leaveStream records what a's stream holds where others keep the memory that a gives up for next's: they
// need not name the stream, which may end from now on.
func (a *Array) leaveStream(next *Array) (left bool) {
	m := a.memory
	if m == nil || m == next.memory || m.refs.Load() == 1 || order.Stays(m.backend, a.options.Stream) {
		return false
	}
	_ = m.Leave(a.options.Stream) // what cannot be recorded, the release waits for
	return true
}

// settleBeforeReplaced is settleBeforeRelease for an Array that gives the memory up for other memory. Where
// others keep it, its own stream may have ended.
func (m *Memory) settleBeforeReplaced() error {
	if m == nil {
		return nil
	}
	if m.refs.Load() == 1 {
		m.coverByDevice()
	} else if m.streams != nil && !order.Stays(m.backend, m.ordered()) {
		return nil
	}
	if m.every.Load() {
		return nil // the release waits
	}
	return m.settleBeforeRelease()
}
