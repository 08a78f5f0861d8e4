package store

import (
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// undoLast has the server undo the last request, of which nobody waits for the answer, and reports whether it is told.
func (c *Client) undoLast() bool {
	if c.book < 0 { // a server of a version without books takes it for a breach
		return false
	}
	c.out.Bytes = c.out.Bytes[:0]
	at := c.out.Begin(protocol.OpUndo, 0, 0)
	c.out.U64(c.request)
	c.out.End(at)
	return wire.SendTo(c.socket.Descriptor, c.out.Bytes, nil, unix.MSG_DONTWAIT) == nil
}

// dropUndone ends the use of an object of which the server has taken back the lease that a late answer tells of.
func (c *Client) dropUndone(h *held) {
	c.mu.Lock()
	h.times--
	c.mu.Unlock()
	c.drop(h)
}

// Discard has an object deleted that nobody is to know of. It waits for no answer.
func (c *Client) Discard(id ID) {
	c.tellLater(func() { c.deletes = append(c.deletes, id) })
	select {
	case c.turn <- struct{}{}:
		c.tellNow()
		c.give()
	default: // who has the turn tells of it, or flush
	}
}

// Unmake discards an object that was sealed, where nobody is to have it.
func (b *Builder) Unmake() { b.client.Discard(b.ID()) }
