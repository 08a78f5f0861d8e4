package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
)

// NameWatch tells which object has a name, each time that it is another one. The newest is always told, of those in
// between some are not.
type NameWatch struct {
	client *Client
	name   string
	mu     sync.Mutex // of Next
	aside  *asking.Line
	asked  bool // a request is under way, whose answer nobody has taken yet
	known  ID   // to whom asked
	found  ID   // by the answer
	lost   time.Time
	hangUp context.Context
	end    context.CancelFunc
}

// WatchName begins to watch a name, by a connection of its own.
func (c *Client) WatchName(ctx context.Context, name string) (*NameWatch, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	line, err := c.connectAside(ctx)
	if err != nil {
		return nil, err
	}
	w := &NameWatch{client: c, name: name, aside: line}
	w.hangUp, w.end = context.WithCancel(context.Background())
	return watched(c, w, line)
}

func (w *NameWatch) isNone() error {
	if w == nil || w.client == nil {
		accepted := "what Client.WatchName returns"
		return &ArgumentError{Argument: "watch", Value: "nil or a zero value", Accepted: accepted}
	}
	return nil
}

// restartsWithin is for how long a watch looks for a server where it has lost one.
const restartsWithin = time.Second

// Next waits until the object that has the name is another one than known, which is zero at first and then what Next
// has returned. When ctx ends before, the error is its, and nothing is missed by that. Where the server was lost, Next
// looks for another one, for a second at most: the error is a *LostError then, after which it may be called again.
func (w *NameWatch) Next(ctx context.Context, known ID) (ID, error) {
	if err := w.isNone(); err != nil {
		return ID{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.hangUp.Err() != nil {
			return ID{}, ErrClosed
		}
		if err := ctx.Err(); err != nil && w.aside.Socket == nil {
			return ID{}, err
		}
		found, err := w.ask(either{ctx, w.hangUp}, known)
		lost := errors.As(err, new(*LostError))
		if !lost {
			w.lost = time.Time{}
		} else if w.lost.IsZero() {
			w.lost = time.Now()
		}
		switch {
		case w.hangUp.Err() != nil:
			return ID{}, ErrClosed
		case err == nil && found:
			return w.found, nil
		case err == nil:
			return ID{}, ctx.Err()
		case !lost || time.Since(w.lost) > restartsWithin:
			w.lost = time.Time{}
			return ID{}, err
		}
		if err := pause(ctx, joinSoon); err != nil {
			return ID{}, err
		}
	}
}

// ask asks which object has the name, or takes the answer to what was asked before. It has found none, and there is no
// error, where the context has ended before the answer.
func (w *NameWatch) ask(ctx context.Context, known ID) (found bool, err error) {
	if w.asked && w.known != known {
		w.aside.Close()
	}
	if w.aside.Socket == nil {
		line, err := w.client.connectAside(ctx)
		if err != nil {
			return false, err
		}
		w.aside, w.asked = line, false
	}
	if err := w.send(known); err != nil {
		return false, err
	}
	waits, err := w.aside.Await(ctx, w.call())
	if waits {
		return false, nil
	}
	w.asked = false
	return err == nil, err
}

func (w *NameWatch) call() asking.Call {
	return asking.Call{
		Operation: protocol.OpGetName,
		Build:     func(e *protocol.Encoder) { e.Text(w.name); e.U64(forever); e.ID(w.known) },
		Read:      func(d *protocol.Decoder) { w.found = d.ID() },
	}
}

func (w *NameWatch) send(known ID) error {
	if w.asked {
		return nil
	}
	w.known = known
	err := w.aside.Send(w.call())
	w.asked = err == nil
	return err
}

// Descriptor returns a descriptor that can be read from when Next does not have to wait, for a loop of events, which
// closes it and does not read. The error is a *LostError where Next has to look for a server.
func (w *NameWatch) Descriptor(known ID) (int, error) {
	if err := w.isNone(); err != nil {
		return -1, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hangUp.Err() != nil {
		return -1, ErrClosed
	}
	if w.aside.Socket == nil {
		return -1, &LostError{Path: w.client.path, Reason: w.aside.Lost}
	}
	if err := w.send(known); err != nil {
		return -1, err
	}
	number, err := unix.FcntlInt(uintptr(w.aside.Socket.Descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return number, nil
}

// Close ends the watch; a Next that waits returns ErrClosed soon.
func (w *NameWatch) Close() error {
	if w == nil || w.client == nil {
		return nil
	}
	w.end()
	w.client.mu.Lock()
	delete(w.client.watches, w)
	w.client.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if socket := w.aside.Socket; socket != nil {
		_ = unix.Shutdown(socket.Descriptor, unix.SHUT_RDWR) // who has another descriptor of it notices
		w.aside.Close()
	}
	return nil
}
