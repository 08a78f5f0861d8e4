package store

import (
	"context"
	"errors"
	"io"
	"time"

	"hamr/store/internal/wire"
)

// mostBooks is how many servers in a row may end before this client has told them all.
const mostBooks = 8

// begin uses a connection, and has another server be looked for when it ends. The turn is the caller's.
func (c *Client) begin(socket *wire.WaitingSocket, w welcome) {
	c.socket, c.welcome, c.lost = socket, w, nil
	c.session.Add(1)
	if c.book >= 0 && len(c.books) < mostBooks {
		c.books = append(c.books, c.book)
	} else if c.book >= 0 {
		_ = wire.CloseRecorded(c.book) // that server knew little: it was not even told what this client knows
	}
	c.book = w.book
	wire.Record(c.book)
	c.unwatch = wire.WhenHungUp(socket.Descriptor, func() {
		_ = c.take(context.Background())
		defer c.give()
		if c.socket == socket {
			_ = c.lose(io.EOF)
		}
	})
}

func (c *Client) endSocket() {
	if c.socket == nil {
		return
	}
	if c.unwatch != nil {
		c.unwatch()
	}
	c.socket.Close()
	c.socket = nil
}

// takeJoined takes the turn, with a connection. Where there is none, it finds a server and tells it what this client
// has. That goes on when ctx ends, so that the server is told of all.
func (c *Client) takeJoined(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	if c.socket != nil {
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
		socket, w, err := c.connect(context.Background())
		if err != nil && c.isClosed() {
			return ErrClosed
		} else if err != nil {
			return err
		}
		c.begin(socket, w)
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
			if !done && c.socket == nil {
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
	if len(c.books) > 0 && c.socket != nil && c.book >= 0 && !c.closed {
		return false
	}
	for _, h := range c.held {
		if !c.closed && !h.refused && !h.deleted && (c.socket == nil || h.untold != nil) {
			return false
		}
	}
	c.joining = false
	return true
}
