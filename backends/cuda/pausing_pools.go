package cuda

import (
	"hamr/backends"
	"hamr/backends/internal/pool"
)

// taggedPool returns the pool of a tag on a device, made at its first use.
func (b *growthFloor) taggedPool(d *device, t backends.Tag) (*taggedPool, error) {
	if p := d.tagged.of(t); p != nil {
		return p, nil
	}
	g, err := b.join(t)
	if err != nil {
		return nil, err
	}
	g.unlock()
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	keep, err := b.releaseThreshold(v, d)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tagged.of(t) == nil {
		source := &taggedMemory{plainMemory{&b.poolFloor, d}, b, g}
		d.tagged.add(taggedPool{pool.New(source, int(min(keep, mostReserved))), &g.tagged})
	}
	return d.tagged.of(t), nil
}

// allocateTagged serves the allocator CUDA where there is a tag.
func (b *growthFloor) allocateTagged(r backends.Request) (backends.Address, error) {
	d, err := b.device(r.Device)
	if err != nil {
		return 0, err
	}
	p, err := b.taggedPool(d, r.Tag)
	if err != nil {
		return 0, err
	}
	if !p.of.is(running) {
		return 0, &backends.PausedError{Tag: r.Tag}
	}
	return b.takeFrom(p.Pool, r)
}

// taggedMemory is pool.Source over extents of a group.
type taggedMemory struct {
	plainMemory
	b     *growthFloor
	group *group
}

func (m *taggedMemory) Allocate(size int) (backends.Address, error) {
	if err := m.group.lock(); err != nil {
		return 0, err
	}
	defer m.group.unlock()
	e, err := m.b.mapped(m.d, size, false)
	if err != nil {
		return 0, err
	}
	e.lent = true
	m.b.extents.enlist(e, m.group)
	return e.start, nil
}

// Free leaves memory to the pool while somebody changes the group: that may be who asks for more memory.
func (m *taggedMemory) Free(at backends.Address) error {
	e, err := m.b.extents.startingAt(backends.Region{Address: at, Allocator: m.b.dialect.Allocators.Growing,
		Device: m.d.number})
	if err != nil {
		return err
	}
	if !m.group.changing.TryLock() {
		return &backends.PausedError{Tag: m.group.tag}
	}
	defer m.group.changing.Unlock()
	return keptByPool(m.b.endExtent(e))
}
