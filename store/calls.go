package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

func checkName(name string) error {
	if name == "" || len(name) > protocol.MostName || !utf8.ValidString(name) {
		value := fmt.Sprintf("%.40q, of %d bytes", name, len(name))
		accepted := fmt.Sprintf("1 to %d bytes of UTF-8", protocol.MostName)
		return &ArgumentError{Argument: "name", Value: value, Accepted: accepted}
	}
	return nil
}

// Delete takes an object away: nobody finds it any more, and its memory goes with the last lease.
// Its bytes count until then unless force is set, by which also what another client has not
// sealed yet can be deleted.
func (c *Client) Delete(ctx context.Context, id ID, force bool) error {
	wire.Crash("client-deleting")
	return c.change(ctx, id, asking.Call{
		Operation: protocol.OpDelete,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.ID(id); e.Flag(force) },
	}, (*held).gone)
}

// DeleteMany is Delete of all the objects or, after an error, of none.
func (c *Client) DeleteMany(ctx context.Context, ids []ID, force bool) error {
	if len(ids) > mostWait {
		return &ArgumentError{Argument: "ids", Value: fmt.Sprint(len(ids)), Accepted: fmt.Sprintf("at most %d", mostWait)}
	}
	if len(ids) == 0 {
		return c.isNone()
	}
	wire.Crash("client-deleting")
	err := c.call(ctx, asking.Call{
		Operation: protocol.OpDelete,
		Finds:     true,
		Build: func(e *protocol.Encoder) {
			e.ID(ids[0])
			e.Flag(force)
			for _, id := range ids[1:] {
				e.ID(id)
			}
		},
		Read: func(*protocol.Decoder) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, id := range ids {
				if h := c.held[id]; h != nil {
					h.gone()
				}
			}
		},
	})
	var absent *NotFoundError
	var unsealed *NotSealedError
	switch {
	case errors.As(err, &absent):
		err = &ItemError{Index: slices.Index(ids, absent.ID), Err: err}
	case errors.As(err, &unsealed):
		err = &ItemError{Index: slices.Index(ids, unsealed.ID), Err: err}
	}
	return err
}

// Exists reports whether there is an object, and whether it is sealed.
func (c *Client) Exists(ctx context.Context, id ID) (there, sealed bool, err error) {
	err = c.call(ctx, asking.Call{
		Operation: protocol.OpExists,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.ID(id) },
		Take: func(d *protocol.Decoder, descriptors []int) error {
			wire.CloseAll(descriptors)
			if there, sealed = d.Flag(), d.Flag(); there {
				return d.Done()
			}
			return cmp.Or(d.Done(), error(&NotFoundError{ID: id}))
		},
	})
	if errors.As(err, new(*NotFoundError)) {
		err = nil
	}
	return there, sealed, err
}

// Describe returns what is known of an object.
func (c *Client) Describe(ctx context.Context, id ID) (info Info, err error) {
	err = c.call(ctx, asking.Call{
		Operation: protocol.OpDescribe,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.ID(id) },
		Read:      func(d *protocol.Decoder) { info = protocol.DecodeListed(d) },
	})
	return info, err
}

// Metadata returns an object's metadata: JSON, or nothing.
func (c *Client) Metadata(ctx context.Context, id ID) ([]byte, error) {
	info, err := c.Describe(ctx, id)
	return info.Metadata, err
}

// SetMetadata replaces the metadata of an object that this client has made and not sealed.
func (c *Client) SetMetadata(ctx context.Context, id ID, metadata []byte) error {
	if err := protocol.MetadataOfAny(metadata); err != nil {
		return err
	}
	metadata = slices.Clone(metadata)
	return c.change(ctx, id, asking.Call{
		Operation: protocol.OpSetMetadata,
		Build:     func(e *protocol.Encoder) { e.ID(id); e.Blob(metadata) },
	}, func(h *held) { h.info.Metadata = metadata })
}

// change makes a request that changes an object. Where this client has it, its own knowledge changes with the answer:
// the next call may have to tell another server of it.
func (c *Client) change(ctx context.Context, id ID, r asking.Call, do func(*held)) error {
	r.Read = func(*protocol.Decoder) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if h := c.held[id]; h != nil {
			do(h)
		}
	}
	return c.call(ctx, r)
}

// Pin keeps an object from being evicted or spilled. Unpin ends that.
func (c *Client) Pin(ctx context.Context, id ID) error {
	return c.mark(ctx, id, protocol.MarkPinned, true)
}

// Unpin ends what Pin began.
func (c *Client) Unpin(ctx context.Context, id ID) error {
	return c.mark(ctx, id, protocol.MarkPinned, false)
}

// SetEvictable says whether the server may delete an object when room is needed.
func (c *Client) SetEvictable(ctx context.Context, id ID, on bool) error {
	return c.mark(ctx, id, protocol.MarkEvictable, on)
}

func (c *Client) mark(ctx context.Context, id ID, what uint8, on bool) error {
	return c.change(ctx, id, asking.Call{
		Operation: protocol.OpMark,
		Finds:     true,
		Build:     func(e *protocol.Encoder) { e.ID(id); e.U8(what); e.Flag(on) },
	}, func(h *held) {
		if what == protocol.MarkPinned {
			h.info.Pinned = on
		} else {
			h.info.Evictable = on
		}
	})
}

// ListOptions say what List returns.
type ListOptions struct {
	Unsealed bool   // those that are not sealed, too
	Named    bool   // those alone that have a name which begins with Prefix
	Prefix   string // of names
	// After is where to begin: what List returned, or 0.
	After uint64
	Most  int // objects in the answer; 0 is as many as fit in one
}

// List returns objects in the order in which they were made, and where to go on, which is 0 at the
// end. A page may have fewer objects than were asked for, and none, before the end.
func (c *Client) List(ctx context.Context, o ListOptions) (list []Info, next uint64, err error) {
	if o.Most < 0 || len(o.Prefix) > protocol.MostName {
		value := fmt.Sprintf("of %d objects, prefix of %d bytes", o.Most, len(o.Prefix))
		return nil, 0, &ArgumentError{Argument: "list", Value: value, Accepted: "0 or more, and a name's beginning"}
	}
	filter := protocol.ListSealed
	if o.Unsealed {
		filter |= protocol.ListUnsealed
	}
	if o.Named {
		filter |= protocol.ListNamed
	}
	err = c.call(ctx, asking.Call{
		Operation: protocol.OpList,
		Build: func(e *protocol.Encoder) {
			e.U64(o.After)
			if o.Most == 0 {
				o.Most = 1 << 20
			}
			e.U32(uint32(min(o.Most, 1<<20)))
			e.U8(filter)
			e.Text(o.Prefix)
		},
		Read: func(d *protocol.Decoder) {
			list, next = nil, d.U64()
			for range d.Count(32) {
				list = append(list, protocol.DecodeListed(d))
			}
		},
	})
	return list, next, err
}

// Statistics returns the server's figures.
func (c *Client) Statistics(ctx context.Context) (t Statistics, err error) {
	err = c.call(ctx, asking.Call{
		Operation: protocol.OpStatistics,
		Read:      func(d *protocol.Decoder) { t = protocol.DecodeStatistics(d) },
	})
	return t, err
}
