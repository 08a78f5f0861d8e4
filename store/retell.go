package store

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// forgetTold begins a session of which the server knows nothing yet. The turn is the caller's.
func (c *Client) forgetTold() {
	c.mu.Lock()
	c.releases, c.forgets, c.aborts, c.deletes = nil, nil, nil, nil
	for _, h := range c.held {
		h.untold = errUntold
	}
	var unused []*mapping
	for id, m := range c.slabs {
		if m.users == 0 {
			delete(c.slabs, id)
			unused = append(unused, m)
		}
	}
	c.mu.Unlock()
	for _, m := range unused {
		_ = m.end()
	}
}

// tellBooks tells the server what earlier ones wrote down.
func (c *Client) tellBooks() error {
	for len(c.books) > 0 && c.book >= 0 {
		err := c.exchange(context.Background(), call{operation: protocol.OpRemember, descriptors: c.books[:1]})
		if tellsLater(err) || errors.As(err, new(*LostError)) {
			return err
		}
		_ = wire.CloseRecorded(c.books[0])
		c.books = c.books[1:]
		if c.socket == nil {
			return err
		}
	}
	return nil
}

// tellAll tells the server what it does not know of what this client has and knows: first what became of objects,
// then the objects. The turn is the caller's.
func (c *Client) tellAll() error {
	if err := c.tellBooks(); c.socket == nil {
		return err
	}
	return c.tellHeld()
}

func (c *Client) closeBooks() {
	for _, number := range append(c.books, c.book) {
		if number >= 0 {
			_ = wire.CloseRecorded(number)
		}
	}
	c.book, c.books = -1, nil
}

// tellHeld tells the server what it does not know of what this client has. Another client may have told it before.
// What the server has no room for now remains to be told. The error is one of the connection's. The turn is the
// caller's.
func (c *Client) tellHeld() error {
	c.mu.Lock()
	slabs := map[*mapping]int64{}
	var list []*held
	for _, h := range c.held {
		if h.untold == nil || h.deleted || h.refused {
			continue
		}
		if m := h.mapping; m != nil && m.slab {
			slabs[m] = protocol.PlaceOf(h.info.Bytes)
		}
		h.users++ // so that it stays mapped meanwhile
		list = append(list, h)
	}
	c.mu.Unlock()
	defer func() {
		for _, h := range list {
			c.drop(h)
		}
	}()
	later := map[*mapping]error{} // slabs that the server has no room for now
	for m, each := range slabs {
		err := c.tellSlab(m, each)
		if errors.As(err, new(*ProtocolError)) { // it is not told again
			c.mu.Lock()
			for _, h := range list {
				h.refused = h.refused || h.mapping == m
			}
			c.mu.Unlock()
		}
		if c.socket == nil {
			return err
		}
		if tellsLater(err) {
			later[m] = err
		} else if err != nil { // the server will not say when it has no use any more
			c.mu.Lock()
			m.gone = true
			c.mu.Unlock()
		}
	}
	for _, h := range list {
		err := later[h.mapping]
		if err == nil {
			err = c.tellObject(h)
		}
		c.mu.Lock()
		h.refused = errors.As(err, new(*ProtocolError))
		if h.untold = nil; tellsLater(err) || errors.As(err, new(*LostError)) {
			h.untold = err
		}
		c.mu.Unlock()
		if c.socket == nil {
			return err
		}
		wire.Crash("client-holding")
	}
	return nil
}

var errUntold = errors.New("the server was not told of it yet")

// notFound returns the error of a call about an object that this client has. Where the server does not find it, it
// may not have taken it yet.
func (c *Client) notFound(h *held, err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.untold != nil && !h.deleted && errors.As(err, new(*NotFoundError)) {
		return h.untold
	}
	return err
}

// notMade is notFound of an object that this client makes, which another server may never know.
func (c *Client) notMade(h *held, err error) error {
	if err = c.notFound(h, err); err != nil && errors.As(err, new(*NotFoundError)) && h.session != c.session.Load() {
		return &LostError{Path: c.path, Reason: errors.New("another server does not know of an object that was being made")}
	}
	return err
}

// tellsLater reports whether a server may take at another time what it has refused.
func tellsLater(err error) bool {
	//mutate:replace what a server had no room for is not told again
	//mutate:with errors.As(err, new(*FullError)) || errors.As(err, new(*SystemError)) => false
	return errors.As(err, new(*FullError)) || errors.As(err, new(*SystemError))
}

func (c *Client) tellSlab(m *mapping, each int64) error {
	// Its maker may have died, or this be it, before anything in it was sealed.
	if err := host.SealMappings(m.descriptor); err != nil && err != unix.EPERM {
		return err
	}
	return c.exchange(context.Background(), call{
		operation: protocol.OpHoldUnit,
		build: func(e *protocol.Encoder) {
			e.ID(m.id)
			e.U64(uint64(m.size))
			e.U64(uint64(each))
		},
		descriptors: []int{m.descriptor},
	})
}

func (c *Client) tellObject(h *held) error {
	c.mu.Lock()
	info, m, times := h.info, h.mapping, h.times
	c.mu.Unlock()
	where, slab, size := protocol.Nowhere, ID{}, int64(0)
	var descriptors []int
	switch {
	case m == nil && info.Bytes > 0: // a device's memory that was not made yet
		return nil
	case m == nil:
	case m.slab:
		where, slab = protocol.InSlab, m.id
	case info.Device != [16]byte{}:
		where, size, descriptors = protocol.OnDevice, m.size, []int{m.descriptor}
	default:
		where, size, descriptors = protocol.OwnMemory, m.size, []int{m.descriptor}
	}
	return c.exchange(context.Background(), call{
		operation: protocol.OpHold,
		build: func(e *protocol.Encoder) {
			e.ID(info.ID)
			e.U32(uint32(times))
			e.U8(where)
			e.ID(slab)
			e.U64(uint64(h.offset))
			e.U64(uint64(size))
			o := protocol.Told{
				Device: info.Device, Bytes: info.Bytes, Metadata: info.Metadata,
				Sealed: info.Sealed, Evicts: info.Evictable, Pinned: info.Pinned,
			}
			var layout protocol.Encoder
			protocol.EncodeLayout(&layout, info.Layout.Type, info.Layout.Shape)
			o.Layout = layout.Bytes
			at := len(e.Bytes)
			protocol.EncodeTold(e, &o)
			//mutate:never who got an object before its seal is taken for its maker
			if !h.made && !info.Sealed {
				e.Bytes[at] |= protocol.FlagUnsafe
			}
			if h.bound {
				e.Bytes[at] |= protocol.FlagSession
			}
		},
		descriptors: descriptors,
	})
}
