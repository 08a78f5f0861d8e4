package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"hamr/backends"
	"hamr/store/internal/memory"
	"hamr/store/internal/objects"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// conversation is what the server keeps for a connection.
type conversation struct {
	server      *Server
	transport   wire.Transport
	hang        func()           // ends the connection
	stall       func()           // lets other requests be answered; nil where there are none
	session     *objects.Session // nil before the greeting
	greeted     bool
	sealed      bool      // a request has sealed an object
	last        *undoable // of recent
	recent      [protocol.MostUndone]undoable
	requests    int
	process     int // as the kernel says
	in          protocol.Decoder
	out         protocol.Encoder
	descriptors []int              // that came with the frame, until a request takes them
	short       bool               // more should have come, and could not be opened
	sending     []*wire.Descriptor // that go with the reply
	numbers     []int
}

// errLater is returned by requests that are answered later, or not at all.
var errLater = errors.New("later")

// laterOr is what requests without an answer return.
func laterOr(err error) error {
	if err == nil {
		err = errLater
	}
	return err
}

// sendLater sends the answer of a request that waited, or ends the connection.
func (c *conversation) sendLater(packet []byte) {
	if c.transport.Send(packet, nil) != nil {
		c.hang()
	}
}

// one refuses a request that does not have one descriptor, of something.
func (c *conversation) one(what string) error {
	switch {
	case len(c.descriptors) == 1:
		return nil
	case c.short:
		c.server.table.Memory.EvictOldest() // so that the next request has a descriptor
		return c.server.table.Memory.FullOfDescriptors()
	}
	return &protocol.ProtocolError{Problem: fmt.Sprintf("%d descriptors of one %s", len(c.descriptors), what)}
}

// mine returns an object that the session has made and not sealed.
func (c *conversation) mine(id protocol.ID) (*objects.Object, error) {
	if l, ok := c.session.Leases[id]; ok && l.Object.Deleted {
		return nil, &protocol.DeletedError{ID: id}
	}
	o, err := c.server.table.Find(id)
	switch {
	case err != nil:
		return nil, err
	case o.Sealed:
		return nil, &protocol.SealedError{ID: id}
	case o.Owner != c.session:
		return nil, &protocol.NotSealedError{ID: id}
	}
	return o, nil
}

// found finds the object of a request whose fields have all been read.
func found(d *protocol.Decoder, id protocol.ID, find func(protocol.ID) (*objects.Object, error)) (
	*objects.Object, error,
) {
	if err := d.Done(); err != nil {
		return nil, err
	}
	return find(id)
}

// timeout reads how long to wait: nanoseconds, or all bits for as long as it takes.
func timeout(d *protocol.Decoder) time.Duration {
	if v := d.U64(); v < 1<<62 {
		return time.Duration(v)
	}
	return -1
}

// encodePlace appends where an object's memory is. The reply has its descriptor if it is sent.
func (c *conversation) encodePlace(e *protocol.Encoder, o *objects.Object, where uint8, send bool) {
	e.U8(where)
	if where == protocol.Nowhere {
		return
	}
	u := o.Unit
	e.ID(u.ID)
	e.U64(uint64(u.Size))
	e.U64(uint64(o.At()))
	e.Flag(send)
	if send {
		c.sending = append(c.sending, u.Descriptor.Retain())
	}
}

func (c *conversation) hello(d *protocol.Decoder, e *protocol.Encoder) error {
	version, process, boot := d.U32(), d.U32(), d.Text()
	if err := d.Done(); err != nil {
		return err
	}
	s := c.server
	switch {
	case c.greeted:
		return &protocol.ProtocolError{Problem: "a second greeting"}
	case version != protocol.ProtocolVersion:
		reason := fmt.Sprintf("version %d of the protocol: this store has %d", version, protocol.ProtocolVersion)
		return &protocol.RefusedError{Path: s.path, Reason: reason}
	case boot != s.boot:
		return &protocol.RefusedError{Path: s.path, Reason: "another machine, or another start of it"}
	}
	c.greeted = true
	if c.process == 0 {
		c.process = int(process) // as its own namespace numbers it
	}
	c.session = s.table.NewSession(c.process)
	e.U32(protocol.ProtocolVersion)
	e.U32(uint32(os.Getpid()))
	e.Text(s.boot)
	e.ID(s.instance)
	e.U32(uint32(s.options.MaxMetadata))
	if shared := s.table.Book.Shared; shared != nil {
		c.sending = append(c.sending, shared.Retain())
	}
	return nil
}

