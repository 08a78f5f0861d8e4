package server

import (
	"fmt"
	"os"
	"time"

	"hamr/backends"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// dispatch reads a request, does what it asks, and appends the reply's fields. The server's lock is
// held. After an error nothing was done, but for what is answered later.
func (c *Conversation) dispatch(f protocol.Frame, d *protocol.Decoder, e *protocol.Encoder) error {
	switch f.Operation {
	case protocol.OpHello:
		return c.hello(d, e)
	case protocol.OpCreate:
		return c.create(d, e)
	case protocol.OpAttach:
		return c.attach(d)
	case protocol.OpSeal:
		return c.seal(d, e)
	case protocol.OpAbort:
		return c.abort(d)
	case protocol.OpGet:
		return c.get(d, e)
	case protocol.OpRelease:
		return c.releaseMany(d)
	case protocol.OpUndo:
		return c.undo(d)
	case protocol.OpForget:
		return c.forget(d)
	case protocol.OpDelete:
		return c.delete(d)
	case protocol.OpPutName:
		return c.putName(d)
	case protocol.OpGetName:
		return c.getName(f, d, e)
	case protocol.OpDropName:
		return c.dropName(d)
	case protocol.OpExists:
		return c.exists(d, e)
	case protocol.OpList:
		return c.list(d, e)
	case protocol.OpDescribe:
		return c.describe(d, e)
	case protocol.OpSetMetadata:
		return c.setMetadata(d)
	case protocol.OpWait:
		return c.wait(f, d, e)
	case protocol.OpEvents:
		return c.watch(f, d, e)
	case protocol.OpStatistics:
		return c.statistics(d, e)
	case protocol.OpMark:
		return c.mark(d)
	case protocol.OpHold:
		return c.hold(d, e)
	case protocol.OpHoldUnit:
		return c.holdUnit(d, e)
	case protocol.OpRemember:
		return c.remember(d)
	}
	return &protocol.ProtocolError{Problem: fmt.Sprintf("operation %d is no request", f.Operation)}
}

func (c *Conversation) hello(d *protocol.Decoder, e *protocol.Encoder) error {
	version, process, boot := d.U32(), d.U32(), d.Text()
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	switch {
	case c.greeted:
		return &protocol.ProtocolError{Problem: "a second greeting"}
	case version != protocol.ProtocolVersion:
		return &protocol.RefusedError{Path: s.At, Reason: fmt.Sprintf("version %d of the protocol: this store has %d", version, protocol.ProtocolVersion)}
	case boot != s.boot:
		return &protocol.RefusedError{Path: s.At, Reason: "another machine, or another start of it"}
	}
	c.greeted = true
	if c.process == 0 {
		c.process = int(process) // as its own namespace numbers it
	}
	c.Session = newSession(c.process)
	s.Sessions[c.Session] = struct{}{}
	e.U32(protocol.ProtocolVersion)
	e.U32(uint32(os.Getpid()))
	e.Text(s.boot)
	e.ID(s.instance)
	e.U32(uint32(s.Options.MaxMetadata))
	if s.Book.Shared != nil {
		c.sending = append(c.sending, s.Book.Shared.Retain())
	}
	return nil
}

func (c *Conversation) create(d *protocol.Decoder, e *protocol.Encoder) error {
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
	s := c.Server
	if err := protocol.MetadataWithin(metadata, s.Options.MaxMetadata); err != nil {
		return err
	}
	o := &object{
		Told: protocol.Told{
			Bytes: bytes, Device: device, Layout: append([]byte(nil), raw...), Metadata: append([]byte(nil), metadata...),
			Evicts: flags&protocol.FlagEvictable != 0, Pinned: flags&protocol.FlagPinned != 0,
		},
		id: protocol.NewID(), owner: c.Session,
	}
	if err := s.tableRoom(o.tableBytes()); err != nil {
		return err
	}
	onHost := device == (backends.UUID{})
	var u *unit
	var where uint8
	var place int32
	fresh := false
	var err error
	switch {
	case bytes == 0:
		where = protocol.Nowhere
	case !onHost:
		where = protocol.OnDevice
		u, err = s.reserve(device, charge)
	case bytes >= protocol.LargeFrom || flags&protocol.FlagSeparate != 0:
		where = protocol.OwnMemory
		u, err = s.ownMemory(protocol.RoundUp(bytes, protocol.PageSize))
	default:
		where = protocol.InSlab
		u, fresh, err = s.slab(c.Session, protocol.PlaceOf(bytes))
	}
	if err != nil {
		return err
	}
	if u != nil {
		if where == protocol.InSlab {
			place = u.free[len(u.free)-1]
			u.free = u.free[:len(u.free)-1]
		}
		u.put(o, place)
	}
	s.add(o)
	c.Session.unsealed[o] = struct{}{}
	if flags&protocol.FlagSession != 0 {
		c.bind(o)
	}
	s.lease(c.Session, o, 1)
	s.tell(protocol.Event{Kind: protocol.Created, ID: o.id})
	c.last.object = o
	wire.Crash("server-created")
	e.ID(o.id)
	c.encodePlace(e, o, where, fresh || where == protocol.OwnMemory)
	return nil
}

// bind has an object go with the session.
func (c *Conversation) bind(o *object) {
	if o.bound == nil {
		o.bound = c.Session
		c.Session.bound[o] = struct{}{}
	}
}

// encodePlace appends where an object's memory is. The reply has its descriptor if it is sent.
func (c *Conversation) encodePlace(e *protocol.Encoder, o *object, where uint8, send bool) {
	e.U8(where)
	if where == protocol.Nowhere {
		return
	}
	u := o.Unit
	e.ID(u.id)
	e.U64(uint64(u.size))
	e.U64(uint64(int64(o.place) * u.each))
	e.Flag(send)
	if send {
		c.sending = append(c.sending, u.Descriptor.Retain())
	}
}

func (s *Server) tableRoom(bytes int64) error {
	if s.table+bytes > s.Options.TableLimit {
		return &protocol.FullError{Memory: "table", Needed: bytes, Limit: s.Options.TableLimit, Used: s.table}
	}
	return nil
}

// mine returns an object that the session has made and not sealed.
func (c *Conversation) mine(id protocol.ID) (*object, error) {
	if l, ok := c.Session.Leases[id]; ok && l.object.deleted {
		return nil, &protocol.DeletedError{ID: id}
	}
	o, err := c.Server.find(id)
	switch {
	case err != nil:
		return nil, err
	case o.Sealed:
		return nil, &protocol.SealedError{ID: id}
	case o.owner != c.Session:
		return nil, &protocol.NotSealedError{ID: id}
	}
	return o, nil
}

func (c *Conversation) attach(d *protocol.Decoder) error {
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
		return &protocol.ArgumentError{Argument: "memory", Value: "of object " + id.String(), Accepted: "what Create has reserved, once"}
	}
	o.Unit.Descriptor = wire.NewDescriptor(c.descriptors[0])
	c.descriptors = nil
	wire.Crash("server-attached")
	return nil
}

