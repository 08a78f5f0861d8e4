package store

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Put makes an object of an array's elements, which are copied once, and seals it. The type and
// shape are the array's, not those of what.
func (c *Client) Put(ctx context.Context, source *gobuffer.Array, what Description) (ID, error) {
	p, err := c.putting(NewObject{Array: source, Description: what})
	if err != nil {
		return ID{}, err
	}
	if err := c.putAll(ctx, []*putting{p}); err != nil {
		return ID{}, withoutItem(err)
	}
	return p.id(), nil
}

// NewObject is an object that PutMany makes of an array's elements, with a name unless that is empty.
type NewObject struct {
	Array *gobuffer.Array
	Description
	Name string
}

// PutMany is Put of all the arrays, and PutName of those with a name, or, after an error, of none. It is quicker, as it
// does not wait for one object before it makes the next.
func (c *Client) PutMany(ctx context.Context, list []NewObject) ([]ID, error) {
	if err := c.isNone(); err != nil {
		return nil, err
	}
	puts := make([]*putting, len(list))
	for i, what := range list {
		p, err := c.putting(what)
		if err != nil {
			return nil, &ItemError{Index: i, Err: err}
		}
		puts[i] = p
	}
	if err := c.putAll(ctx, puts); err != nil {
		return nil, err
	}
	ids := make([]ID, len(list))
	for i, p := range puts {
		ids[i] = p.id()
	}
	return ids, nil
}

// putting is an object that is made of an array's elements.
type putting struct {
	client  *Client
	source  *gobuffer.Array
	name    string
	request creation
	created bool // as the server has answered
	sealed  bool // likewise
	forgone bool
	group   *groupPlan // what is written, of a group

	builder *Builder // nil where the elements are written to the memory's file, which is then mapped nowhere
	made    *held    // of the file
	file    int      // or -1
}

func (c *Client) putting(what NewObject) (*putting, error) {
	p := &putting{client: c, source: what.Array, name: what.Name, file: -1}
	if what.Array == nil {
		return nil, &ArgumentError{Argument: "array", Value: "nil", Accepted: "an array"}
	}
	if what.Name != "" {
		if err := checkName(what.Name); err != nil {
			return nil, err
		}
	}
	layout, err := layoutOf(p.source)
	if err != nil {
		return nil, err
	}
	what.Type, what.Shape = layout.Type, layout.Shape
	if err := p.request.of(c, what.Description); err != nil {
		return nil, err
	}
	plain := layout.ContiguousC() && p.source.Accessible(backends.SpaceHost)
	if !plain || what.Allocator.Kind() != backends.Pageable || layout.NBytes() < protocol.LargeFrom {
		p.builder = &Builder{client: c}
	}
	return p, nil
}

// layoutOf is that of an array, which must not be closed.
func layoutOf(a *gobuffer.Array) (arrayiface.Layout, error) {
	layout := a.Layout()
	if layout.Type == arrayiface.Invalid {
		return layout, a.Synchronize() // which says why
	}
	return layout, nil
}

func (p *putting) held() *held {
	if p.builder != nil {
		return p.builder.held
	}
	return p.made
}

func (p *putting) id() ID { return p.held().info.ID }

// mostPuts is how many objects PutMany has descriptors of at a time.
const mostPuts = 128

// putAll makes objects or, after an error, none.
func (c *Client) putAll(ctx context.Context, puts []*putting) (err error) {
	defer func() {
		for _, p := range puts {
			p.end(err != nil)
		}
	}()
	for at := 0; at < len(puts); at += mostPuts {
		if err := c.putSome(ctx, puts[at:min(at+mostPuts, len(puts))]); err != nil {
			if item := (*ItemError)(nil); errors.As(err, &item) {
				item.Index += at
			}
			return err
		}
	}
	return c.askEach(ctx, puts, func(p *putting) (asking.Call, bool, error) {
		return naming(p.name, p.id(), 0), p.name != "", nil
	}, func(*putting) {})
}

// putSome makes objects: each step is that of all.
func (c *Client) putSome(ctx context.Context, puts []*putting) (err error) {
	if err := c.askEach(ctx, puts, func(p *putting) (asking.Call, bool, error) {
		return p.creating(), true, nil
	}, func(p *putting) { p.created = true }); err != nil {
		return err
	}
	if err := c.askEach(ctx, puts, func(p *putting) (r asking.Call, asks bool, err error) {
		if asks = p.builder != nil && p.request.isOnDevice(); asks {
			r, err = p.builder.attaching(&p.request)
		}
		return r, asks, err
	}, func(*putting) {}); err != nil {
		return err
	}
	if err := c.write(ctx, puts); err != nil {
		return err
	}
	if err := c.askEach(ctx, puts, func(p *putting) (asking.Call, bool, error) {
		r, err := p.sealing()
		return r, true, err
	}, func(p *putting) { p.sealed = true }); err != nil {
		return err
	}
	wire.Crash("client-sealed")
	for i, p := range puts {
		if err := p.forgo(); err != nil {
			return &ItemError{Index: i, Err: err}
		}
	}
	return nil
}

