package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

const (
	forever  = 1<<64 - 1 // as long as it takes
	mostIdle = 4         // connections that are kept for the next call that waits
	mostWait = 4000      // ids
)

// callAside makes a request that may wait for long, on a connection of its own, so that others go
// on meanwhile.
func (c *Client) callAside(ctx context.Context, r asking.Call) error {
	if err := c.isNone(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	var line *asking.Line
	if n := len(c.idle); n > 0 {
		line, c.idle = c.idle[n-1], c.idle[:n-1]
	}
	c.mu.Unlock()
	if line != nil {
		err := c.askAside(ctx, line, r)
		var lost *LostError
		if !errors.As(err, &lost) {
			return err
		}
		// It may have been idle since the time of another server.
	}
	line, err := c.connectAside(ctx)
	if err != nil {
		return err
	}
	return c.askAside(ctx, line, r)
}

// connectAside opens a connection that has no leases.
func (c *Client) connectAside(ctx context.Context) (*asking.Line, error) {
	socket, book, err := asking.Connect(ctx, c.path, c.hangUp)
	if err != nil && c.isClosed() {
		return nil, ErrClosed // it may have come by the end of the wait for an answer
	}
	if err != nil {
		return nil, err
	}
	socket.Patient = true
	if book >= 0 {
		_ = unix.Close(book)
	}
	return asking.New(c.path, socket), nil
}

// timeLeft is how long a server is to wait: until the context ends.
func timeLeft(ctx context.Context) uint64 {
	until, ok := ctx.Deadline()
	if !ok {
		return forever
	}
	//mutate:replace a server is told to wait for ever, and each wait needs a connection
	//mutate:with return uint64(max(0, time.Until(until))) => _ = until; return forever
	return uint64(max(0, time.Until(until)))
}

// askAside makes a request on a connection, which is kept for the next one where that can be.
func (c *Client) askAside(ctx context.Context, line *asking.Line, r asking.Call) error {
	err := line.Exchange(ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !line.IsIdle() || c.closed || len(c.idle) >= mostIdle {
		line.Close()
	} else {
		c.idle = append(c.idle, line)
	}
	return err
}

// Wait returns those of the objects that are sealed, as soon as count of them are, in the order
// given and each once; an id that is given twice counts once. When ctx ends before, the error is its; ready is nil
// then, unless the server has said which of them are.
func (c *Client) Wait(ctx context.Context, ids []ID, count int) (ready []ID, err error) {
	if count < 0 || count > len(ids) || len(ids) > mostWait {
		value := fmt.Sprintf("%d of %d", count, len(ids))
		accepted := fmt.Sprintf("at most %d ids, and as many of them at most", mostWait)
		return nil, &ArgumentError{Argument: "ids and count", Value: value, Accepted: accepted}
	}
	once := make([]ID, 0, len(ids))
	seen := make(map[ID]struct{}, len(ids))
	for _, id := range ids {
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			once = append(once, id)
		}
	}
	ids, count = once, min(count, len(once))
	err = c.callAside(ctx, asking.Call{
		Operation: protocol.OpWait,
		Build: func(e *protocol.Encoder) {
			e.U64(timeLeft(ctx))
			e.U32(uint32(count))
			e.U32(uint32(len(ids)))
			for _, id := range ids {
				e.ID(id)
			}
		},
		Read: func(d *protocol.Decoder) {
			ready = []ID{}
			for range d.Count(16) {
				ready = append(ready, d.ID())
			}
		},
	})
	if err == nil && len(ready) < count {
		err = context.DeadlineExceeded // the server has waited for as long
	}
	return ready, err
}

// Watch is told of what happens to objects from its beginning on.
type Watch struct {
	client *Client
	mu     sync.Mutex // of Next
	aside  *asking.Line
	asked  bool    // a request is under way, whose answer nobody has taken yet
	told   []Event // by that
	closed chan struct{}
	hangUp context.Context // ends what the server does not answer
	end    context.CancelFunc
	once   sync.Once
}

// Watch begins to be told of events.
func (c *Client) Watch(ctx context.Context) (*Watch, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	line, err := c.connectAside(ctx)
	if err != nil {
		return nil, err
	}
	w := &Watch{client: c, aside: line, closed: make(chan struct{})}
	w.hangUp, w.end = context.WithCancel(context.Background())
	if err := w.begin(ctx); err != nil {
		line.Close()
		return nil, err
	}
	return watched(c, w, line)
}

// watched is what Close of the client is to end. A client that is closed already ends the line.
func watched[W io.Closer](c *Client, w W, line *asking.Line) (none W, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		line.Close()
		return none, ErrClosed
	}
	c.watches[w] = struct{}{}
	return w, nil
}

func (w *Watch) begin(ctx context.Context) error {
	_, err := w.ask(ctx, 0)
	if err == nil && w.asked {
		err = ctx.Err()
	}
	return err
}

// ask asks for events, or for the answer to what was asked before. There are none, and no error, where the context has
// ended before the answer: the next call has it.
func (w *Watch) ask(ctx context.Context, timeout uint64) (list []Event, err error) {
	r := asking.Call{
		Operation: protocol.OpEvents,
		Build:     func(e *protocol.Encoder) { e.U64(timeout) },
		Read: func(d *protocol.Decoder) {
			if missed := d.U64(); missed > 0 {
				w.told = append(w.told, Event{Kind: Missed, Missed: int64(missed)})
			}
			for range d.Count(21) {
				w.told = append(w.told, Event{Kind: EventKind(d.U8()), ID: d.ID(), Name: d.Text()})
			}
		},
	}
	if !w.asked {
		if err := w.aside.Send(r); err != nil {
			return nil, err
		}
		w.asked = true
	}
	waits, err := w.aside.Await(ctx, r)
	if waits {
		return nil, nil
	}
	w.asked = false
	list, w.told = w.told, nil
	return list, err
}

// Next returns the events since the last call, at least one, and waits for it. When ctx ends
// before, the error is its, and nothing is missed by that. Where a client asks too seldom, older
// events are kept and one of kind Missed says how many were not.
func (w *Watch) Next(ctx context.Context) (list []Event, err error) {
	if w == nil || w.client == nil {
		return nil, &ArgumentError{Argument: "watch", Value: "nil or a zero value", Accepted: "what Client.Watch returns"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(list) == 0 {
		select {
		case <-w.closed:
			return nil, ErrClosed
		default:
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if w.aside.Socket == nil {
			return nil, &LostError{Path: w.client.path, Reason: w.aside.Lost}
		}
		// The server answers at the latest after this, unless it stands still.
		if list, err = w.ask(either{ctx, w.hangUp}, uint64(wire.LookEvery)); err != nil {
			if w.hangUp.Err() != nil {
				err = ErrClosed
			}
			return nil, err
		}
	}
	return list, nil
}

// either is a context of which Err alone tells of another one's end as well.
type either struct {
	context.Context
	other context.Context
}

func (c either) Err() error { return cmp.Or(c.Context.Err(), c.other.Err()) }

// Close ends the watch; a Next that waits returns ErrClosed soon, within a second where the server
// does not answer.
func (w *Watch) Close() error {
	if w == nil || w.client == nil {
		return nil
	}
	w.once.Do(func() {
		close(w.closed)
		w.client.mu.Lock()
		delete(w.client.watches, w)
		w.client.mu.Unlock()
		late := time.AfterFunc(closeWithin, w.end)
		w.mu.Lock()
		defer w.mu.Unlock()
		late.Stop()
		w.end()
		w.aside.Close()
	})
	return nil
}
