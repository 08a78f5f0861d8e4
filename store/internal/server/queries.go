package server

import (
	"encoding/binary"
	"fmt"
	"strings"

	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

func (c *Conversation) putName(d *protocol.Decoder) error {
	payload := d.Rest
	name, id, replace := d.Name(), d.ID(), d.Flag()
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	o, err := s.find(id)
	if err != nil {
		return err
	}
	had := s.named(name)
	switch {
	case had != nil && had.object == o:
		//mutate:remove a name that an object is given again is not written down
		s.Note(protocol.OpPutName, payload) // an earlier server may have given it away, of which nobody has told yet
		return nil
	case had != nil && !replace:
		return &protocol.NameTakenError{Name: name, ID: had.object.id}
	case had == nil && !replace:
		if its, expected := s.Book.Expected(name); expected {
			return &protocol.NameTakenError{Name: name, ID: its}
		}
	}
	if err := s.tableRoom(nameBytes(name)); err != nil {
		return err
	}
	if had != nil {
		s.Unname(had)
	}
	s.Name(o, name)
	s.Note(protocol.OpPutName, payload)
	wire.Crash("server-named")
	return nil
}

// named returns a name that an object has, nil where none has.
func (s *Server) named(name string) *named {
	if n := s.Names[name]; n != nil && !n.object.deleted {
		return n
	}
	return nil
}

// Name gives an object a name that nobody has.
func (s *Server) Name(o *object, name string) {
	n := &named{name: name, object: o}
	s.Names[name] = n
	s.namesThere++
	if o.names.Neighbours == nil {
		o.names.Neighbours = func(n *named) *chain.Neighbours[named] { return &n.ofObject }
	}
	o.names.Push(n)
	o.named += nameBytes(name)
	s.table += nameBytes(name)
	s.tell(protocol.Event{Kind: protocol.Named, ID: o.id, Name: name})
	for w := range s.WaitingNames[name] {
		s.finish(w)
	}
}

// Unname takes a name away from its object.
func (s *Server) Unname(n *named) {
	o := n.object
	o.names.Remove(n)
	delete(s.Names, n.name)
	s.namesThere--
	o.named -= nameBytes(n.name)
	s.table -= nameBytes(n.name)
	s.tell(protocol.Event{Kind: protocol.Unnamed, ID: o.id, Name: n.name})
}

// noteDropped writes down that an object lost a name, or all where the name is empty.
func (s *Server) noteDropped(o *object, name string) {
	var e protocol.Encoder
	e.Text(name)
	if name == "" {
		e.ID(o.id)
	}
	s.Note(protocol.OpDropName, e.Bytes)
}

func (c *Conversation) getName(f protocol.Frame, d *protocol.Decoder, e *protocol.Encoder) error {
	name, most := d.Name(), timeout(d)
	if err := d.Done(); err != nil {
		return err
	}
	if n := c.Server.named(name); n != nil {
		e.ID(n.object.id)
		return nil
	}
	if most == 0 {
		return &protocol.NotFoundError{Name: name}
	}
	c.Server.wait(&waiter{session: c.Session, request: f.Request, name: name, send: c.sendLater}, most)
	return errLater
}

func (c *Conversation) dropName(d *protocol.Decoder) error {
	name := d.Name()
	if err := d.Done(); err != nil {
		return err
	}
	n := c.Server.named(name)
	if n == nil {
		return &protocol.NotFoundError{Name: name}
	}
	c.Server.Unname(n)
	c.Server.noteDropped(n.object, name)
	return nil
}

func (c *Conversation) exists(d *protocol.Decoder, e *protocol.Encoder) error {
	id := d.ID()
	if err := d.Done(); err != nil {
		return err
	}
	o := c.Server.Objects[id]
	e.Flag(o != nil)
	e.Flag(o != nil && o.Sealed)
	return nil
}

func (c *Conversation) describe(d *protocol.Decoder, e *protocol.Encoder) error {
	o, err := objectOf(d, c.Server.find)
	if err != nil {
		return err
	}
	encodeListed(e, o)
	return nil
}

func encodeListed(e *protocol.Encoder, o *object) {
	e.ID(o.id)
	protocol.EncodeTold(e, &o.Told)
	e.U32(uint32(min(o.Leases, protocol.MostLeases)))
	at, room := len(e.Bytes), protocol.MostPacket-len(e.Bytes)-16
	e.U32(0)
	count := uint32(0)
	for n := o.names.Oldest; n != nil; n = n.ofObject.Newer {
		if room -= 4 + len(n.name); room < 0 {
			break
		}
		count++
		e.Text(n.name)
	}
	binary.LittleEndian.PutUint32(e.Bytes[at:], count)
}

func (c *Conversation) list(d *protocol.Decoder, e *protocol.Encoder) error {
	after, most, filter, prefix := d.U64(), d.U32(), d.U8(), d.Text()
	if d.Broken == "" && filter >= protocol.ListNamed<<1 {
		d.Fail("a filter of %#x", filter)
	}
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	next := len(e.Bytes)
	e.U64(0)
	e.U32(0)
	n := uint32(0)
	looked := 0
	at := s.after(after)
	for ; at < len(s.order) && n < most && looked < 10_000; at++ {
		looked++
		after = s.order[at].sequence
		o := s.order[at].object
		if o == nil || (o.Sealed && filter&protocol.ListSealed == 0) || (!o.Sealed && filter&protocol.ListUnsealed == 0) || (filter&protocol.ListNamed != 0 && !hasName(o, prefix)) {
			continue
		}
		before := len(e.Bytes)
		encodeListed(e, o)
		if n > 0 && len(e.Bytes) > protocol.MostPacket-1024 {
			e.Bytes = e.Bytes[:before]
			after = o.sequence - 1
			break
		}
		n++
	}
	if at < len(s.order) {
		binary.LittleEndian.PutUint64(e.Bytes[next:], after)
	}
	binary.LittleEndian.PutUint32(e.Bytes[next+8:], n)
	return nil
}

func hasName(o *object, prefix string) bool {
	for n := o.names.Oldest; n != nil; n = n.ofObject.Newer {
		if strings.HasPrefix(n.name, prefix) {
			return true
		}
	}
	return false
}

func (c *Conversation) setMetadata(d *protocol.Decoder) error {
	payload := d.Rest
	id, metadata := d.ID(), d.Blob()
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	o, err := c.mine(id)
	if err != nil {
		return err
	}
	if err := protocol.MetadataWithin(metadata, s.Options.MaxMetadata); err != nil {
		return err
	}
	if err := s.tableRoom(int64(len(metadata) - len(o.Metadata))); err != nil {
		return err
	}
	o.setMetadata(s, metadata)
	if o.Leases > 1 || o.learned {
		s.Note(protocol.OpSetMetadata, payload)
	}
	return nil
}

func (o *object) setMetadata(s *Server, metadata []byte) {
	s.table += int64(len(metadata) - len(o.Metadata))
	o.Metadata = append([]byte(nil), metadata...)
}

func (c *Conversation) wait(f protocol.Frame, d *protocol.Decoder, e *protocol.Encoder) error {
	most, count := timeout(d), int(d.U32())
	w := &waiter{session: c.Session, request: f.Request, count: count, send: c.sendLater}
	seen := map[protocol.ID]bool{}
	for range d.Count(16) {
		if id := d.ID(); !seen[id] {
			seen[id] = true
			w.ids = append(w.ids, id)
		}
	}
	if d.Broken == "" && count > len(w.ids) {
		d.Fail("waiting for %d of %d objects", count, len(w.ids))
	}
	if err := d.Done(); err != nil {
		return err
	}
	for _, id := range w.ids {
		if c.Server.settled(id) {
			w.ready++
		}
	}
	if w.ready >= count || most == 0 {
		c.Server.encodeReady(e, w.ids)
		return nil
	}
	c.Server.wait(w, most)
	return errLater
}

func (c *Conversation) watch(f protocol.Frame, d *protocol.Decoder, e *protocol.Encoder) error {
	most := timeout(d)
	if err := d.Done(); err != nil {
		return err
	}
	q := c.Session.events
	if q == nil {
		q = &eventQueue{}
		c.Session.events = q
		c.Server.watchers[c.Session] = struct{}{}
		q.encode(e) // at once, so that the client knows from when on it is told
		return nil
	}
	if len(q.list) > 0 || q.missed > 0 || most == 0 {
		q.encode(e)
		return nil
	}
	c.Server.wait(&waiter{session: c.Session, request: f.Request, events: true, send: c.sendLater}, most)
	return errLater
}

func (c *Conversation) mark(d *protocol.Decoder) error {
	payload := d.Rest
	id, what, on := d.ID(), d.U8(), d.Flag()
	if d.Broken == "" && what > protocol.MarkEvictable {
		d.Fail("mark %d", what)
	}
	if err := d.Done(); err != nil {
		return err
	}
	o, err := c.Server.find(id)
	if err != nil {
		return err
	}
	o.set(what, on)
	c.Server.Note(protocol.OpMark, payload)
	return nil
}

func (o *object) set(what uint8, on bool) {
	if what == protocol.MarkPinned {
		o.Pinned = on
	} else {
		o.Evicts = on
	}
	o.update()
}

func (c *Conversation) statistics(d *protocol.Decoder, e *protocol.Encoder) error {
	if err := d.Done(); err != nil {
		return err
	}
	t := c.Server.figures()
	protocol.EncodeStatistics(e, t)
	if len(e.Bytes) > protocol.MostPacket {
		return &protocol.SystemError{Problem: fmt.Sprintf("statistics of %d devices", len(t.Memories))}
	}
	return nil
}
