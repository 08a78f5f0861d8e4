package server

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"hamr/store/internal/objects"
	"hamr/store/internal/protocol"
	"hamr/store/internal/watch"
	"hamr/store/internal/wire"
)

func (c *conversation) putName(d *protocol.Decoder, _ *protocol.Encoder) error {
	name, id, flags := d.Name(), d.ID(), d.Naming()
	replaces, deletes := flags&protocol.NameReplaces != 0, flags&protocol.NameDeletes != 0
	table := c.server.table
	o, err := found(d, id, table.Find)
	if err != nil {
		return err
	}
	if deletes && !o.Sealed {
		return &protocol.NotSealedError{ID: id}
	}
	had := table.Named(name)
	switch {
	case had != nil && had.Object == o:
		// An earlier server may have given it to another object, which no client has told of yet.
		//mutate:remove a name that an object is given again is not written down
		table.NoteNamed(name, id, false, protocol.ID{})
	case had != nil && !replaces:
		return &protocol.NameTakenError{Name: name, ID: had.Object.ID}
	default:
		if its, expected := table.Book.Expected(name); expected && had == nil && !replaces {
			return &protocol.NameTakenError{Name: name, ID: its}
		}
		if err := table.NameRoom(name); err != nil {
			return err
		}
		table.Rename(name, had, o, deletes)
	}
	//mutate:remove a version ends with the session that has put it
	if flags&protocol.NameLasts != 0 {
		c.session.Unbind(o)
	}
	wire.Crash("server-named")
	return nil
}

func (c *conversation) dropName(d *protocol.Decoder, _ *protocol.Encoder) error {
	name := d.Name()
	if err := d.Done(); err != nil {
		return err
	}
	n := c.server.table.Named(name)
	if n == nil {
		return &protocol.NotFoundError{Name: name}
	}
	c.server.table.Unname(n)
	c.server.table.NoteDropped(n.Object, name)
	return nil
}

func (c *conversation) exists(d *protocol.Decoder, e *protocol.Encoder) error {
	id := d.ID()
	if err := d.Done(); err != nil {
		return err
	}
	o := c.server.table.Objects[id]
	e.Flag(o != nil)
	e.Flag(o != nil && o.Sealed)
	return nil
}

func (c *conversation) describe(d *protocol.Decoder, e *protocol.Encoder) error {
	o, err := found(d, d.ID(), c.server.table.Find)
	if err != nil {
		return err
	}
	encodeListed(e, o)
	return nil
}

func encodeListed(e *protocol.Encoder, o *objects.Object) {
	e.ID(o.ID)
	protocol.EncodeTold(e, &o.Told)
	e.U32(uint32(min(o.Leases, protocol.MostLeases)))
	at, room := len(e.Bytes), protocol.MostPacket-len(e.Bytes)-16
	e.U32(0)
	count := uint32(0)
	o.EachName(func(name string) bool {
		if room -= 4 + len(name); room < 0 {
			return false
		}
		count++
		e.Text(name)
		return true
	})
	binary.LittleEndian.PutUint32(e.Bytes[at:], count)
}

func (c *conversation) list(d *protocol.Decoder, e *protocol.Encoder) error {
	after, most, filter, prefix := d.U64(), d.U32(), d.U8(), d.Text()
	if d.Broken == "" && filter >= protocol.ListNamed<<1 {
		d.Fail("a filter of %#x", filter)
	}
	if err := d.Done(); err != nil {
		return err
	}
	table := c.server.table
	next := len(e.Bytes)
	e.U64(0)
	e.U32(0)
	n := uint32(0)
	goOn := table.List(after, most, func(o *objects.Object) (listed, full bool) {
		if !isListed(o, filter, prefix) {
			return false, false
		}
		before := len(e.Bytes)
		encodeListed(e, o)
		if n > 0 && len(e.Bytes) > protocol.MostPacket-1024 {
			e.Bytes = e.Bytes[:before]
			return false, true
		}
		n++
		return true, false
	})
	binary.LittleEndian.PutUint64(e.Bytes[next:], goOn)
	binary.LittleEndian.PutUint32(e.Bytes[next+8:], n)
	return nil
}

// isListed reports whether a list of some objects has an object.
func isListed(o *objects.Object, filter uint8, prefix string) bool {
	if o.Sealed && filter&protocol.ListSealed == 0 || !o.Sealed && filter&protocol.ListUnsealed == 0 {
		return false
	}
	has := filter&protocol.ListNamed == 0
	if !has {
		o.EachName(func(name string) bool {
			has = strings.HasPrefix(name, prefix)
			return !has
		})
	}
	return has
}

func (c *conversation) setMetadata(d *protocol.Decoder, _ *protocol.Encoder) error {
	payload := d.Rest
	id, metadata := d.ID(), d.Blob()
	table := c.server.table
	o, err := found(d, id, c.mine)
	if err != nil {
		return err
	}
	if err := table.SetMetadata(o, metadata); err != nil {
		return err
	}
	if o.Leases > 1 || o.Learned {
		table.Note(protocol.OpSetMetadata, payload)
	}
	return nil
}

