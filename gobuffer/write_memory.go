package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Write copies size bytes of ordinary host memory at source to the memory, from at on, and returns when source may be
// changed. s is the stream that the elements are used on. It is what Array.Write does for callers who do so for a few
// elements at a time; t says what is waited for. It reports false, and has done nothing, where there is more to it:
// where the host reaches the memory or has to map it, or an access writes some elements.
func (m *Memory) Write(at, source backends.Address, size int, s backends.Stream, t Transfer) (done bool, err error) {
	if err := m.check(); err != nil {
		return false, err
	}
	if m.onHost || m.streams == nil || m.mappable() || m.runtime.claims.writing.Load() != 0 {
		return false, nil
	}
	p := piece{memory: m, address: at, stream: s}
	w, err := p.work()
	if err != nil {
		return false, err
	}
	defer func() {
		if done || err != nil {
			//mutate:remove a temporary is kept of elements of which a few bytes are written
			m.runtime.kept.changedPart(p, size)
		}
	}()
	before := p.pending()
	if before == nil {
		return p.write(w, source, size, t, nil)
	}
	defer func() { err = errors.Join(err, before.LetGo()) }()
	for _, other := range before {
		//mutate:skip a few bytes are written before what is pending
		if err := w.Follow(other); err != nil {
			return false, err
		}
	}
	return p.write(w, source, size, t, before)
}

// write copies bytes from the host by w's stream, which runs after what was pending before.
func (p piece) write(
	w *order.Work, source backends.Address, size int, t Transfer, before order.Works,
) (done bool, err error) {
	m := p.memory
	if m.runtime.tracing() {
		m.runtime.tracef("copy %d bytes of the host at %#x to %s device %d at %#x", size, source, m.region.Allocator,
			m.region.Device, p.address)
	}
	from := backends.Region{Address: source, Allocator: backends.Malloc, Device: backends.HostDevice}
	left, err := m.backend.Copy(p.region(), from, size, w.Stream)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, errors.Join(err, m.mark(w, before)) // some of it may be enqueued
	case left == backends.Complete:
		return true, m.uses.Done(before)
	}
	//mutate:remove a few bytes that are written are not marked
	err = m.mark(w, before)
	reading := left&backends.Reading != 0
	//mutate:replace the source of a few bytes is given back while it is read
	//mutate:with !reading => true
	if err != nil || t != Sync && !reading {
		return true, err
	}
	if err = w.Wait(); err == nil {
		return true, m.uses.Done(order.Works{w})
	}
	//mutate:never the source of a few bytes is given back after an error
	if reading && w.Wait() != nil {
		// The source is the caller's again: nothing may read it any more. A wait reports what
		// went wrong before it, too, so only the second one has told.
		_, _ = order.SettleDevice(w.Backend, w.Device)
	}
	return true, err
}
