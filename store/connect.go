package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/book"
	"hamr/store/internal/wire"
)

// Connect returns a client of the server at a path, or at [DefaultPath] where it is empty; r has
// the memory that objects are mapped by, [gobuffer.Default] where it is nil. The error is a
// *LostError where nobody answers within a second, and a *RefusedError where the other end is another user's.
func Connect(ctx context.Context, path string, r *gobuffer.Runtime) (*Client, error) {
	if path == "" {
		path = DefaultPath()
	}
	if err := wire.CheckPath(path); err != nil {
		return nil, err
	}
	if r == nil {
		var err error
		if r, err = gobuffer.Default(); err != nil {
			return nil, err
		}
	}
	c := &Client{
		runtime: r, path: path, turn: make(chan struct{}, 1), hangUp: new(atomic.Bool), line: asking.New(path, nil),
		book: -1, held: map[ID]*held{}, slabs: map[ID]*mapping{}, watches: map[io.Closer]struct{}{},
	}
	c.line.Notes, c.line.Gone, c.line.Ended = c.encodeNotes, c.forgetSlabs, c.lineEnded
	socket, book, err := asking.Connect(ctx, path, c.hangUp)
	if err != nil {
		return nil, err
	}
	wire.MakeRoom()
	_ = c.take(context.Background()) // begin's goroutine may want it at once
	c.begin(socket, book)
	c.give()
	return c, nil
}

// SetTimeout ends each request by [context.DeadlineExceeded] that the server has not answered for so long, as
// where it stands still; 0, as at first, is no limit. Calls that wait for others end by their contexts alone.
func (c *Client) SetTimeout(timeout time.Duration) error {
	if err := c.isNone(); err != nil {
		return err
	}
	if timeout < 0 {
		return &ArgumentError{Argument: "timeout", Value: timeout.String(), Accepted: "0 for none, or more"}
	}
	c.timeout.Store(int64(timeout))
	return nil
}

// Path returns where the server is looked for.
func (c *Client) Path() string { return c.path }

// closeWithin is how long Close waits for the answer to a request that is under way.
const closeWithin = time.Second

// Close ends the session, and with it its leases. What is mapped stays until it is released.
// A request that is under way has a second to be answered; those that wait for something end at
// once, with ErrClosed. Closing again is harmless.
func (c *Client) Close() error {
	if c == nil || c.turn == nil {
		return nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	for _, l := range c.idle {
		l.Close()
	}
	c.idle = nil
	watches := c.watches
	c.watches = nil
	var unused []*mapping
	for id, m := range c.slabs {
		if m.users == 0 {
			unused = append(unused, m)
			delete(c.slabs, id)
		} else {
			m.gone = true
		}
	}
	c.mu.Unlock()
	late := time.AfterFunc(closeWithin, func() { c.hangUp.Store(true) })
	for w := range watches {
		_ = w.Close()
	}
	_ = c.take(context.Background())
	late.Stop()
	c.hangUp.Store(true)
	if socket := c.line.Socket; socket != nil {
		_ = unix.Shutdown(socket.Descriptor, unix.SHUT_RDWR)
		c.unwatch()
		c.line.Close()
	}
	c.closeBooks()
	c.give()
	var err error
	for _, m := range unused {
		err = errors.Join(err, m.end())
	}
	return err
}

// call makes a request, for which it waits for its turn and, where there is none, for a connection.
func (c *Client) call(ctx context.Context, r asking.Call) error {
	if err := c.isNone(); err != nil {
		return err
	}
	return c.asked(ctx, r.Finds, func(ctx context.Context) error { return c.line.Exchange(ctx, r) })
}

// ItemError says at which place of those that a call was given something was wrong: Err.
type ItemError struct {
	Index int
	Err   error
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Index, e.Err) }

// Unwrap returns what was wrong.
func (e *ItemError) Unwrap() error { return e.Err }

// callAll is call of many requests, several at a time; some of them may have succeeded after an error, which done says.
func (c *Client) callAll(ctx context.Context, calls []asking.Call, done []bool) error {
	if len(calls) == 0 {
		return nil
	}
	return c.asked(ctx, calls[0].Finds, func(ctx context.Context) error {
		at, err := c.line.ExchangeAll(ctx, calls, done)
		if err == nil || ctx.Err() != nil || errors.As(err, new(*LostError)) || errors.Is(err, ErrClosed) {
			return err
		}
		return &ItemError{Index: at, Err: err}
	})
}

// asked has the turn for a request that finds objects or makes them, again where another client has still to tell of
// them.
func (c *Client) asked(ctx context.Context, finds bool, exchange func(context.Context) error) error {
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
		//mutate:with finds && c.book => false && c.book
		expecting := finds && c.book >= 0 && book.IsExpecting(c.book)
		err := exchange(ctx)
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
func (c *Client) callWithin(soon context.Context, r asking.Call) (rest func(context.Context) error, err error) {
	whole := func(ctx context.Context) error { return c.call(ctx, r) }
	if soon.Err() != nil || c.take(soon) != nil {
		return whole, nil
	}
	if c.line.Socket == nil {
		c.give()
		return whole, nil
	}
	if c.line.Collect(soon, r) != nil {
		c.give()
		return whole, nil
	}
	err = c.line.Send(r)
	waits := false
	if err == nil {
		waits, err = c.line.Await(soon, r)
	}
	if !waits {
		c.give()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer c.give()
		ctx, end := c.limited(ctx)
		defer end()
		return c.line.AwaitOrUndo(ctx, r)
	}, nil
}
