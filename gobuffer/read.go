package gobuffer

import "hamr/backends"

// Read copies size bytes, from at on, to ordinary host memory at target and returns
// when they are there. s is the stream that the elements are used on. The host must
// not reach the memory itself. It is what Access and the contents operations do, for
// callers who do so for a few elements at a time.
func (m *Memory) Read(target, at backends.Address, size int, s backends.Stream) error {
	p := piece{memory: m, address: at, stream: s}
	w := work{backend: m.backend, device: m.context(), stream: s}
	if m.streams != nil {
		var err error
		if w.stream, err = m.streams.Resolve(w.device, s); err != nil {
			return err
		}
	}
	before := m.pending.Load()
	if before != nil {
		if err := w.follow(before); err != nil {
			return err
		}
	}
	if m.runtime.tracing() {
		m.runtime.tracef("copy %d bytes %s device %d at %#x to the host at %#x", size, m.region.Allocator, m.region.Device, at, target)
	}
	to := backends.Region{Address: target, Allocator: backends.Malloc, Device: backends.HostDevice}
	left, err := m.backend.Copy(to, p.region(), size, w.stream)
	if err == nil && left != backends.Complete {
		err = m.streams.Synchronize(w.device, w.stream)
	}
	if err == nil {
		m.done(before)
	}
	return err
}
