package server

import "hamr/store/internal/protocol"

// undoable is what a connection's last request has done, which its client can have undone: it may end before it has
// the answer.
type undoable struct {
	request   uint64
	operation uint16
	object    *object // made, sealed or leased by it
}

// undo undoes the last request, if it is the one that is named and has done something.
func (c *Conversation) undo(d *protocol.Decoder) error {
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
	s := c.Server
	if c.last.operation != protocol.OpGet && !o.deleted {
		s.Remove(o, false, protocol.Deleted)
	}
	if c.last.operation != protocol.OpSeal {
		s.release(c.Session, o.id, 1)
	}
	return errLater
}
