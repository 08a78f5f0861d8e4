package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// call is a request.
type call struct {
	operation   uint16
	build       func(*protocol.Encoder) // appends the fields
	descriptors []int                   // that go with it, and stay the caller's
	finds       bool                    // an object, of which another client may still have to tell a new server
	// read reads the reply's fields; without it the reply has none.
	read func(d *protocol.Decoder)
	// take is read of a reply that may have descriptors, which are its own to close.
	take func(d *protocol.Decoder, descriptors []int) error
	// undo gives back what was read after the context had ended, and what the server has given unless it was told.
	undo func(told bool)
	told bool // that the request is undone
}

func (c *Client) call(ctx context.Context, r call) error {
	if c == nil || c.turn == nil {
		return &ArgumentError{Argument: "client", Value: "nil", Accepted: "what Connect returns"}
	}
	ctx, end := c.limited(ctx)
	defer end()
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		if err := c.takeJoined(ctx); err != nil {
			return err
		}
		// Asked afterwards, it could be over, though the answer is of a moment before.
		//mutate:replace what others have still to tell is not waited for
		//mutate:with r.finds => false
		expecting := r.finds && c.book >= 0 && book.IsExpecting(c.book)
		err := c.exchange(ctx, r)
		c.give()
		if !expecting || !isUnsure(err) {
			return err
		}
		if err := pause(ctx, joinSoon); err != nil {
			return err
		}
	}
}

// isUnsure reports whether another client may still tell a new server what makes it answer otherwise.
func isUnsure(err error) bool {
	return errors.As(err, new(*NotFoundError)) || errors.As(err, new(*NameTakenError))
}

// pause waits, or until a context ends.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callWithin is call that may not have ended when soon has: then rest, which must be called, goes on with it. It is
// not begun where there is no server to ask, or another request has the turn for as long.
func (c *Client) callWithin(soon context.Context, r call) (rest func(context.Context) error, err error) {
	whole := func(ctx context.Context) error { return c.call(ctx, r) }
	if soon.Err() != nil || c.take(soon) != nil {
		return whole, nil
	}
	if c.socket == nil {
		c.give()
		return whole, nil
	}
	if c.collect(soon, mostAbandoned-r.room()) != nil {
		c.give()
		return whole, nil
	}
	err = c.send(r)
	waits := false
	if err == nil {
		waits, err = c.await(soon, r)
	}
	if !waits {
		c.give()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer c.give()
		ctx, end := c.limited(ctx)
		defer end()
		return c.awaitOrUndo(ctx, r)
	}, nil
}

// exchange sends a request and takes its reply. The turn is the caller's.
func (c *Client) exchange(ctx context.Context, r call) error {
	if err := c.collect(ctx, mostAbandoned-r.room()); err != nil {
		return err
	}
	if err := c.send(r); err != nil {
		return err
	}
	return c.awaitOrUndo(ctx, r)
}

// send sends a request, behind what nobody needs an answer to.
func (c *Client) send(r call) error {
	c.out.Bytes = c.out.Bytes[:0]
	c.encodeReleases(&c.out)
	c.request++
	at := c.out.Begin(r.operation, 0, c.request)
	if r.build != nil {
		r.build(&c.out)
	}
	c.out.End(at)
	if len(c.out.Bytes)-at > protocol.MostPacket {
		return &ArgumentError{Argument: "request", Value: fmt.Sprintf("%d bytes", len(c.out.Bytes)-at), Accepted: fmt.Sprintf("at most %d: fewer dimensions, ids or metadata", protocol.MostPacket)}
	}
	if len(c.out.Bytes) > protocol.MostPacket {
		if err := c.socket.Send(c.out.Bytes[:at], nil); err != nil {
			return c.lose(err)
		}
		c.out.Bytes = append(c.out.Bytes[:0], c.out.Bytes[at:]...)
	}
	if err := c.socket.Send(c.out.Bytes, r.descriptors); err != nil {
		return c.lose(err)
	}
	return nil
}

