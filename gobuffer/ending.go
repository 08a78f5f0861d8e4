package gobuffer

import (
	"errors"
	"syscall"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// giveBack ends memory that nobody uses any more.
func (m *Memory) giveBack() error {
	if m.Mapped() {
		return m.endMapping(true)
	}
	// Recorded work is ordered before the release by now. Its tickets end here.
	late, err := m.uses.End(), m.ending.end(m)
	if late == nil {
		return err
	}
	return errors.Join(late, err)
}

func (freed) end(m *Memory) error      { return m.free(m.Size()) }
func (freedWhole) end(m *Memory) error { return m.free(0) }

// free has the backend free owned memory in the order of its stream.
func (m *Memory) free(size int) error {
	m.retire()
	if m.region.Address == 0 {
		return nil
	}
	if !m.freedInStreamOrder() && !order.Stays(m.backend, m.ordered()) {
		//mutate:remove memory is freed on a stream that has ended
		m.leaveStream() // neither the free nor a Checker's pattern needs it
	}
	if c := m.runtime.checked(); c != nil {
		if c.hold(m, size, m.ordered()) {
			return nil
		}
		c.frees(m)
	}
	return m.freeOrPostpone(size, m.ordered())
}

// freeOrPostpone has the backend free owned memory, or keeps it until its device can be reached.
func (m *Memory) freeOrPostpone(size int, s backends.Stream) error {
	err := m.backend.Free(m.region, size, s)
	if refused(err) {
		// The first call may have reported an earlier failure.
		if again := m.backend.Free(m.region, size, s); refused(again) {
			m.postpone()
		}
	}
	return err
}

func (told handedBack) end(m *Memory) error {
	m.letGo()
	if told != nil {
		told()
	}
	return nil
}

func (take takenBack) end(m *Memory) error {
	m.letGo()
	return take(m.ordered())
}

// letGo counts memory as its owner's alone again.
func (m *Memory) letGo() {
	r, a := m.runtime, m.region.Allocator
	if c := r.checked(); c != nil {
		c.frees(m)
	}
	r.counters[a].Adopted.Add(-1)
	if r.tracing() {
		r.tracef("let go %s device %d size %d at %#x", a, m.region.Device, m.Size(), m.region.Address)
	}
}

// end unmaps the memory, or postpones that if the backend could not reach the device.
func (a *unmapped) end(m *Memory) error {
	r := m.runtime
	if c := r.checked(); c != nil {
		//mutate:remove what was unmapped is known still
		c.frees(m)
	}
	err := a.End()
	if refused(err) && refused(a.End()) {
		m.leaveStream()
		//mutate:remove shared memory that could not be unmapped is forgotten
		m.addPostponed()
		return err
	}
	if d := a.Descriptor; d != nil {
		err = errors.Join(err, syscall.Close(d.Number))
	}
	r.counters[m.region.Allocator].Adopted.Add(-1)
	if r.tracing() {
		r.tracef("unmap %s device %d size %d at %#x", m.region.Allocator, m.region.Device, m.Size(), m.region.Address)
	}
	return err
}

func refused(err error) bool {
	if err == nil { // what errors.As needs takes memory
		return false
	}
	var there *backends.NotFreedError
	return errors.As(err, &there)
}
