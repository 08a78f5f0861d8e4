package store

import (
	"context"
	"errors"

	"hamr/backends"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Forgo says that this process has no use for the object once it is sealed: nobody but the Builder has its elements,
// or uses their address. Then the lease ends with Seal. Its Object has no elements, as its Array is nil, and is to be
// released. Memory of a device stays mapped for writing until it is: to take that right away takes the driver longer
// than all else.
func (b *Builder) Forgo() {
	if b != nil {
		b.forgone = true
	}
}

// Seal makes the object one that nobody writes to and everybody finds, when work on it is over.
// Leases of it are the returned Object's. After an error the object is gone.
func (b *Builder) Seal(ctx context.Context) (o *Object, err error) {
	err = b.use(func() error {
		if err := b.part(); err != nil {
			return err
		}
		o, err = b.sealed(b.client.call(ctx, b.client.sealing(b.held.info.ID, b.noteSealed)))
		return err
	})
	return o, err
}

// SealSoon is Seal that may not have ended when a context has: then rest, which must be called, goes on
// with it, on any goroutine.
func (b *Builder) SealSoon(soon context.Context) (o *Object, rest func(context.Context) (*Object, error), err error) {
	err = b.use(func() error {
		if err := b.part(); err != nil {
			return err
		}
		goOn, err := b.client.callWithin(soon, b.client.sealing(b.held.info.ID, b.noteSealed))
		if goOn != nil {
			rest = func(ctx context.Context) (*Object, error) { return b.sealed(goOn(ctx)) }
			return nil
		}
		o, err = b.sealed(err)
		return err
	})
	return o, rest, err
}

// Unmake discards an object that was sealed, where nobody is to have it.
func (b *Builder) Unmake() { b.client.Discard(b.ID()) }

// Prompt reports whether Seal, as far as can be told, waits for no work of a device's.
func (b *Builder) Prompt() bool {
	if b == nil || b.held == nil || b.held.mapping == nil || b.held.mapping.slab || b.held.mapping.memory.Separable() {
		return true
	}
	at := b.held.mapping.memory.Region()
	backend, err := b.client.runtime.Backend(at.Allocator)
	if err != nil {
		return false
	}
	streams, able := backends.As[backends.Streams](backend)
	if !able {
		return false
	}
	idle, err := streams.Idle(at.Device, 0)
	//mutate:replace who seals is made to wait for work of a device's that handles no signals
	//mutate:with idle && err == nil => idle || err == nil
	return idle && err == nil
}

// part waits for work on the object, and maps its memory apart from where it was written to.
func (b *Builder) part() error {
	err := b.array.Synchronize()
	if err == nil {
		wire.Crash("client-written")
		if m := b.held.mapping; m != nil && !m.slab && (m.memory.Separable() || !b.isAlone()) {
			err = b.client.part(b.held)
		}
	}
	if err != nil {
		return b.unsealed(err)
	}
	wire.Crash("client-sealing")
	return nil
}

// unsealed gives the object up that was not sealed because of an error.
func (b *Builder) unsealed(err error) error {
	b.client.mu.Lock()
	b.forgone = false // a reply that comes late is not this builder's any more
	b.client.mu.Unlock()
	b.client.discard(b.held)
	return errors.Join(err, b.array.Close())
}

// isAlone reports whether the builder has the object for itself, and forgoes it.
func (b *Builder) isAlone() bool {
	b.client.mu.Lock()
	defer b.client.mu.Unlock()
	return b.isAloneLocked()
}

// isAloneLocked is isAlone where the client's lock is held.
func (b *Builder) isAloneLocked() bool {
	//mutate:replace what somebody has got meanwhile is forgone
	//mutate:with b.held.users == 1 => b.held != nil
	b.forgone = b.forgone && b.held.users == 1
	return b.forgone
}

// noteSealed is told that the server has sealed the object, before anything else is asked of it. If only the builder
// has the object, the lease ends: later calls that get it map it anew. Otherwise the memory is protected.
func (b *Builder) noteSealed() {
	c, h := b.client, b.held
	c.mu.Lock()
	h.info.Sealed = true
	forgone, times := b.forgone, h.times
	alone := b.isAloneLocked()
	if alone {
		delete(c.held, h.info.ID)
		h.times = 0
	}
	c.mu.Unlock()
	switch m := h.mapping; {
	case alone:
		//mutate:replace one lease of what was forgone is ended
		//mutate:with ID, times} => ID, min(times, 1)}
		c.tellLater(func() { c.releases = append(c.releases, release{h.info.ID, times}) })
	case forgone && m != nil && !m.slab && !m.memory.Separable():
		b.late = c.part(h)
	}
}

// sealed makes the Object of an object that the server has sealed, unless there was an error.
func (b *Builder) sealed(err error) (*Object, error) {
	if err != nil {
		return nil, b.unsealed(b.client.notMade(b.held, err))
	}
	wire.Crash("client-sealed")
	c, h := b.client, b.held
	if b.late != nil {
		c.tellLater(func() { c.deletes = append(c.deletes, h.info.ID) })
		return nil, errors.Join(b.late, b.array.Close())
	}
	if b.forgone {
		written := b.array.Memory().Retain()
		//mutate:skip the maker writes to what it has forgone
		if err := b.array.Close(); err != nil {
			return nil, errors.Join(err, written.Release())
		}
		return &Object{client: c, held: h, written: written}, nil
	}
	c.mu.Lock()
	h.users++
	c.mu.Unlock()
	o, err := c.object(h, true)
	if h.mapping == nil {
		c.drop(h) // the builder's own use, which no memory ends
	}
	if err = errors.Join(err, b.array.Close()); err != nil {
		if o != nil {
			_ = o.Release()
		}
		return nil, err
	}
	return o, nil
}

// sealing is the request to seal an object, of which noted is told. Where the context ends before
// the answer, the object is deleted: nobody would know of it.
func (c *Client) sealing(id ID, noted func()) asking.Call {
	return asking.Call{
		Operation: protocol.OpSeal,
		Build:     func(e *protocol.Encoder) { e.ID(id) },
		Read: func(d *protocol.Decoder) {
			d.Flag()
			noted()
		},
		Undo: func(told bool) {
			if !told {
				c.tellLater(func() { c.deletes = append(c.deletes, id) })
			}
		},
	}
}
