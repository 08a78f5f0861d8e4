package memory

import (
	"errors"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

const (
	firstSlab = 256 << 10
	// MostSlab is how many bytes a slab may have.
	MostSlab = 16 << 20
)

// slabBytes is how large the next slab of a session is that has some for places of a size: small at first, and no large
// part of the limit.
func slabBytes(had int, place, limit int64) int64 {
	bytes := min(int64(firstSlab)<<min(had, 6), MostSlab)
	if limit > 0 {
		bytes = min(bytes, limit/16)
	}
	return protocol.RoundUp(max(bytes, place), protocol.PageSize)
}

// Reserve makes a unit of one object whose memory the client makes. A file of it would hold the filled bytes.
func (m *Memory) Reserve(device backends.UUID, size, filled int64) (*Unit, error) {
	d, err := m.limitedDomain(device)
	if err != nil {
		return nil, err
	}
	if err := m.take(d, size); err != nil {
		return nil, err
	}
	return newUnit(d, size, filled), nil
}

// take counts a unit of some bytes. It makes room for them before it claims a descriptor: what is evicted for a
// descriptor would go for nothing where the bytes do not fit.
func (m *Memory) take(d *Domain, bytes int64) error {
	if err := m.room(d, bytes); err != nil {
		return err
	}
	err := m.claim()
	if err != nil {
		d.used -= bytes
	}
	return err
}

// Unclaim takes back what a unit has counted that does not come to be.
func (m *Memory) Unclaim(u *Unit) {
	u.domain.used -= u.Size
	m.Units--
}

func newUnit(d *Domain, size, filled int64) *Unit {
	return &Unit{
		ID: protocol.NewID(), domain: d, Size: size, Each: size, filled: filled, tenants: make([]*Tenant, 1), Writable: true,
	}
}

// NewHost makes a unit of one object on the host, of memory that is ready where there is some for it.
func (m *Memory) NewHost(bytes int64) (*Unit, error) {
	d := m.Domain(backends.UUID{})
	descriptor, err := m.takeSpare(d, bytes)
	if err != nil {
		return nil, err
	}
	if descriptor < 0 {
		return m.newMemory(bytes)
	}
	m.Units++ // the descriptor is there
	u := newUnit(d, bytes, bytes)
	u.Descriptor = wire.NewDescriptor(descriptor)
	return u, nil
}

// newMemory makes a unit of one object on the host.
func (m *Memory) newMemory(bytes int64) (*Unit, error) {
	u, err := m.Reserve(backends.UUID{}, bytes, bytes)
	if err != nil {
		return nil, err
	}
	var number int
	if err := m.retrying(func() (err error) {
		number, err = host.NewSharedFile(int(bytes))
		return err
	}); err != nil {
		m.Unclaim(u)
		if !errors.As(err, new(*protocol.FullError)) {
			err = &protocol.SystemError{Problem: err.Error()}
		}
		return nil, err
	}
	u.Descriptor = wire.NewDescriptor(number)
	return u, nil
}

// SlabFor returns one of a client's slabs with a free place, or makes it.
func (m *Memory) SlabFor(c *Client, place int64) (u *Unit, fresh bool, err error) {
	list := c.slabs[place]
	for i := len(list) - 1; i >= 0; i-- {
		if len(list[i].free) > 0 {
			return list[i], false, nil
		}
	}
	d := m.Domain(backends.UUID{})
	bytes := slabBytes(len(list), place, d.limit)
	if u, err = m.newMemory(bytes); err != nil {
		return nil, false, err
	}
	n := bytes / place
	u.Each, u.tenants, u.free = place, make([]*Tenant, n), make([]int32, n)
	for i := range u.free {
		u.free[i] = int32(n) - 1 - int32(i)
	}
	u.creator = c
	c.Learn(u)
	c.slabs[place] = append(c.slabs[place], u)
	m.slabs[u.ID] = u
	return u, true, nil
}

// Adopt makes a slab of memory that a client of another server has. Others may have told of it meanwhile: then it is
// not found.
func (m *Memory) Adopt(id protocol.ID, size, each int64) (*Unit, error) {
	u := &Unit{ID: id, domain: m.Domain(backends.UUID{}), Size: size, Each: each, filled: size}
	if err := m.take(u.domain, size); err != nil {
		return nil, err
	}
	if m.slabs[id] != nil { // another client was first while something was spilled
		m.Unclaim(u)
		return nil, &protocol.NotFoundError{ID: id}
	}
	u.tenants = make([]*Tenant, size/each)
	m.slabs[id] = u
	return u, nil
}

// takeSpare returns a descriptor of memory of some bytes that was ready, in whole or in part, and counts them; -1 where
// there is none for it. The lock is let go of while it is cut.
func (m *Memory) takeSpare(d *Domain, bytes int64) (descriptor int, err error) {
	p := &m.spares
	if !p.fits(bytes) {
		return -1, nil
	}
	one := p.ready
	if one == nil {
		p.misses++
		return -1, nil
	}
	more := bytes - one.size
	if more > d.limit-d.used+d.idle.bytes+d.leaving {
		return -1, m.full(d, bytes)
	}
	p.ready = nil
	if more > 0 {
		if err := m.room(d, more); err != nil {
			_ = wire.CloseRecorded(one.descriptor)
			d.used -= one.size
			return -1, err
		}
	}
	m.lock.Pause(func() {
		err = host.FinishReadyFile(one.descriptor, int(bytes))
		wire.Crash("server-taken")
	})
	d.used -= max(-more, 0)
	if err != nil {
		_ = wire.CloseRecorded(one.descriptor)
		d.used -= bytes
		p.misses++
		return -1, nil
	}
	p.hits++
	return one.descriptor, nil
}

// Seal has nobody map host memory for writing any more. Memory of one object is not written to at all any more, unless
// somebody has it mapped for writing still.
func (u *Unit) Seal() (forGood bool, err error) {
	if !u.Writable || u.OnDevice() {
		return !u.IsSlab(), nil
	}
	if !u.IsSlab() {
		//mutate:replace a sealed file is not sealed
		//mutate:with forGood, err = host.SealShared(u.Descriptor.Number) => forGood = true
		if forGood, err = host.SealShared(u.Descriptor.Number); err != nil {
			return false, err
		}
		//mutate:skip a slab is not sealed against others
	} else if err := host.SealMappings(u.Descriptor.Number); err != nil {
		return false, err
	}
	readable, err := host.ReadOnlyDescriptor(u.Descriptor.Number)
	if wire.RanOut(err) {
		u.Writable = false // the seals alone protect it
		return forGood, nil
	}
	if err != nil {
		return false, err
	}
	u.Descriptor.Release()
	u.Descriptor, u.Writable = wire.NewDescriptor(readable), false
	return forGood, nil
}
