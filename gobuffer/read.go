package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Read copies size bytes, from at on, to ordinary host memory at target and returns when they are there. s is the
// stream that the elements are used on. The host must not reach the memory itself. It is what Access and the contents
// operations do, for callers who do so for a few elements at a time.
func (m *Memory) Read(target, at backends.Address, size int, s backends.Stream) error {
	return m.ReadUntil(nil, target, at, size, s)
}

// ReadUntil is Read until stop asks: then the error is backends.ErrStopped, and what target holds is
// unspecified, but nobody writes to it any more.
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

// readEntered is Read of what stays where it is meanwhile.
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

// readAfter is readEntered after what is pending, which it lets go.
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

// read copies bytes to the host by w's stream, which runs after what was pending before, and waits for it.
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
			// The target is the caller's again: nothing may write to it any more. A wait
			// reports what went wrong before it, too, so only the second one has told.
			_, _ = order.SettleDevice(w.Backend, w.Device)
		}
	}
	return err
}
