package gobuffer

import (
	"errors"
)

// An allocation asks for the state of up to asidePolled allocations that are aside.
const asidePolled = 16

// setAside gives the memory back if nothing uses it any more. Otherwise it makes the remaining work independent of its
// streams and puts the memory aside. If done is false nothing has changed, and the caller waits for the work.
func (m *Memory) setAside() (done bool, late error) {
	//mutate:replace page-locked memory is set aside though anybody may use it
	//mutate:with m.every.Load() => false
	if !m.owned || !m.settled || m.every.Load() || m.region.Address == 0 {
		return false, nil
	}
	//mutate:never what page-locked memory's own stream holds is forgotten
	if m.asked.Load() != 0 {
		// Other libraries may have work on the stream that the memory was taken for.
		m.rememberOn(m.ordered(), 0)
	}
	busy, err := m.uses.Poll(m.ordered(), 0)
	if err != nil {
		return false, nil // a wait tells
	}
	m.stream.Store(0) // its own may end
	if len(busy) == 0 {
		return true, m.giveBack()
	}
	for _, w := range busy {
		//mutate:never page-locked memory is kept for a stream that may end
		if w.Ticket == nil && err == nil {
			err = m.leave(w)
		}
	}
	if err = errors.Join(err, busy.LetGo()); err != nil {
		return false, nil
	}
	m.retire()
	m.runtime.aside.Add(m)
	return true, nil
}

// collect gives back what is aside and no longer used, of up to most allocations, or of all if most is negative. If the
// state of the work cannot be read, the memory is released after a wait for all devices.
func (r *Runtime) collect(most int) (failed error) {
	var busy []*Memory
	for _, m := range r.aside.Take(most) {
		pending, err := m.uses.Poll(0, 0)
		switch {
		case err != nil:
			failed = errors.Join(failed, m.releaseWhenIdle())
		//mutate:never page-locked memory is handed out again while a device uses it
		case len(pending) > 0:
			busy = append(busy, m)
			failed = errors.Join(failed, pending.LetGo())
		default:
			failed = errors.Join(failed, m.giveBack())
		}
	}
	if len(busy) > 0 {
		r.aside.Add(busy...)
	}
	return failed
}

// settleAside waits for what uses the memory that is aside, and gives it back.
func (r *Runtime) settleAside() (failed error) {
	for _, m := range r.aside.Take(-1) {
		release := m.giveBack
		//mutate:skip page-locked memory is not waited for when it is asked for
		err := m.uses.Settle()
		if err != nil {
			err = m.uses.Settle() // a wait reports what went wrong before it, too
		}
		if err != nil {
			release = m.releaseWhenIdle
		}
		failed = errors.Join(failed, release())
	}
	return failed
}
