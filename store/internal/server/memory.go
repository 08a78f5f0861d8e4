package server

import (
	"errors"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// reserve makes a unit of one object whose memory somebody else makes.
func (s *Server) reserve(device backends.UUID, bytes int64) (*unit, error) {
	d, err := s.deviceRoom(device)
	if err != nil {
		return nil, err
	}
	if err := s.take(d, bytes); err != nil {
		return nil, err
	}
	return newUnit(d, bytes), nil
}

// take counts a unit of some bytes, and makes room for them first: what is evicted for a descriptor would go for
// nothing where the bytes do not fit.
func (s *Server) take(d *domain, bytes int64) error {
	if err := s.room(d, bytes); err != nil {
		return err
	}
	err := s.claim()
	if err != nil {
		d.used -= bytes
	}
	return err
}

func newUnit(d *domain, bytes int64) *unit {
	return &unit{id: protocol.NewID(), domain: d, size: bytes, each: bytes, places: make([]*object, 1), writable: true}
}

// ownMemory makes a unit of one object on the host, of memory that is ready where there is some for it.
func (s *Server) ownMemory(bytes int64) (*unit, error) {
	d := s.DomainOf(backends.UUID{})
	descriptor, err := s.takeSpare(d, bytes)
	if err != nil {
		return nil, err
	}
	if descriptor < 0 {
		return s.newMemory(bytes)
	}
	s.Open++ // the descriptor is there
	u := newUnit(d, bytes)
	u.Descriptor = wire.NewDescriptor(descriptor)
	return u, nil
}

// newMemory makes a unit of one object on the host.
func (s *Server) newMemory(bytes int64) (*unit, error) {
	u, err := s.reserve(backends.UUID{}, bytes)
	if err != nil {
		return nil, err
	}
	var number int
	if err := s.retrying(func() (err error) {
		number, err = host.NewSharedFile(int(bytes))
		return err
	}); err != nil {
		s.unclaim(u)
		if !errors.As(err, new(*protocol.FullError)) {
			err = &protocol.SystemError{Problem: err.Error()}
		}
		return nil, err
	}
	u.Descriptor = wire.NewDescriptor(number)
	return u, nil
}

// slab returns one of a session's with a free place, or makes it.
func (s *Server) slab(c *session, place int64) (u *unit, fresh bool, err error) {
	list := c.slabs[place]
	for i := len(list) - 1; i >= 0; i-- {
		if len(list[i].free) > 0 {
			return list[i], false, nil
		}
	}
	d := s.DomainOf(backends.UUID{})
	bytes := slabBytes(len(list), place, d.limit)
	if u, err = s.newMemory(bytes); err != nil {
		return nil, false, err
	}
	n := bytes / place
	u.each, u.places, u.free = place, make([]*object, n), make([]int32, n)
	for i := range u.free {
		u.free[i] = int32(n) - 1 - int32(i)
	}
	u.creator, u.knownBy = c, map[*session]struct{}{c: {}}
	c.known[u] = struct{}{}
	c.slabs[place] = append(c.slabs[place], u)
	s.units[u.id] = u
	return u, true, nil
}

// seal has nobody map host memory for writing any more. Memory of one object nobody writes to at
// all, unless somebody has it mapped for writing still.
func (u *unit) seal() (forGood bool, err error) {
	if !u.writable || u.onDevice() {
		return len(u.places) == 1, nil
	}
	if len(u.places) == 1 {
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
		u.writable = false // the seals alone protect it
		return forGood, nil
	}
	if err != nil {
		return false, err
	}
	u.Descriptor.Release()
	u.Descriptor, u.writable = wire.NewDescriptor(readable), false
	return forGood, nil
}
