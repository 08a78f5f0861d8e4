package store

import (
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// undoable is what a connection's last request has done, which its client can have undone: it may end before it has
// the answer.
type undoable struct {
	request   uint64
	operation uint16
	object    *object // made, sealed or leased by it
}

// undo undoes the last request, if it is the one that is named and has done something.
func (c *conversation) undo(d *protocol.Decoder) error {
	request := d.U64()
	if err := d.Done(); err != nil {
		return err
	}
	o := c.last.object
	//mutate:replace what nobody waits for is not undone
	//mutate:with c.last.request != request => c.last.request == request
	if o == nil || c.last.request != request {
		return errLater
	}
	c.last.object = nil
	s := c.server
	if c.last.operation != protocol.OpGet && !o.deleted {
		s.remove(o, false, Deleted)
	}
	if c.last.operation != protocol.OpSeal {
		s.release(c.session, o.id, 1)
	}
	return errLater
}

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
