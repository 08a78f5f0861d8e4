package cuda

import "hamr/backends"

// newEvent returns an event of d's primary context, which is entered. It may hold
// an earlier record.
func (v *visit) newEvent(d *device) (uintptr, error) {
	if e := d.events.take(); e != 0 {
		return e, nil
	}
	return v.createEvent(disableTiming)
}

func (v *visit) createEvent(flags uintptr) (uintptr, error) {
	err := v.b.call(v.b.driver.EventCreate, v.slot(0), flags)
	return uintptr(v.out[0]), err
}

func (v *visit) giveBack(d *device, e uintptr) {
	if !d.events.put(e) {
		_ = v.b.call(v.b.driver.EventDestroy, e)
	}
}

// recordOf returns the driver's event that holds e's record; zero if there is none.
func (b *orderFloor) recordOf(e backends.Event) uintptr {
	if s, ok := b.substitutes.get(e); ok {
		return s.event
	}
	return uintptr(e)
}

// NewEvent returns an event of a device. It belongs to the caller until
// DestroyEvent.
func (b *orderFloor) NewEvent(device int) (backends.Event, error) {
	d, err := b.device(device)
	if err != nil {
		return 0, err
	}
	if e := backends.Event(d.events.take()); e != 0 {
		b.substitutes.set(e, substitute{})
		return e, nil
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	e, err := v.createEvent(disableTiming)
	return backends.Event(e), err
}

// DestroyEvent leaves waits that were queued before in force.
func (b *orderFloor) DestroyEvent(device int, e backends.Event) error {
	d, err := b.device(device)
	if err != nil {
		return err
	}
	err = b.dropSubstitute(e)
	if !b.timed.remove(e) && d.events.put(uintptr(e)) {
		return err
	}
	v, entered := b.enter(device, defaultStream)
	if entered != nil {
		return entered
	}
	defer v.leave()
	if destroyed := b.call(b.driver.EventDestroy, uintptr(e)); destroyed != nil {
		return destroyed
	}
	return err
}

func (b *orderFloor) dropSubstitute(e backends.Event) error {
	s, ok := b.substitutes.get(e)
	if !ok {
		return nil
	}
	b.substitutes.remove(e)
	if s.event == 0 {
		return nil
	}
	v, err := b.enterContext(s.context)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.EventDestroy, s.event)
}

// Record makes e stand for the work on s so far, whichever context s is of.
func (b *orderFloor) Record(device int, e backends.Event, s backends.Stream) error {
	home, err := b.primaryContext(device)
	if err != nil {
		return err
	}
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	handle := uintptr(e)
	if old, ok := b.substitutes.get(e); v.context != home || ok {
		if handle, err = b.eventFor(v, e, old, home); err != nil {
			return err
		}
	}
	if err = b.call(b.driver.EventRecord, handle, b.native(s)); err == nil {
		b.timed.note(e)
	}
	return err
}

// eventFor returns the event to record on a stream of the visited context for e,
// whose substitute was old.
func (b *orderFloor) eventFor(v *visit, e backends.Event, old substitute, home uintptr) (uintptr, error) {
	if v.context == old.context {
		return old.event, nil
	}
	if err := b.dropSubstitute(e); err != nil {
		return 0, err
	}
	if v.context == home {
		return uintptr(e), nil
	}
	event, err := v.createEvent(b.timed.flags(e))
	if err != nil {
		return 0, err
	}
	b.substitutes.set(e, substitute{event, v.context})
	return event, nil
}

// Wait makes later work on s wait for what e stands for now.
func (b *orderFloor) Wait(device int, s backends.Stream, e backends.Event) error {
	handle := b.recordOf(e)
	if handle == 0 {
		return nil
	}
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	//mutate:skip a stream does not wait for an event
	return b.call(b.driver.StreamWaitEvent, b.native(s), handle, 0)
}

// Done reports whether the work that e stands for is done, without waiting.
func (b *orderFloor) Done(device int, e backends.Event) (bool, error) {
	handle := b.recordOf(e)
	if handle == 0 {
		return true, nil
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return false, err
	}
	defer v.leave()
	return b.answered(b.driver.EventQuery, handle)
}

// SynchronizeEvent blocks until the work that e stands for is done.
func (b *orderFloor) SynchronizeEvent(device int, e backends.Event) error {
	handle := b.recordOf(e)
	if handle == 0 {
		return nil
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	//mutate:skip waiting for an event does not wait
	return b.call(b.driver.EventSynchronize, handle)
}
