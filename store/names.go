package store

import (
	"context"
	"errors"
	"slices"

	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
)

// Discard deletes an object that nobody is to know of. It waits for no answer. An object that has replaced another one
// of late stays, though who asked for that may not have been told.
func (c *Client) Discard(id ID) {
	c.tellLater(func() {
		if slices.Contains(c.replacing, id) {
			//mutate:replace what has replaced a version is deleted when its maker was not told
			//mutate:with append(c.unnamed, id) => c.unnamed; c.deletes = append(c.deletes, id)
			c.unnamed = append(c.unnamed, id)
		} else {
			c.deletes = append(c.deletes, id)
		}
	})
	select {
	case c.turn <- struct{}{}:
		c.line.SendNotes()
		c.give()
	default: // the holder of the turn tells of it, or flush
	}
}

// PutName gives an object a name, of which it may have several. The error is a *NameTakenError
// where it is another object's, unless replace is set. Names go with their object.
func (c *Client) PutName(ctx context.Context, name string, id ID, replace bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	flags := uint8(0)
	if replace {
		flags = protocol.NameReplaces
	}
	return c.call(ctx, naming(name, id, flags))
}

func naming(name string, id ID, flags uint8) asking.Call {
	return asking.Call{
		Operation: protocol.OpPutName,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.Text(name); e.ID(id); e.U8(flags) },
	}
}

// Replace gives a sealed object a name, and deletes the object that had it, unless that has other names or is not
// sealed: one step, after which nobody finds the old one. Its memory goes with its last lease. With lasting, an object
// of a session ([Description].Session) stays when that ends: one that is made so, and then replaces another, is never
// left behind without a name. After an error all is as it was; if ctx has ended, or the server was lost, the name may
// have been given all the same.
func (c *Client) Replace(ctx context.Context, name string, id ID, lasting bool) error {
	if err := c.isNone(); err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	flags := protocol.NameReplaces | protocol.NameDeletes
	if lasting {
		flags |= protocol.NameLasts
	}
	c.noteReplacing(id)
	defer c.noteReplacing(id)
	return c.change(ctx, id, naming(name, id, flags), func(h *held) { h.bound = h.bound && !lasting })
}

// mostReplacing is how many objects of late are known by which others were to be replaced. Who gives one up has just
// asked for that.
const mostReplacing = 64

func (c *Client) noteReplacing(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replacing = append(slices.DeleteFunc(c.replacing, func(other ID) bool { return other == id }), id)
	c.replacing = c.replacing[max(0, len(c.replacing)-mostReplacing):]
}

// GetName returns the object that has a name; with wait, when there is one, or ctx has ended.
func (c *Client) GetName(ctx context.Context, name string, wait bool) (id ID, err error) {
	if err := checkName(name); err != nil {
		return ID{}, err
	}
	ask := c.call
	if wait {
		ask = c.callAside
	}
	err = ask(ctx, asking.Call{
		Operation: protocol.OpGetName,
		Finds:     true,
		Build: func(e *protocol.Encoder) {
			e.Text(name)
			if wait {
				e.U64(timeLeft(ctx))
			} else {
				e.U64(0)
			}
		},
		Read: func(d *protocol.Decoder) { id = d.ID() },
	})
	var absent *NotFoundError
	if wait && errors.As(err, &absent) {
		err = context.DeadlineExceeded // the server has waited for as long
	}
	return id, err
}

// WaitName returns the object that has a name, when it is another one than known; the zero ID is none. ctx may end
// before. Whoever asks for the next with each answer misses no newest one, though some in between.
func (c *Client) WaitName(ctx context.Context, name string, known ID) (id ID, err error) {
	if err := checkName(name); err != nil {
		return ID{}, err
	}
	err = c.callAside(ctx, asking.Call{
		Operation: protocol.OpGetName,
		Build:     func(e *protocol.Encoder) { e.Text(name); e.U64(timeLeft(ctx)); e.ID(known) },
		Read:      func(d *protocol.Decoder) { id = d.ID() },
	})
	if errors.As(err, new(*NotFoundError)) {
		err = context.DeadlineExceeded // the server has waited for as long
	}
	return id, err
}

// GetNames returns the objects that have some names.
func (c *Client) GetNames(ctx context.Context, names []string) ([]ID, error) {
	ids, calls := make([]ID, len(names)), make([]asking.Call, len(names))
	for i, name := range names {
		if err := checkName(name); err != nil {
			return nil, &ItemError{Index: i, Err: err}
		}
		calls[i] = asking.Call{
			Operation: protocol.OpGetName,
			Finds:     true,
			Build:     func(e *protocol.Encoder) { e.Text(name); e.U64(0) },
			Read:      func(d *protocol.Decoder) { ids[i] = d.ID() },
		}
	}
	if err := c.callAll(ctx, calls, make([]bool, len(calls))); err != nil {
		return nil, err
	}
	return ids, nil
}

// DropName takes a name away.
func (c *Client) DropName(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return c.call(ctx, asking.Call{
		Operation: protocol.OpDropName,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.Text(name) },
	})
}