func (c *conversation) mark(d *protocol.Decoder, _ *protocol.Encoder) error {
	payload := d.Rest
	id, what, on := d.ID(), d.U8(), d.Flag()
	if d.Broken == "" && what > protocol.MarkEvictable {
		d.Fail("mark %d", what)
	}
	o, err := found(d, id, c.server.table.Find)
	if err != nil {
		return err
	}
	o.Mark(what, on)
	c.server.table.Note(protocol.OpMark, payload)
	return nil
}

func (c *conversation) statistics(d *protocol.Decoder, e *protocol.Encoder) error {
	if err := d.Done(); err != nil {
		return err
	}
	t := c.server.figures()
	protocol.EncodeStatistics(e, t)
	if len(e.Bytes) > protocol.MostPacket {
		return &protocol.SystemError{Problem: fmt.Sprintf("statistics of %d devices", len(t.Memories))}
	}
	return nil
}

// fail replaces the answer to a request, which begins somewhere, by an error.
func fail(e *protocol.Encoder, at int, operation uint16, request uint64, err error) {
	e.Bytes = e.Bytes[:at]
	e.Begin(operation, protocol.StatusDone, request)
	e.Bytes[at+6] = byte(protocol.EncodeError(e, err))
}

// later answers a request by build when what it waits for is there, or when its time has passed.
func (c *conversation) later(w *watch.Waiter, most time.Duration, build func(e *protocol.Encoder) error) error {
	operation, request := c.last.operation, c.last.request
	w.Client = &c.session.Watch
	w.Finish = func() {
		var e protocol.Encoder
		at := e.Begin(operation, protocol.StatusDone, request)
		if err := build(&e); err != nil {
			fail(&e, at, operation, request, err)
		}
		e.End(at)
		c.sendLater(e.Bytes)
	}
	c.server.table.Watch.Wait(w, most)
	return errLater
}

// encodeNamed appends the object that has a name, unless it is one that the client knows of.
func (c *conversation) encodeNamed(e *protocol.Encoder, name string, known protocol.ID) error {
	if n := c.server.table.Named(name); n != nil && n.Object.ID != known {
		e.ID(n.Object.ID)
		return nil
	}
	return &protocol.NotFoundError{Name: name}
}

func (c *conversation) getName(d *protocol.Decoder, e *protocol.Encoder) error {
	name, most := d.Name(), timeout(d)
	var known protocol.ID
	if len(d.Rest) > 0 {
		known = d.ID()
	}
	if err := d.Done(); err != nil {
		return err
	}
	err := c.encodeNamed(e, name, known)
	if err == nil || most == 0 {
		return err
	}
	build := func(e *protocol.Encoder) error { return c.encodeNamed(e, name, known) }
	return c.later(&watch.Waiter{Name: name, Known: known}, most, build)
}

// encodeReady appends those of some objects that are sealed.
func (c *conversation) encodeReady(e *protocol.Encoder, ids []protocol.ID) error {
	at := len(e.Bytes)
	e.U32(0)
	n := uint32(0)
	for _, id := range ids {
		if c.server.table.Settled(id) {
			n++
			e.ID(id)
		}
	}
	binary.LittleEndian.PutUint32(e.Bytes[at:], n)
	return nil
}

func (c *conversation) wait(d *protocol.Decoder, e *protocol.Encoder) error {
	most, count := timeout(d), int(d.U32())
	w := &watch.Waiter{Count: count}
	seen := map[protocol.ID]bool{}
	for range d.Count(16) {
		if id := d.ID(); !seen[id] {
			seen[id] = true
			w.IDs = append(w.IDs, id)
		}
	}
	if d.Broken == "" && count > len(w.IDs) {
		d.Fail("waiting for %d of %d objects", count, len(w.IDs))
	}
	if err := d.Done(); err != nil {
		return err
	}
	for _, id := range w.IDs {
		if c.server.table.Settled(id) {
			w.Ready++
		}
	}
	if w.Ready >= count || most == 0 {
		return c.encodeReady(e, w.IDs)
	}
	return c.later(w, most, func(e *protocol.Encoder) error { return c.encodeReady(e, w.IDs) })
}

func (c *conversation) watch(d *protocol.Decoder, e *protocol.Encoder) error {
	most := timeout(d)
	if err := d.Done(); err != nil {
		return err
	}
	client := &c.session.Watch
	if c.server.table.Watch.Begin(client) || most == 0 {
		client.EncodeEvents(e)
		return nil
	}
	return c.later(&watch.Waiter{Events: true}, most, func(e *protocol.Encoder) error {
		client.EncodeEvents(e)
		return nil
	})
}
