package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Builder is an object that is not sealed: an array to write to. One goroutine uses it at a time.
type Builder struct {
	client *Client
	held   *held
	array  *gobuffer.Array
	once   sync.Once // of the call that ends it

	forgone bool  // see Forgo
	late    error // of what had to follow the server's answer
}

// Create makes an object that others find when it is sealed. Host memory is zero where it was
// never used before. The error is a *FullError where there is no room.
func (c *Client) Create(ctx context.Context, what Description) (*Builder, error) {
	b := &Builder{client: c}
	var request creation
	if err := request.of(c, what); err != nil {
		return nil, err
	}
	if err := c.call(ctx, b.creating(&request)); err != nil {
		return nil, err
	}
	if request.isOnDevice() {
		attach, err := b.attaching(&request)
		if err == nil {
			err = c.notMade(b.held, c.call(ctx, attach))
		}
		if err != nil {
			c.abandon(b.held)
			return nil, err
		}
	}
	if err := b.finish(); err != nil {
		c.abandon(b.held)
		return nil, err
	}
	return b, nil
}

// creating is the request for the object.
func (b *Builder) creating(request *creation) asking.Call {
	c := b.client
	return asking.Call{
		Operation: protocol.OpCreate,
		Build:     request.encode,
		Take: func(d *protocol.Decoder, descriptors []int) error {
			h, p, err := request.decode(d, descriptors)
			if err != nil {
				return err
			}
			wire.Crash("client-created")
			if p.where == protocol.OwnMemory || p.where == protocol.InSlab {
				if h.mapping, err = c.mapped(p, request.device, descriptors, true); err != nil {
					c.abandon(h)
					c.unmapped(p)
					return err
				}
			}
			b.held = h
			c.mu.Lock()
			c.held[h.info.ID] = h
			c.mu.Unlock()
			return nil
		},
		Undo: func(told bool) { c.unmake(b.held, told) },
	}
}

// finish makes the array of an object whose memory is mapped.
func (b *Builder) finish() (err error) {
	wire.Crash("client-mapped")
	b.array, err = b.client.array(b.held, false)
	return err
}

// creation is a checked request to make an object.
type creation struct {
	client        *Client
	what          Description
	layout        arrayiface.Layout
	bytes, charge int64
	device        backends.UUID
	flags         uint8
}

func (r *creation) of(c *Client, what Description) (err error) {
	if err := c.isNone(); err != nil {
		return err
	}
	if err := protocol.MetadataOfAny(what.Metadata); err != nil {
		return err
	}
	r.client, r.what = c, what
	if r.layout, err = arrayiface.NewLayout(what.Type, what.Shape, nil); err != nil {
		return err
	}
	r.bytes = int64(r.layout.NBytes())
	r.charge = r.bytes
	onDevice, err := c.onDevice(what.Allocator)
	if err != nil {
		return err
	}
	if onDevice {
		if r.device, err = c.identity(what.Allocator, what.Device); err != nil {
			return err
		}
		unit, err := c.runtime.SharedUnit(what.Allocator, what.Device)
		if err != nil {
			return err
		}
		r.charge = protocol.RoundUp(r.bytes, int64(unit))
	}
	if what.Evictable {
		r.flags |= protocol.FlagEvictable
	}
	if what.Pinned {
		r.flags |= protocol.FlagPinned
	}
	if what.Separate {
		r.flags |= protocol.FlagSeparate
	}
	if what.Session {
		r.flags |= protocol.FlagSession
	}
	return nil
}

// isOnDevice reports whether the maker has to make the memory, and the server to be told of it.
func (r *creation) isOnDevice() bool { return r.device != (backends.UUID{}) && r.bytes > 0 }

func (r *creation) encode(e *protocol.Encoder) {
	e.U8(r.flags)
	e.ID(ID(r.device))
	e.U64(uint64(r.bytes))
	e.U64(uint64(r.charge))
	protocol.EncodeLayout(e, r.what.Type, r.what.Shape)
	e.Blob(r.what.Metadata)
}

// decode reads the reply. Descriptors are the caller's unless there is an error.
func (r *creation) decode(d *protocol.Decoder, descriptors []int) (h *held, p place, err error) {
	h = &held{times: 1, users: 1, made: true, bound: r.what.Session}
	h.info = Info{
		ID: d.ID(), Layout: r.layout, Bytes: r.bytes, Device: r.device, Metadata: append([]byte(nil), r.what.Metadata...),
		Evictable: r.what.Evictable, Pinned: r.what.Pinned,
	}
	p = decodePlace(d)
	if err = d.Done(); err == nil {
		err = r.client.check(p, r.bytes, descriptors)
	}
	if wire.RanOut(err) {
		r.client.abandonID(h.info.ID)
		r.client.giveBack(h.info.ID, p)
	}
	if err != nil {
		wire.CloseAll(descriptors)
		return nil, p, err
	}
	h.offset, h.session = p.offset, r.client.session.Load()
	return h, p, nil
}

// attaching makes a device's memory. The request has the server keep it.
func (b *Builder) attaching(r *creation) (asking.Call, error) {
	id := b.held.info.ID
	memory, descriptor, err := b.client.runtime.NewShared(r.what.Allocator, r.what.Device, int(r.charge))
	if err != nil {
		return asking.Call{}, err
	}
	b.held.mapping = &mapping{id: id, memory: memory, descriptor: descriptor, size: r.charge, users: 1}
	return asking.Call{
		Operation:   protocol.OpAttach,
		Build:       func(e *protocol.Encoder) { e.ID(id) },
		Descriptors: []int{descriptor},
	}, nil
}

