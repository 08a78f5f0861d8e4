package server

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// checkHeld refuses a descriptor that is not of memory of a size which cannot change. Of sealed
// memory nobody may map it for writing any more.
func checkHeld(number int, size int64, sealed bool) (file unix.Stat_t, err error) {
	seals, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0)
	if err != nil {
		return file, &protocol.ArgumentError{Argument: "memory", Value: "a descriptor of something else", Accepted: "shared memory"}
	}
	const sized = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	if err := unix.Fstat(number, &file); err != nil || file.Size != size || seals&sized != sized {
		return file, &protocol.ArgumentError{Argument: "memory", Value: fmt.Sprintf("%d bytes with seals %#x", file.Size, seals), Accepted: fmt.Sprintf("%d bytes whose size is sealed", size)}
	}
	if sealed && seals&sealsWriting == 0 {
		return file, &protocol.ArgumentError{Argument: "memory", Value: fmt.Sprintf("with seals %#x", seals), Accepted: "memory that is sealed against writing"}
	}
	return file, nil
}

const sealsWriting = unix.F_SEAL_WRITE | unix.F_SEAL_FUTURE_WRITE

// isSealed reports whether nobody can map memory for writing any more.
func isSealed(number int) bool {
	seals, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0)
	return err == nil && seals&sealsWriting != 0
}

// sameFile reports whether two descriptors are of the same memory.
func sameFile(a, b int) bool {
	var first, second unix.Stat_t
	return unix.Fstat(a, &first) == nil && unix.Fstat(b, &second) == nil && first.Dev == second.Dev && first.Ino == second.Ino
}

// holdUnit learns of a slab that a client has, of which objects follow.
func (c *Conversation) holdUnit(d *protocol.Decoder, e *protocol.Encoder) error {
	id, size, each := d.ID(), int64(d.Size()), int64(d.Size())
	if d.Broken == "" && (each < protocol.Smallest || each > protocol.LargeFrom || each != protocol.PlaceOf(each) || size < each || size > mostSlab || size%protocol.PageSize != 0) {
		d.Fail("a slab of %d bytes for objects of %d", size, each)
	}
	if err := d.Done(); err != nil {
		return err
	}
	if err := c.one("slab"); err != nil {
		return err
	}
	if _, err := checkHeld(c.descriptors[0], size, true); err != nil {
		return err
	}
	s := c.Server
	u := s.units[id]
	switch {
	case u == nil && s.lingering[id] != nil:
		return &protocol.NotFoundError{ID: id}
	case u == nil:
		u = &unit{id: id, domain: s.DomainOf(backends.UUID{}), size: size, each: each, knownBy: map[*session]struct{}{}}
		if err := s.take(u.domain, size); err != nil {
			return err
		}
		if s.units[id] != nil { // another client was first while something was spilled
			s.unclaim(u)
			return &protocol.NotFoundError{ID: id}
		}
		u.places = make([]*object, size/each)
		u.Descriptor = wire.NewDescriptor(c.descriptors[0])
		c.descriptors = nil
		s.units[id] = u
	case u.Descriptor == nil || u.size != size || u.each != each || !sameFile(u.Descriptor.Number, c.descriptors[0]):
		return &protocol.NotFoundError{ID: id}
	}
	u.knownBy[c.Session] = struct{}{}
	c.Session.known[u] = struct{}{}
	return nil
}

// own has an object that is not sealed be its maker's.
func (c *Conversation) own(o *object, maker bool) {
	if maker && !o.Sealed && o.owner == nil {
		o.owner = c.Session
		c.Session.unsealed[o] = struct{}{}
	}
}

