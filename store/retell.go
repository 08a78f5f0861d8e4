package store

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
)

// tellHeld tells a server of what this client has, of which the server keeps what it can. Another
// client may have told it before. The turn is the caller's.
func (c *Client) tellHeld(ctx context.Context) error {
	c.mu.Lock()
	c.releases, c.forgets, c.aborts, c.deletes = nil, nil, nil, nil
	slabs := map[*mapping]int64{}
	var list []*held
	var unused []*mapping
	for _, h := range c.held {
		if h.deleted {
			continue
		}
		if m := h.mapping; m != nil && m.slab {
			slabs[m] = placeOf(h.info.Bytes)
		}
		h.users++ // so that it stays mapped meanwhile
		list = append(list, h)
	}
	for id, m := range c.slabs {
		if m.users == 0 {
			delete(c.slabs, id)
			unused = append(unused, m)
		}
	}
	names := map[string]ID{}
	for name, id := range c.names {
		if c.held[id] != nil {
			names[name] = id
		}
	}
	c.names = names
	c.mu.Unlock()
	for _, m := range unused {
		_ = m.end()
	}
	defer func() {
		for _, h := range list {
			c.drop(h)
		}
	}()
	var lost *LostError
	for m, each := range slabs {
		err := c.tellSlab(ctx, m, each)
		if errors.As(err, &lost) || ctx.Err() != nil {
			return err
		}
		if err != nil { // the server will not say when it has no use any more
			c.mu.Lock()
			m.gone = true
			c.mu.Unlock()
		}
	}
	for _, h := range list {
		if err := c.tellObject(ctx, h); errors.As(err, &lost) || ctx.Err() != nil {
			return err
		}
		crash("client-holding")
	}
	for name, id := range names {
		err := c.exchange(ctx, call{operation: opPutName, build: func(e *encoder) { e.text(name); e.id(id); e.flag(false) }})
		if errors.As(err, &lost) {
			return err
		}
	}
	return nil
}

func (c *Client) tellSlab(ctx context.Context, m *mapping, each int64) error {
	// Its maker may have died, or this be it, before anything in it was sealed.
	if err := host.SealMappings(m.descriptor); err != nil && err != unix.EPERM {
		return err
	}
	return c.exchange(ctx, call{
		operation: opHoldUnit,
		build: func(e *encoder) {
			e.id(m.id)
			e.u64(uint64(m.size))
			e.u64(uint64(each))
		},
		descriptors: []int{m.descriptor},
	})
}

func (c *Client) tellObject(ctx context.Context, h *held) error {
	c.mu.Lock()
	info, m, times := h.info, h.mapping, h.times
	c.mu.Unlock()
	where, slab, size := nowhere, ID{}, int64(0)
	var descriptors []int
	switch {
	case m == nil && info.Bytes > 0:
		return nil // a device's memory that was not made yet
	case m == nil:
	case m.slab:
		where, slab = inSlab, m.id
	case info.Device != [16]byte{}:
		where, size, descriptors = onDevice, m.size, []int{m.descriptor}
	default:
		where, size, descriptors = ownMemory, m.size, []int{m.descriptor}
	}
	return c.exchange(ctx, call{
		operation: opHold,
		build: func(e *encoder) {
			e.id(info.ID)
			e.u32(uint32(times))
			e.u8(where)
			e.id(slab)
			e.u64(uint64(h.offset))
			e.u64(uint64(size))
			o := object{
				device: info.Device, bytes: info.Bytes, metadata: info.Metadata,
				sealed: info.Sealed, evicts: info.Evictable, pinned: info.Pinned,
			}
			var layout encoder
			encodeLayout(&layout, info.Layout.Type, info.Layout.Shape)
			o.layout = layout.bytes
			encodeObject(e, &o)
		},
		descriptors: descriptors,
	})
}