func (c *conversation) create(d *protocol.Decoder, e *protocol.Encoder) error {
	flags, device, bytes, charge := d.U8(), backends.UUID(d.ID()), int64(d.Size()), int64(d.Size())
	layout, raw := protocol.DecodeLayout(d)
	metadata := d.Blob()
	if d.Broken == "" && flags&^protocol.AllFlags != 0 {
		d.Fail("flags %#x", flags)
	}
	if d.Broken == "" && int64(layout.NBytes()) != bytes {
		d.Fail("an array of %d bytes, where %d are said", layout.NBytes(), bytes)
	}
	if d.Broken == "" && charge < bytes {
		d.Fail("memory of %d bytes for %d", charge, bytes)
	}
	if err := d.Done(); err != nil {
		return err
	}
	table := c.server.table
	if err := protocol.MetadataWithin(metadata, c.server.options.MaxMetadata); err != nil {
		return err
	}
	o := &objects.Object{
		Told: protocol.Told{
			Bytes: bytes, Device: device, Layout: append([]byte(nil), raw...), Metadata: append([]byte(nil), metadata...),
			Evicts: flags&protocol.FlagEvictable != 0, Pinned: flags&protocol.FlagPinned != 0,
		},
		Tenant: memory.Tenant{ID: protocol.NewID()},
	}
	if err := table.Room(o.TableBytes()); err != nil {
		return err
	}
	var u *memory.Unit
	var where uint8
	var place int32
	fresh := false
	var err error
	switch {
	case bytes == 0:
		where = protocol.Nowhere
	case device != backends.UUID{}:
		where = protocol.OnDevice
		u, err = table.Memory.Reserve(device, charge, bytes)
	case bytes >= protocol.LargeFrom || flags&protocol.FlagSeparate != 0:
		where = protocol.OwnMemory
		u, err = table.Memory.NewHost(protocol.RoundUp(bytes, protocol.PageSize))
	default:
		where = protocol.InSlab
		u, fresh, err = table.Memory.SlabFor(&c.session.Memory, protocol.PlaceOf(bytes))
	}
	if err != nil {
		return err
	}
	if where == protocol.InSlab {
		place = u.TakePlace()
	}
	c.session.Own(o)
	table.Add(o, u, place)
	if flags&protocol.FlagSession != 0 {
		c.session.Bind(o)
	}
	table.Lease(c.session, o, 1)
	table.Watch.Tell(protocol.Event{Kind: protocol.Created, ID: o.ID})
	c.last.object = o
	wire.Crash("server-created")
	e.ID(o.ID)
	c.encodePlace(e, o, where, fresh || where == protocol.OwnMemory)
	return nil
}

func (c *conversation) attach(d *protocol.Decoder, _ *protocol.Encoder) error {
	id := d.ID()
	if err := d.Done(); err != nil {
		return err
	}
	if err := c.one("object's memory"); err != nil {
		return err
	}
	o, err := c.mine(id)
	if err != nil {
		return err
	}
	if o.Unit == nil || o.Unit.Descriptor != nil {
		accepted := "what Create has reserved, once"
		return &protocol.ArgumentError{Argument: "memory", Value: "of object " + id.String(), Accepted: accepted}
	}
	o.Unit.Descriptor = wire.NewDescriptor(c.descriptors[0])
	c.descriptors = nil
	wire.Crash("server-attached")
	return nil
}

func (c *conversation) seal(d *protocol.Decoder, e *protocol.Encoder) error {
	o, err := found(d, d.ID(), c.mine)
	if err != nil {
		return err
	}
	forGood := false
	if u := o.Unit; u != nil {
		if u.Descriptor == nil {
			accepted := "one that was attached"
			return &protocol.ArgumentError{Argument: "memory", Value: "of object " + o.ID.String(), Accepted: accepted}
		}
		if forGood, err = u.Seal(); err != nil {
			return &protocol.SystemError{Problem: err.Error()}
		}
	}
	table := c.server.table
	table.Seal(o)
	//mutate:never a seal that others do not know of is not written down
	if o.Leases > 1 || o.Learned { // others may know it as one that is not sealed
		table.NoteOf(protocol.OpSeal, o.ID)
	}
	table.Memory.WantSpare()
	c.last.object = o
	wire.Crash("server-sealed")
	c.sealed = true
	e.Flag(forGood)
	return nil
}