// hold learns of an object that a client has, and gives it leases of it.
func (c *Conversation) hold(d *protocol.Decoder, e *protocol.Encoder) error {
	id, times, where, slab, at := d.ID(), int64(d.U32()), d.U8(), d.ID(), int64(d.Size())
	size := int64(d.Size())
	flags := d.U8()
	device, bytes := backends.UUID(d.ID()), int64(d.Size())
	layout, raw := protocol.DecodeLayout(d)
	metadata := d.Blob()
	if d.Broken == "" && (flags&^(protocol.FlagEvictable|protocol.FlagPinned|protocol.FlagSealed|protocol.FlagUnsafe|protocol.FlagSession) != 0 || int64(layout.NBytes()) != bytes || times < 1 || where > protocol.OnDevice ||
		(where == protocol.Nowhere) != (bytes == 0) || (where != protocol.Nowhere && (where == protocol.OnDevice) != (device != backends.UUID{}))) {
		d.Fail("an object that is held and cannot be: flags %#x, %d bytes of %d, %d leases, place %d", flags, bytes, layout.NBytes(), times, where)
	}
	if err := d.Done(); err != nil {
		return err
	}
	s := c.Server
	if err := protocol.MetadataWithin(metadata, s.Options.MaxMetadata); err != nil {
		return err
	}
	if where == protocol.OwnMemory || where == protocol.OnDevice {
		if err := c.one("object's memory"); err != nil {
			return err
		}
	}
	sealed, maker := flags&protocol.FlagSealed != 0, flags&protocol.FlagUnsafe == 0
	if _, known := s.Book.Of(protocol.OpSeal, id); known || (where == protocol.OwnMemory && isSealed(c.descriptors[0])) {
		//mutate:remove who got an object before its seal is believed
		sealed = true // since this client got it
	}
	if o := s.Objects[id]; o != nil {
		// The first who told of it was believed. It must be the same memory.
		u := o.Unit
		if o.Bytes != bytes || o.Device != device || (u != nil && u.Descriptor == nil) ||
			(where == protocol.OwnMemory && (u == nil || !sameFile(u.Descriptor.Number, c.descriptors[0]))) ||
			(where == protocol.OnDevice && (u == nil || u.replaced)) ||
			(where == protocol.InSlab && (u == nil || u.id != slab || int64(o.place)*u.each != at)) {
			return &protocol.NotFoundError{ID: id}
		}
		if sealed {
			s.settle(o)
		} else {
			c.own(o, maker)
		}
		if flags&protocol.FlagSession != 0 {
			c.bind(o)
		}
		s.lease(c.Session, o, times)
		s.Book.Expect(book.ToldAgain)
		return nil
	}
	if _, deleted := s.Book.Of(protocol.OpDelete, id); deleted {
		return &protocol.NotFoundError{ID: id}
	}
	o := &object{
		Told: protocol.Told{
			Bytes: bytes, Device: device, Layout: append([]byte(nil), raw...), Metadata: append([]byte(nil), metadata...),
			Evicts: flags&protocol.FlagEvictable != 0, Pinned: flags&protocol.FlagPinned != 0, Sealed: sealed,
		},
		id: id, learned: true,
	}
	if err := s.tableRoom(o.tableBytes()); err != nil {
		return err
	}
	var place int32
	var u *unit
	switch where {
	case protocol.OwnMemory, protocol.OnDevice:
		if size < bytes || (where == protocol.OwnMemory && size != protocol.RoundUp(bytes, protocol.PageSize)) {
			return &protocol.ProtocolError{Problem: fmt.Sprintf("%d bytes of memory for %d", size, bytes)}
		}
		if where == protocol.OwnMemory {
			if _, err := checkHeld(c.descriptors[0], size, sealed); err != nil {
				return err
			}
		}
		var err error
		if u, err = s.reserve(device, size); err != nil {
			return err
		}
		// While something was spilled another client may have been first, or have told of its deletion.
		_, deleted := s.Book.Of(protocol.OpDelete, id)
		err = s.tableRoom(o.tableBytes())
		if s.Objects[id] != nil || deleted {
			err = &protocol.NotFoundError{ID: id}
		}
		if err != nil {
			s.unclaim(u)
			return err
		}
		u.Descriptor, u.writable = wire.NewDescriptor(c.descriptors[0]), !sealed
		c.descriptors = nil
	case protocol.InSlab:
		u = s.units[slab]
		if u == nil || at%u.each != 0 || at/u.each >= int64(len(u.places)) || bytes > u.each || u.creator != nil || u.Spilled != nil {
			return &protocol.NotFoundError{ID: id}
		}
		if _, known := c.Session.known[u]; !known || u.places[at/u.each] != nil {
			return &protocol.NotFoundError{ID: id}
		}
		place = int32(at / u.each)
	}
	if u != nil {
		u.put(o, place)
	}
	s.add(o)
	if flags&protocol.FlagSession != 0 {
		c.bind(o)
	}
	c.own(o, maker)
	if sealed {
		s.ready(id, 1)
	}
	s.lease(c.Session, o, times)
	s.tell(protocol.Event{Kind: protocol.Created, ID: id})
	//mutate:remove what a book says does not hold of an object that is told later
	s.recall(o)
	s.Book.Expect(book.ToldAgain)
	wire.Crash("server-held")
	return nil
}
