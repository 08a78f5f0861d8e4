package store

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// mostBooks is how many servers in a row may end before this client has told them all.
const mostBooks = 8

// begin uses a connection, and looks for another server when it ends. The caller has the turn.
func (c *Client) begin(socket *wire.WaitingSocket, book int) {
	// A server of a version without books takes a request to undo another for a breach.
	c.line.Socket, c.line.Lost, c.line.Undoes = socket, nil, book >= 0
	c.session.Add(1)
	if c.book >= 0 && len(c.books) < mostBooks {
		c.books = append(c.books, c.book)
	} else if c.book >= 0 {
		_ = wire.CloseRecorded(c.book) // that server knew little: it was not even told what this client knows
	}
	c.book = book
	wire.Record(c.book)
	c.unwatch = wire.WhenHungUp(socket.Descriptor, func() {
		_ = c.take(context.Background())
		defer c.give()
		if c.line.Socket == socket {
			_ = c.line.Lose(io.EOF)
		}
	})
}

// lineEnded is told that the connection ends.
func (c *Client) lineEnded() {
	c.unwatch()
	c.rejoinLater()
}

// takeJoined takes the turn, with a connection. Where there is none, it finds a server and tells it what this client
// has. That goes on when ctx ends, so that the server is told of all.
func (c *Client) takeJoined(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	if c.line.Socket != nil {
		return nil
	}
	joined := make(chan error)
	go func() {
		select {
		case joined <- c.join():
		case <-ctx.Done():
			c.give()
		}
	}()
	select {
	case err := <-joined:
		if err != nil {
			c.give()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join finds a server and tells it what this client has. The turn is the caller's.
func (c *Client) join() error {
	for {
		if c.isClosed() {
			return ErrClosed
		}
		socket, book, err := asking.Connect(context.Background(), c.path, c.hangUp)
		if err != nil && c.isClosed() {
			return ErrClosed
		} else if err != nil {
			return err
		}
		c.begin(socket, book)
		c.forgetTold()
		err = c.tellAll()
		var broken *ProtocolError
		if !errors.As(err, &broken) {
			return err
		}
		// What the server took for a breach is not told again.
	}
}

// How long to wait before a server is looked for again.
const (
	joinSoon   = 10 * time.Millisecond
	joinSeldom = 250 * time.Millisecond
)

// rejoinLater has a goroutine look for a server as long as there is something to tell it, and this client makes
// no call that does so.
func (c *Client) rejoinLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	//mutate:always a client that makes no call tells nothing
	if c.joining || c.closed || len(c.held) == 0 {
		return
	}
	c.joining = true
	go func() {
		for wait := joinSoon; ; wait = min(2*wait, joinSeldom) {
			time.Sleep(wait)
			_ = c.take(context.Background())
			done := c.isTold()
			if !done && c.line.Socket == nil {
				_ = c.join()
			} else if !done {
				_ = c.tellAll()
			}
			c.give()
			if done {
				return
			}
		}
	}()
}

// isTold reports whether the server knows all that this client has. Then nobody looks for a server any more. The turn
// is the caller's.
func (c *Client) isTold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.books) > 0 && c.line.Socket != nil && c.book >= 0 && !c.closed {
		return false
	}
	for _, h := range c.held {
		if !c.closed && !h.refused && !h.deleted && (c.line.Socket == nil || h.untold != nil) {
			return false
		}
	}
	c.joining = false
	return true
}

// forgetTold begins a session of which the server knows nothing yet. The turn is the caller's.
func (c *Client) forgetTold() {
	c.mu.Lock()
	c.releases, c.forgets, c.aborts, c.deletes, c.unnamed = nil, nil, nil, nil, nil
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
		err := c.line.Exchange(context.Background(), asking.Call{Operation: protocol.OpRemember, Descriptors: c.books[:1]})
		if tellsLater(err) || errors.As(err, new(*LostError)) {
			return err
		}
		_ = wire.CloseRecorded(c.books[0])
		c.books = c.books[1:]
		if c.line.Socket == nil {
			return err
		}
	}
	return nil
}

// tellAll tells the server what it does not know of what this client has and knows: first what became of objects,
// then the objects. The turn is the caller's.
func (c *Client) tellAll() error {
	if err := c.tellBooks(); c.line.Socket == nil {
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
		if c.line.Socket == nil {
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
		if c.line.Socket == nil {
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
	return c.line.Exchange(context.Background(), asking.Call{
		Operation: protocol.OpHoldUnit,
		Build: func(e *protocol.Encoder) {
			e.ID(m.id)
			e.U64(uint64(m.size))
			e.U64(uint64(each))
		},
		Descriptors: []int{m.descriptor},
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
	return c.line.Exchange(context.Background(), asking.Call{
		Operation: protocol.OpHold,
		Build: func(e *protocol.Encoder) {
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
		Descriptors: descriptors,
	})
}
