package server

import (
	"hamr/store/internal/objects"
	"hamr/store/internal/protocol"
)

// undoable is what one of a connection's last requests has done. Its client can have it undone: it may end before it
// has the answer.
type undoable struct {
	request   uint64
	operation uint16
	object    *objects.Object // made, sealed or leased by it
}

// begin remembers a request, so that it can be undone.
func (c *conversation) begin(f protocol.Frame) {
	c.last = &c.recent[c.requests%len(c.recent)]
	c.requests++
	*c.last = undoable{request: f.Request, operation: f.Operation}
}

// undo undoes the request that is named, if it is one of the last and has done something.
func (c *conversation) undo(d *protocol.Decoder, _ *protocol.Encoder) error {
	request := d.U64()
	if err := d.Done(); err != nil {
		return err
	}
	for i := range c.recent {
		done := &c.recent[i]
		o := done.object
		//mutate:replace what nobody waits for is not undone
		//mutate:with done.request != request => done.request == request
		if o == nil || done.request != request {
			continue
		}
		done.object = nil
		if done.operation != protocol.OpGet && !o.Deleted {
			c.server.table.Remove(o, false, protocol.Deleted)
		}
		if done.operation != protocol.OpSeal {
			c.server.table.Release(c.session, o.ID, 1)
		}
	}
	return errLater
}
