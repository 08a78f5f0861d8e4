package gobuffer

import (
	"errors"

	"hamr/backends"
)

// Memory that grows in place grows by at least this part of its size: small enough to waste little of a device, and
// large enough to call its driver seldom.
const growthShare = 8

// Grows reports whether the memory can grow without a copy.
func (m *Memory) Grows() bool {
	return m.check() == nil && m.grower != nil && m.owned && !m.isTakenOver() && m.mapping == nil && m.region.Address != 0
}

// extend grows the memory to at least size bytes, and to wanted bytes if there is enough memory.
func (m *Memory) extend(size, wanted int) error {
	had := m.Size()
	if size <= had {
		return nil
	}
	has, err := m.grower.Grow(m.region, had, wanted)
	if wanted > size && (outOfMemory(err) || errors.Is(err, errors.ErrUnsupported)) {
		has, err = m.grower.Grow(m.region, had, size)
	}
	if err != nil && m.runtime.madeRoom(m.backend, err) {
		has, err = m.grower.Grow(m.region, had, size)
	}
	if err != nil {
		return err
	}
	m.size.Store(int64(has))
	if c := m.runtime.checked(); c != nil {
		c.grows(m)
	}
	m.grown(has - had)
	if r := m.runtime; r.tracing() {
		r.tracef("grow %s device %d at %#x from %d to %d bytes", m.region.Allocator, m.region.Device, m.region.Address, had,
			has)
	}
	return nil
}

// relocated returns the memory at other addresses, with one reference.
func (m *Memory) relocated(size int) (*Memory, error) {
	r, had := m.runtime, m.Size()
	at, has, err := m.grower.Relocate(m.region, had, size)
	if err != nil && r.madeRoom(m.backend, err) {
		at, has, err = m.grower.Relocate(m.region, had, size)
	}
	if err != nil {
		return nil, err
	}
	next := &Memory{runtime: r, served: m.served, owned: true, ending: freed{},
		region: backends.Region{Address: at, Allocator: m.region.Allocator, Device: m.region.Device}}
	next.size.Store(int64(has))
	next.asked.Store(m.asked.Load())
	next.stream.Store(m.stream.Load())
	next.every.Store(m.every.Load())
	next.refs.Store(1)
	// Work at the new addresses runs after the work under way at the old ones.
	pending := m.uses.Recorded()
	for _, w := range pending {
		//mutate:remove memory at other addresses knows nothing of the work at the old ones
		_ = next.mark(w, nil) // takes the ticket over, and drops none
	}
	next.library, next.tag = m.library, m.tag
	next.come(has)
	if r.tracing() {
		r.tracef("relocate %s device %d from %#x to %#x of %d bytes", m.region.Allocator, m.region.Device, m.region.Address,
			at, has)
	}
	return next, nil
}