// askEach makes a request for each of the objects that has one, and notes which have succeeded.
func (c *Client) askEach(
	ctx context.Context, puts []*putting, of func(*putting) (r asking.Call, asks bool, err error), note func(*putting),
) error {
	var calls []asking.Call
	var positions []int
	for i, p := range puts {
		r, asks, err := of(p)
		if err != nil {
			return &ItemError{Index: i, Err: err}
		}
		if asks {
			calls, positions = append(calls, r), append(positions, i)
		}
	}
	done := make([]bool, len(calls))
	err := c.callAll(ctx, calls, done)
	for i, is := range done {
		if is {
			note(puts[positions[i]])
		}
	}
	if item := (*ItemError)(nil); errors.As(err, &item) {
		item.Index = positions[item.Index]
		if p := puts[item.Index]; p.created {
			item.Err = c.notMade(p.held(), item.Err)
		}
	}
	return err
}

// creating is the request for the object, and takes its memory.
func (p *putting) creating() asking.Call {
	if p.builder != nil {
		return p.builder.creating(&p.request)
	}
	return asking.Call{
		Operation: protocol.OpCreate,
		Build:     p.request.encode,
		Take: func(d *protocol.Decoder, descriptors []int) error {
			got, at, err := p.request.decode(d, descriptors)
			if err != nil {
				return err
			}
			if at.where != protocol.OwnMemory || len(descriptors) != 1 {
				wire.CloseAll(descriptors)
				return &ProtocolError{Problem: fmt.Sprintf("a large object in a place of kind %d", at.where)}
			}
			p.made, p.file = got, descriptors[0]
			return nil
		},
		Undo: func(told bool) {
			p.closeFile()
			p.client.unmake(p.made, told)
		},
	}
}

func (p *putting) closeFile() {
	if p.file >= 0 {
		_ = unix.Close(p.file)
		p.file = -1
	}
}

// write copies the elements of all.
func (c *Client) write(ctx context.Context, puts []*putting) error {
	var to, from []*gobuffer.Array
	for i, p := range puts {
		err := error(nil)
		if p.builder == nil {
			err = p.writeFile(ctx)
		} else if err = p.builder.finish(); err == nil && p.group != nil {
			if err = p.builder.Prepare(ctx); err == nil {
				err = p.group.write(p.builder.array)
			}
		} else if err == nil {
			to, from = append(to, p.builder.array), append(from, p.source)
		}
		if err != nil {
			return &ItemError{Index: i, Err: err}
		}
	}
	return gobuffer.CopyMany(to, from)
}

func (p *putting) writeFile(ctx context.Context) (err error) {
	wire.Crash("client-created")
	h, err := p.source.Access(backends.SpaceHost, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Release()) }()
	if err := host.WriteShared(ctx, p.file, h.Address(), int(p.request.bytes)); err != nil {
		return err
	}
	wire.Crash("client-written")
	return nil
}

// sealing is the request to seal the object, when work on it is over.
func (p *putting) sealing() (asking.Call, error) {
	if p.builder == nil {
		p.closeFile()
		wire.Crash("client-sealing")
		return p.client.sealing(p.made.info.ID, func() {}), nil
	}
	p.builder.Forgo()
	if err := p.builder.part(); err != nil {
		p.created = false // it was given up
		return asking.Call{}, err
	}
	return p.client.sealing(p.id(), p.builder.noteSealed), nil
}

// forgo ends the use of an object that is sealed.
func (p *putting) forgo() error {
	if p.forgone {
		return nil
	}
	p.forgone = true
	if p.builder == nil {
		p.client.drop(p.made)
		return nil
	}
	o, err := p.builder.sealed(nil)
	if err != nil {
		return err
	}
	return o.Release()
}

// end ends what the making of the object still has, and with giveUp the object.
func (p *putting) end(giveUp bool) {
	if !giveUp || !p.created {
		return
	}
	switch c := p.client; {
	case p.sealed:
		_ = p.forgo()
		c.Discard(p.id())
	case p.builder != nil && p.builder.array != nil:
		_ = p.builder.unsealed(nil)
	default:
		p.closeFile()
		c.abandon(p.held())
	}
}

// withoutItem is the error of an item.
func withoutItem(err error) error {
	if item := (*ItemError)(nil); errors.As(err, &item) {
		return item.Err
	}
	return err
}