// objectOf reads the last field of a request, an id, and finds what it names.
func objectOf(d *protocol.Decoder, find func(protocol.ID) (*object, error)) (*object, error) {
	id := d.ID()
	if err := d.Done(); err != nil {
		return nil, err
	}
	return find(id)
}

func (c *Conversation) seal(d *protocol.Decoder, e *protocol.Encoder) error {
	o, err := objectOf(d, c.mine)
	if err != nil {
		return err
	}
	forGood := false
	if u := o.Unit; u != nil {
		if u.Descriptor == nil {
			return &protocol.ArgumentError{Argument: "memory", Value: "of object " + o.id.String(), Accepted: "one that was attached"}
		}
		if forGood, err = u.seal(); err != nil {
			return &protocol.SystemError{Problem: err.Error()}
		}
	}
	s := c.Server
	s.settle(o)
	//mutate:never a seal that others do not know of is not written down
	if o.Leases > 1 || o.learned { // others may know it as one that is not sealed
		s.NoteOf(protocol.OpSeal, o.id)
	}
	s.wantSpare()
	c.last.object = o
	wire.Crash("server-sealed")
	if c.Leader != nil {
		c.Leader.Sealed = true
	}
	e.Flag(forGood)
	return nil
}

// settle has an object be sealed.
func (s *Server) settle(o *object) {
	if o.Sealed {
		return
	}
	if o.owner != nil {
		delete(o.owner.unsealed, o)
	}
	o.Sealed, o.owner = true, nil
	o.update()
	s.tell(protocol.Event{Kind: protocol.Sealed, ID: o.id})
	s.ready(o.id, 1)
}

