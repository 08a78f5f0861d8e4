package store

import (
	"context"
	"errors"

	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// GetOptions say which objects Get returns.
type GetOptions struct {
	// Unsafe gets one that is not sealed, too: what its maker writes is seen at once, and of an
	// object with memory of its own what is written to the array is there for all.
	Unsafe bool
	// Wait waits until there is an object and it is sealed, or the context ends.
	Wait bool
}

// Get returns an object by its id, mapped for reading; nothing is copied. The error is a
// *NotFoundError or *NotSealedError; where the object had been spilled and there is no room to
// bring it back, a *FullError, and where the device itself has no memory for it, or the file cannot be read, a
// *SystemError; the object is there as before.
func (c *Client) Get(ctx context.Context, id ID, o GetOptions) (*Object, error) {
	for {
		object, err := c.get(ctx, id, o.Unsafe)
		var absent *NotFoundError
		var unsealed *NotSealedError
		if err == nil || !o.Wait || !(errors.As(err, &absent) || errors.As(err, &unsealed)) {
			return object, err
		}
		if _, err := c.Wait(ctx, []ID{id}, 1); err != nil {
			return nil, err
		}
	}
}

func (c *Client) get(ctx context.Context, id ID, unsafe bool) (*Object, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	had := c.held[id]
	if had != nil {
		had.users++ // so that it stays mapped meanwhile
	}
	c.mu.Unlock()
	var got *held
	var writable bool
	err := c.call(ctx, asking.Call{
		Operation: protocol.OpGet,
		Finds:     true,
		Build: func(e *protocol.Encoder) {
			e.ID(id)
			var flags uint8
			if unsafe {
				flags |= protocol.FlagUnsafe
			}
			if had == nil {
				flags |= protocol.FlagNeeded
			}
			e.U8(flags)
		},
		Take: func(d *protocol.Decoder, descriptors []int) (err error) {
			bound := len(d.Rest) > 0 && d.Rest[0]&protocol.FlagSession != 0
			info := protocol.DecodeInfo(d, id)
			p := decodePlace(d)
			if err = d.Done(); err == nil {
				err = c.check(p, info.Bytes, descriptors)
			}
			if wire.RanOut(err) {
				//mutate:remove a client that cannot open a descriptor keeps the lease
				c.giveBack(id, p)
				return err
			}
			if err != nil {
				wire.CloseAll(descriptors)
				return err
			}
			wire.Crash("client-got")
			writable = !info.Sealed && p.where != protocol.InSlab
			if got, err = c.hold(info, p, descriptors, writable); err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			got.bound = got.bound || bound
			if got.mapping != nil && got.mapping.sealed {
				writable, got.info.Sealed = false, true
			}
			return nil
		},
		Undo: func(told bool) {
			if told {
				c.dropUndone(got)
			} else {
				c.drop(got)
			}
		},
	})
	if had != nil {
		err = c.notFound(had, err)
		c.drop(had)
	}
	if err != nil {
		return nil, err
	}
	wire.Crash("client-got-mapped")
	return c.object(got, !writable)
}

// hold counts a lease that the server has given, and a use of it.
func (c *Client) hold(info Info, p place, descriptors []int, writable bool) (*held, error) {
	c.mu.Lock()
	if h := c.held[info.ID]; h != nil {
		h.users++
		h.times = min(h.times+1, protocol.MostLeases)
		h.info.Sealed = h.info.Sealed || info.Sealed
		c.mu.Unlock()
		if p.sent { // a slab that came back as another one since this client got the object
			c.unmapped(p)
		}
		wire.CloseAll(descriptors)
		return h, nil
	}
	c.mu.Unlock()
	h := &held{info: info, offset: p.offset, times: 1, users: 1}
	if p.where != protocol.Nowhere {
		if p.where != protocol.InSlab && !p.sent {
			c.giveBack(info.ID, p)
			return nil, context.Canceled // it was unmapped since it was asked for
		}
		m, err := c.mapped(p, info.Device, descriptors, writable)
		if err != nil {
			c.giveBack(info.ID, p)
			return nil, err
		}
		h.mapping = m
	}
	c.mu.Lock()
	c.held[info.ID] = h
	c.mu.Unlock()
	return h, nil
}

// Descriptor returns by which descriptor, which stays the object's, its memory is mapped, for
// [gobuffer.Sharing]; nil where it has none of its own, as small objects, or was released.
func (o *Object) Descriptor() *gobuffer.Descriptor {
	c := o.client
	c.mu.Lock()
	defer c.mu.Unlock()
	m := o.held.mapping
	if m == nil || m.slab || m.descriptor < 0 {
		return nil
	}
	start := m.memory.Region().Address
	return &gobuffer.Descriptor{Number: m.descriptor, Start: start, Size: m.memory.Size(), ReadOnly: true}
}