// awaitOrUndo is await that has what comes after the context's end undone.
func (c *Client) awaitOrUndo(ctx context.Context, r call) error {
	waits, err := c.await(ctx, r)
	if waits {
		r.told = r.undo != nil && c.undoLast()
		//mutate:remove a reply that nobody waits for any more is nobody's
		c.owe(c.request, r)
	}
	return err
}

// await takes the reply to the last request. It waits still where the context has ended before.
func (c *Client) await(ctx context.Context, r call) (waits bool, err error) {
	for {
		mine, waits, err := c.next(ctx, r)
		if mine || err != nil {
			return waits, err
		}
	}
}

// next takes a packet, and reports whether it had the reply to the last request. It waits still where the context
// has ended before.
func (c *Client) next(ctx context.Context, r call) (mine, waits bool, err error) {
	c.socket.Stopped = ctx.Err
	n, descriptors, err := c.socket.Receive(c.in)
	if c.short = err == wire.ErrShort; err != nil && !c.short {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return false, true, err
		}
		if lost := c.lose(err); err != ErrClosed {
			return false, false, lost
		}
		return false, false, err
	}
	mine, err = c.sort(c.in[:n], descriptors, r)
	if broken := (*ProtocolError)(nil); errors.As(err, &broken) {
		_ = c.lose(err)
	}
	return mine, false, err
}

// mostAbandoned is how many replies may come that nobody waits for, as short ones. The server ends a connection that has
// no room for more of them: 208 KiB and the kernel's own as a rule.
const mostAbandoned = 128

// room is as how many short replies that of a request counts. A long one takes a packet, or what metadata takes.
func (r call) room() int {
	switch r.operation {
	case protocol.OpList, protocol.OpDescribe, protocol.OpGet, protocol.OpStatistics:
		return mostAbandoned / 4
	}
	return 1
}

func (c *Client) owe(request uint64, r call) {
	c.abandoned[request] = r
	c.owed += r.room()
}

// collect takes replies that nobody waits for until no more than some are to come. The turn is the caller's.
func (c *Client) collect(ctx context.Context, most int) error {
	//mutate:always replies that nobody waits for are not read
	if c.owed <= most {
		return nil
	}
	c.request++ // nobody waits for the last request either
	for c.owed > most {
		if _, _, err := c.next(ctx, call{}); err != nil {
			return err
		}
	}
	return nil
}

// sort sees to the frames of a packet, and reports whether one was the reply to the last request.
func (c *Client) sort(packet []byte, descriptors []int, r call) (mine bool, err error) {
	for len(packet) > 0 {
		var f protocol.Frame
		if f, packet, err = protocol.NextFrame(packet); err != nil {
			wire.CloseAll(descriptors)
			return false, err
		}
		if f.Operation == protocol.OpGone {
			d := protocol.Decoder{Rest: f.Payload}
			c.forgetSlabs(&d)
			if err := d.Done(); err != nil {
				wire.CloseAll(descriptors)
				return false, err
			}
			continue
		}
		if mine = f.Request == c.request; !mine {
			var known bool
			if r, known = c.abandoned[f.Request]; !known {
				wire.CloseAll(descriptors)
				return false, &ProtocolError{Problem: fmt.Sprintf("a reply to request %d, of %d", f.Request, c.request)}
			}
			delete(c.abandoned, f.Request)
			c.owed -= r.room()
		}
		c.undone = !mine && r.told
		err := c.settle(f, descriptors, r)
		descriptors = nil
		if mine {
			return true, err
		}
		if err == nil && r.undo != nil {
			r.undo(r.told)
		}
	}
	return false, nil
}

// settle has a reply read.
func (c *Client) settle(f protocol.Frame, descriptors []int, r call) error {
	d := protocol.Decoder{Rest: f.Payload}
	if f.Status != protocol.StatusDone {
		wire.CloseAll(descriptors)
		return protocol.DecodeError(f.Status, &d)
	}
	if f.Operation != r.operation {
		wire.CloseAll(descriptors)
		return &ProtocolError{Problem: fmt.Sprintf("operation %d in the reply to %d", f.Operation, r.operation)}
	}
	if r.take != nil {
		return r.take(&d, descriptors)
	}
	wire.CloseAll(descriptors)
	if r.read != nil {
		r.read(&d)
	}
	return d.Done()
}
