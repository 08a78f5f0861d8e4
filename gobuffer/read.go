package gobuffer

import (
	"errors"

	"hamr/backends"
)

// Read copies size bytes, from at on, to ordinary host memory at target and returns
// when they are there. s is the stream that the elements are used on. The host must
// not reach the memory itself. It is what Access and the contents operations do, for
// callers who do so for a few elements at a time.
func (m *Memory) Read(target, at backends.Address, size int, s backends.Stream) (err error) {
	return m.ReadUntil(nil, target, at, size, s)
}

// ReadUntil is Read until stop asks: then the error is backends.ErrStopped, and what target holds is
// unspecified, but nobody writes to it any more.
func (m *Memory) ReadUntil(stop *backends.Stop, target, at backends.Address, size int, s backends.Stream) (err error) {
	if err := m.check(); err != nil {
		return err
	}
	defer m.runtime.kept.changedBytes(target, size)
	p, leave, err := piece{memory: m, address: at, stream: s, stop: stop}.enter(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if p.onHost() {
		if err := p.settle(); err != nil {
			return err
		}
		copy(hostBytes(target, size), hostBytes(p.address, size))
		return nil
	}
	w, err := p.work()
	if err != nil {
		return err
	}
	before := m.uses.recorded()
	defer func() { err = errors.Join(err, before.letGo()) }()
	for _, other := range before {
		if err := w.follow(other); err != nil {
			return err
		}
	}
	if m.runtime.tracing() {
		m.runtime.tracef("copy %d bytes %s device %d at %#x to the host at %#x", size, m.region.Allocator, m.region.Device, at, target)
	}
	to := backends.Region{Address: target, Allocator: backends.Malloc, Device: backends.HostDevice}
	if err := w.waitUntil(stop); err != nil {
		return err
	}
	left, err := m.copyUntil(stop, to, p.region(), size, w.stream)
	if errors.Is(err, backends.ErrStopped) {
		// What it has begun, a device may still read.
		return errors.Join(err, m.mark(w, before))
	}
	if err == nil && left != backends.Complete {
		if err = w.wait(); err != nil && w.wait() != nil {
			// The target is the caller's again: nothing may write to it any more. A wait
			// reports what went wrong before it, too, so only the second one has told.
			_, _ = settleDevice(w.backend, w.device)
		}
	}
	if err == nil {
		err = m.done(before)
	}
	return err
}