// onDevice reports whether memory of an allocator is a device's, and refuses what is neither that
// nor ordinary host memory.
func (c *Client) onDevice(a backends.Allocator) (bool, error) {
	accepted := "ordinary host memory, as malloc, or memory of a device alone: " +
		"page-locked and managed memory cannot be shared by descriptor"
	if !a.Valid() {
		accepted = "one of the host's or of a device whose memory can be shared"
		return false, &ArgumentError{Argument: "allocator", Value: a.String(), Accepted: accepted}
	}
	switch a.Kind() {
	case backends.Pageable:
		return false, nil
	case backends.DeviceOnly:
		return true, nil
	}
	return false, &ArgumentError{Argument: "allocator", Value: a.String(), Accepted: accepted}
}

func (c *Client) identity(a backends.Allocator, device int) (backends.UUID, error) {
	backend, err := c.runtime.Backend(a)
	if err != nil {
		return backends.UUID{}, err
	}
	identified, ok := backends.As[backends.Identified](backend)
	if !ok {
		reason := "it cannot tell which device others know as the same"
		return backends.UUID{}, &backends.UnavailableError{Backend: backend.Name(), Reason: reason}
	}
	return identified.Identity(device)
}

// abandon gives up an object that was not sealed, and the use of it.
func (c *Client) abandon(h *held) {
	c.abandonID(h.info.ID)
	c.drop(h)
}

func (c *Client) abandonID(id ID) {
	c.tellLater(func() { c.aborts = append(c.aborts, id) })
}

// unmake ends an object of which a late answer tells.
func (c *Client) unmake(h *held, told bool) {
	if told {
		c.dropUndone(h)
	} else {
		c.abandon(h)
	}
}

// ID returns what the object is found by.
func (b *Builder) ID() ID {
	if b == nil || b.held == nil {
		return ID{}
	}
	return b.held.info.ID
}

// Array returns the elements to write to. It is the Builder's, and ends with Seal or Abort. Where host memory is the
// object's own, nobody else sees what is written to views after Seal; a device refuses it.
func (b *Builder) Array() *gobuffer.Array {
	if b == nil {
		return nil
	}
	return b.array
}

// Prepare has large memory on the host be there, by several threads, before it is written: to write all of it is
// quicker then. The elements are as before. The error is the context's.
func (b *Builder) Prepare(ctx context.Context) error {
	if b == nil || b.client == nil {
		return errNoBuilder
	}
	m := b.held.mapping
	if m == nil || m.slab || !m.memory.Separable() {
		return ctx.Err()
	}
	return host.PrepareShared(ctx, m.descriptor, m.memory.Region().Address, int(m.size))
}

var errNoBuilder = &ArgumentError{Argument: "builder", Value: "nil or a zero value", Accepted: "what Create returns"}

// use ends the builder by f, unless it has ended.
func (b *Builder) use(f func() error) error {
	if b == nil || b.client == nil {
		return errNoBuilder
	}
	err := ErrClosed
	b.once.Do(func() { err = f() })
	return err
}

// Abort gives the object up.
func (b *Builder) Abort(ctx context.Context) error {
	return b.use(func() error {
		id := b.held.info.ID
		abort := asking.Call{Operation: protocol.OpAbort, Build: func(e *protocol.Encoder) { e.ID(id) }}
		err := b.client.change(ctx, id, abort, (*held).gone)
		if err != nil {
			b.client.discard(b.held)
			return errors.Join(err, b.array.Close())
		}
		if b.held.mapping == nil {
			b.client.drop(b.held)
		}
		return b.array.Close()
	})
}

// GiveUp is Abort without waiting: the server is told with the next request, or soon.
func (b *Builder) GiveUp() error {
	return b.use(func() error {
		b.client.discard(b.held)
		return b.array.Close()
	})
}

// discard gives up an object of a Builder's, whose array is to be closed.
func (c *Client) discard(h *held) {
	c.tellLater(func() {
		h.deleted = true
		c.aborts = append(c.aborts, h.info.ID)
	})
	if h.mapping == nil {
		c.drop(h)
	}
}

// Object is a lease of an object.
type Object struct {
	client  *Client
	held    *held
	array   *gobuffer.Array  // nil of what was forgone
	written *gobuffer.Memory // what was forgone, which stays mapped
	once    sync.Once
}

// object makes one; the use of held has been counted.
func (c *Client) object(h *held, readOnly bool) (*Object, error) {
	a, err := c.array(h, readOnly)
	if err != nil {
		c.drop(h)
		return nil, err
	}
	return &Object{client: c, held: h, array: a}, nil
}

// ID returns what the object is found by.
func (o *Object) ID() ID {
	if o == nil || o.held == nil {
		return ID{}
	}
	return o.held.info.ID
}

// Info returns what the object was when this client got it.
func (o *Object) Info() Info {
	if o == nil || o.held == nil {
		return Info{}
	}
	o.client.mu.Lock()
	defer o.client.mu.Unlock()
	return o.held.info
}

// Array returns the elements, for reading; of an object that was got unsafe and was not sealed,
// for writing as well where Info().Sealed is false. It is the Object's. Views, copies of the
// reference and handles keep the lease for longer. It is nil where the Builder forwent them.
func (o *Object) Array() *gobuffer.Array {
	if o == nil {
		return nil
	}
	return o.array
}

// Release ends the use of the object; the lease ends with the last view of the array. Releasing
// again is harmless.
func (o *Object) Release() (err error) {
	if o == nil || o.client == nil {
		return &ArgumentError{Argument: "object", Value: "nil or a zero value", Accepted: "what Get returns"}
	}
	o.once.Do(func() {
		if o.array != nil {
			err = o.array.Close()
		} else {
			err = o.written.Release()
		}
		if o.held.mapping == nil {
			o.client.drop(o.held)
		}
	})
	return err
}

// String is for messages.
func (o *Object) String() string { return fmt.Sprintf("object %s", o.ID()) }
