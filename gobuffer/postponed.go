package gobuffer

import (
	"errors"
	"sync"

	"hamr/backends"
)

// postponed is memory without references that could not be given back yet: whether
// other libraries' work on it is over, no backend could say.
type postponed struct {
	mutex sync.Mutex
	list  []*Memory
}

func (p *postponed) add(m ...*Memory) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.list = append(p.list, m...)
}

// take removes and returns the memory that is ready.
func (p *postponed) take(ready func(m *Memory) bool) (taken []*Memory) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	left := p.list[:0]
	for _, m := range p.list {
		if ready(m) {
			taken = append(taken, m)
		} else {
			left = append(left, m)
		}
	}
	clear(p.list[len(left):])
	p.list = left
	return taken
}

func (p *postponed) some() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.list) > 0
}

// ReleasePostponed waits for the devices on which memory was kept at its release,
// since they could not be waited for then, and gives it back. Memory whose device
// cannot be waited for now is kept further, and the error says so.
func (r *Runtime) ReleasePostponed() error {
	var failed error
	for _, m := range r.postponed.take(func(*Memory) bool { return true }) {
		if err := m.releaseWhenIdle(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// madeRoom reports whether memory that ran out has come back, perhaps.
func (r *Runtime) madeRoom(err error) bool {
	var full *backends.OutOfMemoryError
	return errors.As(err, &full) && r.postponed.some() && r.ReleasePostponed() == nil
}

// releaseWhenIdle gives memory back that any stream of its device may still use.
// Where the device cannot be waited for, as while a stream is captured into a graph,
// the memory is kept: freed too early, it would be written to in other hands.
func (m *Memory) releaseWhenIdle() error {
	// What is postponed during the wait, the wait does not speak for.
	earlier := m.runtime.postponed.take(m.sameDevice)
	over, late := m.settleDevice()
	if !over {
		// Nobody keeps the stream alive for it any more.
		if s, err := m.streams.Resolve(m.context(), 0); err == nil {
			m.stream.Store(uintptr(s))
		}
		m.runtime.postponed.add(append(earlier, m)...)
		return late
	}
	late = errors.Join(late, m.giveBack())
	for _, other := range earlier {
		late = errors.Join(late, other.giveBack())
	}
	return late
}

func (m *Memory) sameDevice(other *Memory) bool {
	return m.backend == other.backend && m.context() == other.context()
}

// settleDevice waits for all work on the memory's device. As a wait reports what went
// wrong before it, too, only a second one says whether the work is over.
func (m *Memory) settleDevice() (over bool, late error) {
	s, ok := backends.As[backends.DeviceSynchronizer](m.backend)
	if !ok {
		return true, nil
	}
	if late = s.SynchronizeDevice(m.context()); late == nil {
		return true, nil
	}
	return s.SynchronizeDevice(m.context()) == nil, late
}
