package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Read copies size bytes, from at on, to ordinary host memory at target and returns when they are there. s is the
// stream that the elements are used on. The host must not reach the memory itself. It is for callers that read a few
// elements at a time, as Access and the contents operations do for whole arrays.
func (m *Memory) Read(target, at backends.Address, size int, s backends.Stream) error {
	return m.ReadUntil(nil, target, at, size, s)
}

// ReadUntil is Read until stop asks. Then the error is backends.ErrStopped, the contents of target are unspecified, and
// nobody writes to it any more.
func (m *Memory) ReadUntil(stop *backends.Stop, target, at backends.Address, size int, s backends.Stream) error {
	if err := m.check(); err != nil {
		return err
	}
	//mutate:remove a temporary is kept whose elements are read into
	defer m.runtime.kept.changedBytes(target, size)
	p := piece{memory: m, address: at, stream: s, stop: stop}
	if !p.maps() {
		return p.readEntered(target, size)
	}
	p, leave, err := p.enter(false)
	if err != nil {
		return err
	}
	return errors.Join(p.readEntered(target, size), leave())
}

// readEntered is Read of a piece that stays where it is meanwhile.
func (p piece) readEntered(target backends.Address, size int) error {
	if p.onHost() {
		if err := p.settle(); err != nil {
			return err
		}
		copy(hostBytes(target, size), hostBytes(p.address, size))
		return nil
	}
	if before := p.pending(); before != nil {
		return p.readAfter(before, target, size)
	}
	var w order.Work
	if err := p.memory.setResolved(&w, p.stream); err != nil {
		return err
	}
	return p.read(&w, target, size, nil)
}

// readAfter is readEntered after the pending work before, which it lets go.
func (p piece) readAfter(before order.Works, target backends.Address, size int) (err error) {
	defer func() { err = errors.Join(err, before.LetGo()) }()
	w, err := p.work()
	if err != nil {
		return err
	}
	for _, other := range before {
		if err := w.Follow(other); err != nil {
			return err
		}
	}
	if err := p.read(w, target, size, before); err != nil {
		return err
	}
	return p.memory.uses.Done(before)
}

// read copies bytes to the host on w's stream, which runs after before, and waits for that.
func (p piece) read(w *order.Work, target backends.Address, size int, before order.Works) error {
	m := p.memory
	if m.runtime.tracing() {
		m.runtime.tracef("copy %d bytes %s device %d at %#x to the host at %#x", size, m.region.Allocator, m.region.Device,
			p.address, target)
	}
	to := backends.Region{Address: target, Allocator: backends.Malloc, Device: backends.HostDevice}
	if err := w.WaitUntil(p.stop); err != nil {
		return err
	}
	left, err := m.copyUntil(p.stop, to, p.region(), size, w.Stream)
	if errors.Is(err, backends.ErrStopped) {
		marked := *w
		//mutate:replace what a stopped reading reads is taken for unused
		//mutate:with return errors.Join(err, m.mark(&marked, before)) => _ = marked; return err
		return errors.Join(err, m.mark(&marked, before)) // a device may still read what it has begun to
	}
	if err == nil && left != backends.Complete {
		//mutate:replace a reader's memory is written to after an error
		//mutate:with w.Wait() != nil => false
		if err = w.Wait(); err != nil && w.Wait() != nil {
			// The target belongs to the caller again, so nothing may write to it any more. A wait also reports earlier failures,
			// so only the second one says whether the work is over.
			_, _ = order.SettleDevice(w.Backend, w.Device)
		}
	}
	return err
}
