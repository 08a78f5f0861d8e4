package order

import (
	"errors"

	"hamr/backends"
)

// Done forgets works that are over. The error is what their tickets have found, or those of works that they took the
// place of, if nobody was told.
func (u *Uses) Done(over Works) (failed error) {
	if len(over) == 0 {
		return nil
	}
	u.mutex.Lock()
	dropped, found := u.replace(over, nil), u.found
	u.found = nil
	u.mutex.Unlock()
	if len(found) > 0 {
		failed = errors.Join(failed, u.ask(found))
	}
	return errors.Join(failed, dropped.LetGo())
}

// Settle waits until no recorded work touches the memory any more. What could not be waited for stays recorded.
func (u *Uses) Settle() error {
	return u.SettleIf(func(*Work) bool { return true })
}

// SettleIf is Settle for the works that are wanted.
func (u *Uses) SettleIf(wanted func(*Work) bool) error {
	pending := u.Recorded()
	if pending == nil {
		return nil
	}
	var chosen Works
	for _, w := range pending {
		if wanted(w) {
			chosen = append(chosen, w)
		}
	}
	return errors.Join(u.SettleThose(chosen, (*Work).waitOrRest), pending.LetGo())
}

// SettleThose waits for works that are recorded. What could not be waited for stays so.
func (u *Uses) SettleThose(list Works, wait func(*Work) error) (failed error) {
	var over Works
	for _, w := range list {
		if err := wait(w); err != nil {
			failed = errors.Join(failed, err)
		} else {
			over = append(over, w)
		}
	}
	return errors.Join(failed, u.Done(over))
}

// SettleElsewhere waits for the work that a wait for a device does not speak for, all devices of the backend
// for backends.HostDevice. Streams may have ended meanwhile, or their handles be others'.
func (u *Uses) SettleElsewhere(b backends.Backend, device int) (failed error) {
	pending := u.Recorded()
	for _, w := range pending {
		if w.Backend == b && (device == backends.HostDevice || w.Device == device) {
			continue
		}
		if w.Ticket != nil {
			failed = errors.Join(failed, w.Wait())
		} else {
			failed = errors.Join(failed, Rest(w.Backend, w.Device))
		}
	}
	return errors.Join(failed, pending.LetGo())
}

// Pending returns what is recorded, for the caller to let go, who names a stream and, in where, its device plus one
// or zero. Who named another stream may have gone, and the stream with them: where hamr is not told of its end, the
// device stands for it.
func (u *Uses) Pending(s backends.Stream, where int) Works { return u.AppendPending(nil, s, where) }

// AppendPending is Pending, appended to a list.
func (u *Uses) AppendPending(all Works, s backends.Stream, where int) Works {
	if u.Idle() {
		return all
	}
	before := len(all)
	all = u.appendRecorded(all)
	for i, w := range all[before:] {
		other := w.Stream != s || where != 0 && w.Device != where-1
		//mutate:never who names no stream that may have ended asks it
		if other && w.MayHaveEnded() {
			held := w.With(u.restOf(w))
			held.of = w
			all[before+i] = held
		}
	}
	return all
}

// Poll returns the pending works that are not over yet, for the caller to let go, and forgets the others.
func (u *Uses) Poll(s backends.Stream, where int) (busy Works, err error) {
	pending := u.Pending(s, where)
	if pending == nil {
		return nil, nil
	}
	var over Works
	for _, w := range pending {
		idle, failed := w.Idle()
		if failed != nil {
			err = errors.Join(err, failed)
		}
		if failed == nil && idle {
			over = append(over, w)
		} else {
			busy = append(busy, w)
		}
	}
	err = errors.Join(err, u.Done(over), over.LetGo())
	if err != nil {
		return nil, errors.Join(err, busy.LetGo())
	}
	return busy, nil
}

// Over forgets what is recorded of w's stream, which is idle.
func (u *Uses) Over(w *Work) error {
	pending := u.Recorded()
	return errors.Join(u.Done(pending.On(w)), pending.LetGo())
}

// RestInstead records, in place of all that w's stream holds, that the device is to be waited for. One such ticket
// is enough for a device.
func (u *Uses) RestInstead(w *Work) error {
	pending := u.Recorded()
	before := pending.On(w)
	for _, v := range pending {
		if _, rests := v.Ticket.(*atRest); rests && v.Backend == w.Backend && v.Device == w.Device {
			before = append(before, v)
		}
	}
	return errors.Join(u.Replace(before, w.UntilRest()), pending.LetGo())
}

// Renamed is told of a stream's name that somebody turns to: what is recorded of one that may have ended may be
// another stream's, which has its handle now.
func (u *Uses) Renamed(b backends.Backend, s backends.Stream) (failed error) {
	if Stays(b, s) || u.Idle() {
		return nil
	}
	pending := u.Recorded()
	for _, w := range pending {
		if w.Stream == s && w.MayHaveEnded() {
			failed = errors.Join(failed, u.Replace(Works{w}, w.UntilRest()))
		}
	}
	return errors.Join(failed, pending.LetGo())
}
