package store

import (
	"errors"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/devices"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// check refuses a place that the object does not fit, which would map memory of other objects, and a place whose
// descriptor this process could not open.
func (c *Client) check(p place, bytes int64, descriptors []int) error {
	if p.sent && c.line.Short {
		return wire.NoDescriptors()
	}
	want := 0
	if p.sent {
		want = 1
	}
	if len(descriptors) != want || (p.where == protocol.Nowhere) != (bytes == 0) ||
		p.offset > p.size || bytes > p.size-p.offset {
		return &ProtocolError{Problem: "an object in a place that it does not fit"}
	}
	return nil
}

// unmapped tells the server that this process has not mapped a slab that it was told of.
func (c *Client) unmapped(p place) {
	c.tellLater(func() {
		if p.where == protocol.InSlab && c.slabs[p.unit] == nil {
			c.forgets = append(c.forgets, p.unit)
		}
	})
}

// mapped returns the mapping of a place, with one more user: that of a slab which is
// known, or a new one. The descriptors are its own from now on.
func (c *Client) mapped(p place, device backends.UUID, descriptors []int, writable bool) (m *mapping, err error) {
	if p.where == protocol.InSlab {
		c.mu.Lock()
		m = c.slabs[p.unit]
		if m != nil {
			m.users++
		}
		c.mu.Unlock()
		if m != nil {
			wire.CloseAll(descriptors)
			return m, nil
		}
	}
	if len(descriptors) != 1 {
		wire.CloseAll(descriptors)
		return nil, &ProtocolError{Problem: "no descriptor of memory that is not mapped"}
	}
	a, number := backends.Shared, backends.HostDevice
	if p.where == protocol.OnDevice {
		if a, number, err = c.deviceOf(device); err != nil {
			wire.CloseAll(descriptors)
			return nil, err
		}
	}
	memory, err := c.runtime.MapShared(a, number, descriptors[0], int(p.size), !writable)
	sealed := writable && errors.Is(err, unix.EPERM) // since the server has answered
	if sealed {
		memory, err = c.runtime.MapShared(a, number, descriptors[0], int(p.size), true)
	}
	if err != nil {
		wire.CloseAll(descriptors)
		return nil, err
	}
	m = &mapping{
		id: p.unit, memory: memory, descriptor: descriptors[0], size: p.size, slab: p.where == protocol.InSlab,
		sealed: sealed, users: 1,
	}
	if m.slab {
		c.mu.Lock()
		c.slabs[p.unit] = m
		c.mu.Unlock()
	}
	return m, nil
}

// array returns an array of an object, which is used until the last reference to its memory ends.
// The use must have been counted.
func (c *Client) array(h *held, readOnly bool) (*gobuffer.Array, error) {
	if h.mapping == nil {
		a, err := c.runtime.NewArray(h.info.Layout.Type, h.info.Layout.Shape, gobuffer.Options{Allocator: backends.Malloc})
		return a, err
	}
	c.mu.Lock()
	at := h.mapping.memory.Region() // which part replaces
	c.mu.Unlock()
	return c.over(at, h, readOnly, func() { c.drop(h) })
}

// over is an array of an object whose memory is mapped at a region, until end is called.
func (c *Client) over(at backends.Region, h *held, readOnly bool, end func()) (*gobuffer.Array, error) {
	at.Address += backends.Address(h.offset)
	memory, err := c.runtime.Adopt(at, int(h.info.Bytes), 0, end)
	if err != nil {
		return nil, err
	}
	return gobuffer.View(memory, at.Address, h.info.Layout, h.info.Layout.Count(), readOnly,
		gobuffer.Options{Allocator: at.Allocator, Device: at.Device, Transfer: gobuffer.SyncHost}), nil
}

// drop ends a use of an object. The last one unmaps it and then ends its leases.
func (c *Client) drop(h *held) {
	c.mu.Lock()
	h.users--
	if h.users > 0 {
		c.mu.Unlock()
		return
	}
	if c.held[h.info.ID] == h {
		delete(c.held, h.info.ID)
	}
	ended := c.unuse(h.mapping)
	times, stale := h.times, h.stale
	c.mu.Unlock()
	if stale != nil {
		_ = stale.Release()
	}
	if ended != nil {
		_ = ended.end() // what fails is traced by the runtime, and nobody waits for this
	}
	c.tellLater(func() {
		if times > 0 {
			c.releases = append(c.releases, release{h.info.ID, times})
		}
		if ended != nil && ended.slab {
			c.forgets = append(c.forgets, ended.id)
		}
	})
}

// part maps the memory of an object that its maker seals for reading, apart from where it was written to. Nobody else
// sees what is written there afterwards, or the device refuses it.
func (c *Client) part(h *held) error {
	m := h.mapping
	if !m.memory.Separable() {
		return m.memory.Protect()
	}
	memory, err := c.runtime.MapShared(backends.Shared, backends.HostDevice, m.descriptor, int(m.size), true)
	if err != nil {
		return err
	}
	if err := m.memory.Separate(); err != nil {
		return errors.Join(err, memory.Release())
	}
	c.mu.Lock()
	h.stale, m.memory = m.memory, memory
	c.mu.Unlock()
	return nil
}

// unuse ends a use of a mapping, and returns it where it is to be unmapped. The lock is held.
func (c *Client) unuse(m *mapping) *mapping {
	if m == nil {
		return nil
	}
	if m.users--; m.users > 0 || (m.slab && !m.gone) {
		return nil
	}
	if m.slab && c.slabs[m.id] == m {
		delete(c.slabs, m.id)
	}
	return m
}

// forgetSlabs is told of slabs in which nothing is any more.
func (c *Client) forgetSlabs(d *protocol.Decoder) {
	var ended []*mapping
	c.mu.Lock()
	for range d.Count(16) {
		m := c.slabs[d.ID()]
		if m == nil {
			continue
		}
		m.gone = true
		if m.users == 0 {
			delete(c.slabs, m.id)
			ended = append(ended, m)
		}
	}
	c.mu.Unlock()
	for _, m := range ended {
		_ = m.end()
		c.tellLater(func() { c.forgets = append(c.forgets, m.id) })
	}
}

// deviceOf finds a device by its UUID among those of which this process can map memory, once.
func (c *Client) deviceOf(id backends.UUID) (a backends.Allocator, device int, err error) {
	if found, ok := c.devices.Load(id); ok {
		at := found.(backends.Region)
		return at.Allocator, at.Device, nil
	}
	if a, device, err = c.findDevice(id); err == nil {
		c.devices.Store(id, backends.Region{Allocator: a, Device: device})
	}
	return a, device, err
}

func (c *Client) findDevice(id backends.UUID) (a backends.Allocator, device int, err error) {
	reason := "this process has no device " + id.String() + " whose memory it can map"
	err = &backends.UnavailableError{Backend: "store", Reason: reason}
	devices.Each(c.runtime, func(its backends.UUID, at backends.Region) bool {
		if its == id {
			a, device, err = at.Allocator, at.Device, nil
		}
		return its != id
	})
	return a, device, err
}

// giveBack ends a lease of what this process cannot map.
func (c *Client) giveBack(id ID, p place) {
	if !c.line.Undone {
		c.tellLater(func() { c.releases = append(c.releases, release{id, 1}) })
	}
	c.unmapped(p)
}

// dropUndone ends the use of an object of which the server has taken back the lease that a late answer tells of.
func (c *Client) dropUndone(h *held) {
	c.mu.Lock()
	h.times--
	c.mu.Unlock()
	c.drop(h)
}
