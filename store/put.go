package store

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Put makes an object of an array's elements, which are copied once, and seals it. The type and
// shape are the array's, not those of what.
func (c *Client) Put(ctx context.Context, source *gobuffer.Array, what Description) (ID, error) {
	layout := source.Layout()
	what.Type, what.Shape = layout.Type, layout.Shape
	if what.Allocator.Kind() == backends.Pageable && layout.NBytes() >= protocol.LargeFrom && layout.ContiguousC() && source.Accessible(backends.SpaceHost) {
		return c.putFile(ctx, source, what)
	}
	b, err := c.Create(ctx, what)
	if err != nil {
		return ID{}, err
	}
	if err := b.array.Write(source); err != nil {
		return ID{}, errors.Join(err, b.Abort(ctx))
	}
	b.Forgo()
	o, err := b.Seal(ctx)
	if err != nil {
		return ID{}, err
	}
	return o.ID(), o.Release()
}

// putFile writes to the memory's file, and has it mapped nowhere when it is sealed.
func (c *Client) putFile(ctx context.Context, source *gobuffer.Array, what Description) (id ID, err error) {
	h, err := source.Access(backends.SpaceHost, 0)
	if err != nil {
		return ID{}, err
	}
	defer func() { err = errors.Join(err, h.Release()) }()
	var request creation
	if err := request.of(c, what); err != nil {
		return ID{}, err
	}
	var made *held
	descriptor := -1
	giveUp := func() {
		if descriptor >= 0 {
			_ = unix.Close(descriptor)
		}
		c.abandon(made)
	}
	if err := c.call(ctx, call{
		operation: protocol.OpCreate,
		build:     request.encode,
		take: func(d *protocol.Decoder, descriptors []int) error {
			got, p, err := request.decode(d, descriptors)
			if err != nil {
				return err
			}
			if p.where != protocol.OwnMemory || len(descriptors) != 1 {
				wire.CloseAll(descriptors)
				return &ProtocolError{Problem: fmt.Sprintf("a large object in a place of kind %d", p.where)}
			}
			made, descriptor = got, descriptors[0]
			return nil
		},
		undo: func(told bool) {
			_ = unix.Close(descriptor)
			c.unmake(made, told)
		},
	}); err != nil {
		return ID{}, err
	}
	wire.Crash("client-created")
	if err := host.WriteShared(ctx, descriptor, h.Address(), int(request.bytes)); err != nil {
		giveUp()
		return ID{}, err
	}
	wire.Crash("client-written")
	_ = unix.Close(descriptor)
	descriptor = -1
	wire.Crash("client-sealing")
	if err := c.notMade(made, c.call(ctx, c.sealing(made.info.ID, func() {}))); err != nil {
		giveUp()
		return ID{}, err
	}
	wire.Crash("client-sealed")
	c.drop(made)
	return made.info.ID, nil
}
