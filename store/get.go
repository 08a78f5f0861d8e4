package store

import (
	"context"
	"errors"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// GetOptions say which objects Get returns.
type GetOptions struct {
	// Unsafe gets one that is not sealed, too: what its maker writes is seen at once, and of an
	// object with memory of its own what is written to the array is there for all.
	Unsafe bool
	// Wait waits until there is an object and it is sealed, or the context ends.
	Wait bool
}

// Get returns an object by its id, mapped for reading; nothing is copied. The error is a
// *NotFoundError or *NotSealedError; where the object had been spilled and there is no room to
// bring it back, a *FullError, and where the device itself has no memory for it, or the file cannot be read, a
// *SystemError; the object is there as before.
func (c *Client) Get(ctx context.Context, id ID, o GetOptions) (*Object, error) {
	for {
		object, err := c.get(ctx, id, o.Unsafe)
		var absent *NotFoundError
		var unsealed *NotSealedError
		if err == nil || !o.Wait || !(errors.As(err, &absent) || errors.As(err, &unsealed)) {
			return object, err
		}
		if _, err := c.Wait(ctx, []ID{id}, 1); err != nil {
			return nil, err
		}
	}
}

func (c *Client) get(ctx context.Context, id ID, unsafe bool) (*Object, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	g := c.getting(id, unsafe)
	err := c.call(ctx, g.request())
	if g.had != nil {
		err = c.notFound(g.had, err)
		c.drop(g.had)
	}
	if err != nil {
		return nil, err
	}
	wire.Crash("client-got-mapped")
	return c.object(g.got, !g.writable)
}

// GetMany is Get of all the objects or, after an error, of none. It is quicker, as it does not wait for one object
// before it asks for the next. An id may be given twice.
func (c *Client) GetMany(ctx context.Context, ids []ID) ([]*Object, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	first := make(map[ID]int, len(ids)) // and where it is in gets
	var gets []*getting
	var calls []asking.Call
	var positions []int
	for i, id := range ids {
		if _, twice := first[id]; twice {
			continue
		}
		first[id] = len(gets)
		g := c.getting(id, false)
		gets, calls, positions = append(gets, g), append(calls, g.request()), append(positions, i)
	}
	done := make([]bool, len(calls))
	err := c.callAll(ctx, calls, done)
	item := (*ItemError)(nil)
	if errors.As(err, &item) {
		if had := gets[item.Index].had; had != nil {
			item.Err = c.notFound(had, item.Err)
		}
		item.Index = positions[item.Index]
	}
	for _, g := range gets {
		if g.had != nil {
			c.drop(g.had)
		}
	}
	defer func() {
		for i, g := range gets {
			if done[i] {
				c.drop(g.got) // each Object has a use of its own
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	wire.Crash("client-got-mapped")
	objects := make([]*Object, 0, len(ids))
	for i, id := range ids {
		g := gets[first[id]]
		c.mu.Lock()
		g.got.users++
		c.mu.Unlock()
		o, err := c.object(g.got, true)
		if err != nil {
			for _, o := range objects {
				_ = o.Release()
			}
			return nil, &ItemError{Index: i, Err: err}
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// getting is a request for an object.
type getting struct {
	client   *Client
	id       ID
	unsafe   bool
	had      *held // what this client had of it, which stays mapped meanwhile
	got      *held
	writable bool
}

func (c *Client) getting(id ID, unsafe bool) *getting {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := c.held[id]
	if had != nil {
		had.users++
	}
	return &getting{client: c, id: id, unsafe: unsafe, had: had}
}

func (g *getting) request() asking.Call {
	return asking.Call{
		Operation: protocol.OpGet,
		Finds:     true,
		Build: func(e *protocol.Encoder) {
			e.ID(g.id)
			var flags uint8
			if g.unsafe {
				flags |= protocol.FlagUnsafe
			}
			if g.had == nil {
				flags |= protocol.FlagNeeded
			}
			e.U8(flags)
		},
		Take: g.take,
		Undo: func(told bool) {
			if told {
				g.client.dropUndone(g.got)
			} else {
				g.client.drop(g.got)
			}
		},
	}
}

func (g *getting) take(d *protocol.Decoder, descriptors []int) error {
	c := g.client
	bound := len(d.Rest) > 0 && d.Rest[0]&protocol.FlagSession != 0
	info := protocol.DecodeInfo(d, g.id)
	p := decodePlace(d)
	err := d.Done()
	if err == nil {
		err = c.check(p, info.Bytes, descriptors)
	}
	if wire.RanOut(err) {
		//mutate:remove a client that cannot open a descriptor keeps the lease
		c.giveBack(g.id, p)
		return err
	}
	if err != nil {
		wire.CloseAll(descriptors)
		return err
	}
	wire.Crash("client-got")
	g.writable = !info.Sealed && p.where != protocol.InSlab
	if g.got, err = c.hold(info, p, descriptors, g.writable); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g.got.bound = g.got.bound || bound
	if g.got.mapping != nil && g.got.mapping.sealed {
		g.writable, g.got.info.Sealed = false, true
	}
	return nil
}

// hold counts a lease that the server has given, and a use of it.
func (c *Client) hold(info Info, p place, descriptors []int, writable bool) (*held, error) {
	c.mu.Lock()
	if h := c.held[info.ID]; h != nil {
		h.users++
		h.times = min(h.times+1, protocol.MostLeases)
		h.info.Sealed = h.info.Sealed || info.Sealed
		c.mu.Unlock()
		if p.sent { // a slab that came back as another one since this client got the object
			c.unmapped(p)
		}
		wire.CloseAll(descriptors)
		return h, nil
	}
	c.mu.Unlock()
	h := &held{info: info, offset: p.offset, times: 1, users: 1}
	if p.where != protocol.Nowhere {
		if p.where != protocol.InSlab && !p.sent {
			c.giveBack(info.ID, p)
			return nil, context.Canceled // it was unmapped since it was asked for
		}
		m, err := c.mapped(p, info.Device, descriptors, writable)
		if err != nil {
			c.giveBack(info.ID, p)
			return nil, err
		}
		h.mapping = m
	}
	c.mu.Lock()
	c.held[info.ID] = h
	c.mu.Unlock()
	return h, nil
}

// Descriptor returns by which descriptor, which stays the object's, its memory is mapped, for
// [gobuffer.Sharing]; nil where it has none of its own, as small objects, or was released.
func (o *Object) Descriptor() *gobuffer.Descriptor {
	c := o.client
	c.mu.Lock()
	defer c.mu.Unlock()
	m := o.held.mapping
	if m == nil || m.slab || m.descriptor < 0 {
		return nil
	}
	start := m.memory.Region().Address
	return &gobuffer.Descriptor{Number: m.descriptor, Start: start, Size: m.memory.Size(), ReadOnly: true}
}

// Private returns the elements of a sealed object once more, to be written to: nobody else sees what is written, and
// only pages that are written take memory. The array is the caller's to close; it keeps the lease, as Array does. The
// error is errors.ErrUnsupported for an object on a device, and for a small one, which shares its memory with others.
func (o *Object) Private() (*gobuffer.Array, error) {
	if o == nil || o.client == nil {
		return nil, &ArgumentError{Argument: "object", Value: "nil or a zero value", Accepted: "what Get returns"}
	}
	c, h := o.client, o.held
	c.mu.Lock()
	info, used, separable := h.info, h.users > 0, true
	if m := h.mapping; m != nil {
		separable = !m.slab && m.memory.Separable()
	}
	if used {
		h.users++
	}
	c.mu.Unlock()
	if !used {
		return nil, &ArgumentError{Argument: "object", Value: "one that was released", Accepted: "one that is in use"}
	}
	a, err := (*gobuffer.Array)(nil), error(errors.ErrUnsupported)
	if !info.Sealed {
		err = &NotSealedError{ID: info.ID}
	} else if separable {
		a, err = c.private(h)
	}
	if err != nil {
		c.drop(h)
	}
	return a, err
}

// private is the array of Private; the use has been counted.
func (c *Client) private(h *held) (*gobuffer.Array, error) {
	if h.mapping == nil {
		a, err := c.array(h, false)
		if err == nil {
			c.drop(h)
		}
		return a, err
	}
	own, err := c.runtime.MapSeparate(backends.Shared, backends.HostDevice, h.mapping.descriptor, int(h.mapping.size))
	if err != nil {
		return nil, err
	}
	at := own.Region()
	at.Allocator = backends.Malloc // what others map by a descriptor is not what is written here
	a, err := c.over(at, h, false, func() {
		_ = own.Release() // what fails is traced by the runtime
		c.drop(h)
	})
	if err != nil {
		return nil, errors.Join(err, own.Release())
	}
	return a, nil
}