func (c *Conversation) abort(d *protocol.Decoder) error {
	o, err := objectOf(d, c.mine)
	if err != nil {
		return err
	}
	c.Server.Remove(o, false, protocol.Deleted)
	return nil
}

func (c *Conversation) get(d *protocol.Decoder, e *protocol.Encoder) error {
	id, flags := d.ID(), d.U8()
	if d.Broken == "" && flags&^(protocol.FlagUnsafe|protocol.FlagNeeded) != 0 {
		d.Fail("flags %#x", flags)
	}
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	o, err := s.find(id)
	if err != nil {
		return err
	}
	if !o.Sealed && flags&protocol.FlagUnsafe == 0 {
		return &protocol.NotSealedError{ID: id}
	}
	for o.Unit != nil && (o.Unit.Spilled != nil) {
		if err := s.restore(o.Unit); err != nil {
			return err
		}
		if o, err = s.find(id); err != nil {
			return err
		}
	}
	where, send := protocol.Nowhere, flags&protocol.FlagNeeded != 0
	if u := o.Unit; u != nil {
		switch {
		case u.Descriptor == nil:
			return &protocol.NotSealedError{ID: id}
		case len(u.places) > 1:
			if _, known := c.Session.known[u]; known {
				send = false
			} else if u.writable {
				return &protocol.NotSealedError{ID: id} // its maker may not have mapped it yet
			} else {
				c.Session.known[u] = struct{}{}
				if u.knownBy == nil {
					u.knownBy = map[*session]struct{}{}
				}
				u.knownBy[c.Session] = struct{}{}
				send = true
			}
			where = protocol.InSlab
		case u.onDevice():
			where = protocol.OnDevice
		default:
			where = protocol.OwnMemory
		}
	}
	s.lease(c.Session, o, 1)
	c.last.object = o
	wire.Crash("server-got")
	at := len(e.Bytes)
	protocol.EncodeTold(e, &o.Told)
	if o.bound == c.Session { // another server has to be told
		e.Bytes[at] |= protocol.FlagSession
	}
	c.encodePlace(e, o, where, send)
	return nil
}

func (c *Conversation) releaseMany(d *protocol.Decoder) error {
	for range d.Count(20) {
		id, times := d.ID(), d.U32()
		c.Server.release(c.Session, id, int64(times))
	}
	wire.Crash("server-released")
	return laterOr(d.Done())
}

func (c *Conversation) forget(d *protocol.Decoder) error {
	for range d.Count(16) {
		id := d.ID()
		u := c.Server.lingering[id]
		if u == nil {
			u = c.Server.units[id] // the client could not map it
		}
		if u != nil {
			c.Server.letGo(c.Session, u)
		}
	}
	return laterOr(d.Done())
}

// laterOr is what requests without an answer return.
func laterOr(err error) error {
	if err == nil {
		err = errLater
	}
	return err
}

func (c *Conversation) delete(d *protocol.Decoder) error {
	id, force := d.ID(), d.Flag()
	if err := d.Done(); err != nil {
		return err
	}
	o, err := c.Server.find(id)
	if err != nil {
		return err
	}
	if !o.Sealed && o.owner != c.Session && !force {
		return &protocol.NotSealedError{ID: id}
	}
	c.Server.Remove(o, force, protocol.Deleted)
	wire.Crash("server-deleted")
	return nil
}

// timeout reads how long to wait: nanoseconds, or all bits for as long as it takes.
func timeout(d *protocol.Decoder) time.Duration {
	if v := d.U64(); v < 1<<62 {
		return time.Duration(v)
	}
	return -1
}