func (c *conversation) get(d *protocol.Decoder, e *protocol.Encoder) error {
	id, flags := d.ID(), d.U8()
	if d.Broken == "" && flags&^(protocol.FlagUnsafe|protocol.FlagNeeded) != 0 {
		d.Fail("flags %#x", flags)
	}
	if err := d.Done(); err != nil {
		return err
	}
	table := c.server.table
	o, err := table.Find(id)
	if err != nil {
		return err
	}
	if !o.Sealed && flags&protocol.FlagUnsafe == 0 {
		return &protocol.NotSealedError{ID: id}
	}
	for o.Unit != nil && o.Unit.Spilled != nil {
		if err := table.Memory.Restore(o.Unit); err != nil {
			return err
		}
		if o, err = table.Find(id); err != nil {
			return err
		}
	}
	where, send := protocol.Nowhere, flags&protocol.FlagNeeded != 0
	if u := o.Unit; u != nil {
		switch {
		case u.Descriptor == nil:
			return &protocol.NotSealedError{ID: id}
		case u.IsSlab():
			if c.session.Memory.Knows(u) {
				send = false
			} else if u.Writable {
				return &protocol.NotSealedError{ID: id} // its maker may not have mapped it yet
			} else {
				c.session.Memory.Learn(u)
				send = true
			}
			where = protocol.InSlab
		case u.OnDevice():
			where = protocol.OnDevice
		default:
			where = protocol.OwnMemory
		}
	}
	table.Lease(c.session, o, 1)
	c.last.object = o
	wire.Crash("server-got")
	at := len(e.Bytes)
	protocol.EncodeTold(e, &o.Told)
	if o.Bound == c.session { // another server has to be told
		e.Bytes[at] |= protocol.FlagSession
	}
	c.encodePlace(e, o, where, send)
	return nil
}

func (c *conversation) releaseMany(d *protocol.Decoder, _ *protocol.Encoder) error {
	for range d.Count(20) {
		id, times := d.ID(), d.U32()
		c.server.table.Release(c.session, id, int64(times))
	}
	wire.Crash("server-released")
	return laterOr(d.Done())
}

func (c *conversation) forget(d *protocol.Decoder, _ *protocol.Encoder) error {
	for range d.Count(16) {
		c.server.table.Memory.Forget(&c.session.Memory, d.ID())
	}
	return laterOr(d.Done())
}

func (c *conversation) abort(d *protocol.Decoder, _ *protocol.Encoder) error {
	o, err := found(d, d.ID(), c.mine)
	if err != nil {
		return err
	}
	c.server.table.Remove(o, false, protocol.Deleted)
	return nil
}

func (c *conversation) delete(d *protocol.Decoder, _ *protocol.Encoder) error {
	ids, how := []protocol.ID{d.ID()}, d.U8()
	if d.Broken == "" && how > protocol.DeletesUnnamed {
		d.Fail("a deletion of kind %d", how)
	}
	force := how == protocol.DeletesByForce
	for len(d.Rest) > 0 && d.Broken == "" {
		ids = append(ids, d.ID())
	}
	if err := d.Done(); err != nil {
		return err
	}
	list := make([]*objects.Object, len(ids))
	for i, id := range ids {
		o, err := c.server.table.Find(id)
		if err != nil {
			return err
		}
		if !o.Sealed && o.Owner != c.session && !force {
			return &protocol.NotSealedError{ID: id}
		}
		list[i] = o
	}
	for _, o := range list {
		if !o.Deleted && (how != protocol.DeletesUnnamed || !o.HasName()) { // it may be there twice
			c.server.table.Remove(o, force, protocol.Deleted)
		}
		wire.Crash("server-deleted")
	}
	return nil
}
