package server

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/store/internal/book"
	"hamr/store/internal/memory"
	"hamr/store/internal/objects"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// checkHeld refuses a descriptor that is not of memory of a size which cannot change. If the memory is sealed, the
// kernel must not let anybody map it for writing.
func checkHeld(number int, size int64, sealed bool) (file unix.Stat_t, err error) {
	refused := func(value, accepted string) (unix.Stat_t, error) {
		return file, &protocol.ArgumentError{Argument: "memory", Value: value, Accepted: accepted}
	}
	seals, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0)
	if err != nil {
		return refused("a descriptor of something else", "shared memory")
	}
	const sized = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	if err := unix.Fstat(number, &file); err != nil || file.Size != size || seals&sized != sized {
		return refused(fmt.Sprintf("%d bytes with seals %#x", file.Size, seals),
			fmt.Sprintf("%d bytes whose size is sealed", size))
	}
	if sealed && seals&sealsWriting == 0 {
		return refused(fmt.Sprintf("with seals %#x", seals), "memory that is sealed against writing")
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
	return unix.Fstat(a, &first) == nil && unix.Fstat(b, &second) == nil &&
		first.Dev == second.Dev && first.Ino == second.Ino
}

// canBeSlab reports whether there are slabs of some bytes, for objects of some.
func canBeSlab(size, each int64) bool {
	return each >= protocol.Smallest && each <= protocol.LargeFrom && each == protocol.PlaceOf(each) &&
		size >= each && size <= memory.MostSlab && size%protocol.PageSize == 0
}

// holdUnit learns of a slab that a client has, and of which it tells the objects next.
func (c *conversation) holdUnit(d *protocol.Decoder, _ *protocol.Encoder) error {
	id, size, each := d.ID(), int64(d.Size()), int64(d.Size())
	if d.Broken == "" && !canBeSlab(size, each) {
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
	u, lingers := c.server.table.Memory.Slab(id)
	switch {
	case u == nil && lingers:
		return &protocol.NotFoundError{ID: id}
	case u == nil:
		var err error
		if u, err = c.server.table.Memory.Adopt(id, size, each); err != nil {
			return err
		}
		u.Descriptor = wire.NewDescriptor(c.descriptors[0])
		c.descriptors = nil
	case u.Descriptor == nil || u.Size != size || u.Each != each || !sameFile(u.Descriptor.Number, c.descriptors[0]):
		return &protocol.NotFoundError{ID: id}
	}
	c.session.Memory.Learn(u)
	return nil
}

// held is what a client tells of an object that it has.
type held struct {
	protocol.Told
	id      protocol.ID
	times   int64 // leases
	where   uint8
	slab    protocol.ID
	at      int64 // in the slab
	size    int64 // of its own memory
	maker   bool  // the client has made it
	session bool  // it ends with the session
}

const heldFlags = protocol.FlagEvictable | protocol.FlagPinned | protocol.FlagSealed | protocol.FlagUnsafe |
	protocol.FlagSession

// decodeHeld reads it. What the packet holds is copied.
func decodeHeld(d *protocol.Decoder) (h held, err error) {
	h.id, h.times, h.where, h.slab, h.at = d.ID(), int64(d.U32()), d.U8(), d.ID(), int64(d.Size())
	h.size = int64(d.Size())
	flags := d.U8()
	h.Device, h.Bytes = backends.UUID(d.ID()), int64(d.Size())
	layout, raw := protocol.DecodeLayout(d)
	metadata := d.Blob()
	onDevice := h.Device != (backends.UUID{})
	if d.Broken == "" && (flags&^heldFlags != 0 || int64(layout.NBytes()) != h.Bytes || h.times < 1 ||
		h.where > protocol.OnDevice || (h.where == protocol.Nowhere) != (h.Bytes == 0) ||
		(h.where != protocol.Nowhere && (h.where == protocol.OnDevice) != onDevice)) {
		d.Fail("an object that is held and cannot be: flags %#x, %d bytes of %d, %d leases, place %d",
			flags, h.Bytes, layout.NBytes(), h.times, h.where)
	}
	if err := d.Done(); err != nil {
		return h, err
	}
	h.Layout, h.Metadata = append([]byte(nil), raw...), append([]byte(nil), metadata...)
	h.Evicts, h.Pinned = flags&protocol.FlagEvictable != 0, flags&protocol.FlagPinned != 0
	h.Sealed, h.maker = flags&protocol.FlagSealed != 0, flags&protocol.FlagUnsafe == 0
	h.session = flags&protocol.FlagSession != 0
	return h, nil
}

// hold learns of an object that a client has, and gives it leases of it.
func (c *conversation) hold(d *protocol.Decoder, _ *protocol.Encoder) error {
	h, err := decodeHeld(d)
	if err != nil {
		return err
	}
	if err := protocol.MetadataWithin(h.Metadata, c.server.options.MaxMetadata); err != nil {
		return err
	}
	if h.where == protocol.OwnMemory || h.where == protocol.OnDevice {
		if err := c.one("object's memory"); err != nil {
			return err
		}
	}
	table := c.server.table
	_, known := table.Book.Of(protocol.OpSeal, h.id)
	if known || (h.where == protocol.OwnMemory && isSealed(c.descriptors[0])) {
		//mutate:remove who got an object before its seal is believed
		h.Sealed = true // since this client got it
	}
	if o := table.Objects[h.id]; o != nil {
		return c.holdMore(o, &h)
	}
	if _, deleted := table.Book.Of(protocol.OpDelete, h.id); deleted {
		return &protocol.NotFoundError{ID: h.id}
	}
	o := &objects.Object{Told: h.Told, Tenant: memory.Tenant{ID: h.id}, Learned: true}
	if err := table.Room(o.TableBytes()); err != nil {
		return err
	}
	u, place, err := c.heldMemory(o, &h)
	if err != nil {
		return err
	}
	table.Add(o, u, place)
	if h.session {
		c.session.Bind(o)
	}
	c.own(o, h.maker)
	if h.Sealed {
		table.Watch.Ready(h.id, 1)
	}
	table.Lease(c.session, o, h.times)
	table.Watch.Tell(protocol.Event{Kind: protocol.Created, ID: h.id})
	//mutate:remove what a book says does not hold of an object that is told later
	table.Recall(o)
	table.Book.Expect(book.ToldAgain)
	wire.Crash("server-held")
	return nil
}

// own makes the session the owner of an object that is not sealed, if it is its maker.
func (c *conversation) own(o *objects.Object, maker bool) {
	if maker && !o.Sealed && o.Owner == nil {
		c.session.Own(o)
	}
}

// holdMore gives the session leases of an object that another one has told of. The first that told of it was believed.
// It must be the same memory.
func (c *conversation) holdMore(o *objects.Object, h *held) error {
	u := o.Unit
	if o.Bytes != h.Bytes || o.Device != h.Device || (u != nil && u.Descriptor == nil) ||
		(h.where == protocol.OwnMemory && (u == nil || !sameFile(u.Descriptor.Number, c.descriptors[0]))) ||
		(h.where == protocol.OnDevice && (u == nil || u.Replaced)) ||
		(h.where == protocol.InSlab && (u == nil || u.ID != h.slab || o.At() != h.at)) {
		return &protocol.NotFoundError{ID: h.id}
	}
	table := c.server.table
	if h.Sealed {
		table.Seal(o)
	} else {
		c.own(o, h.maker)
	}
	if h.session {
		c.session.Bind(o)
	}
	table.Lease(c.session, o, h.times)
	table.Book.Expect(book.ToldAgain)
	return nil
}

// heldMemory returns the unit that holds an object, nil for none, and the object's place in it.
func (c *conversation) heldMemory(o *objects.Object, h *held) (u *memory.Unit, place int32, err error) {
	table := c.server.table
	switch h.where {
	case protocol.OwnMemory, protocol.OnDevice:
		u, err = c.heldAlone(o, h)
		return u, 0, err
	case protocol.InSlab:
		u, _ = table.Memory.Slab(h.slab)
		if u == nil || !u.HasRoomAt(h.at) || h.Bytes > u.Each || !c.session.Memory.Knows(u) {
			return nil, 0, &protocol.NotFoundError{ID: h.id}
		}
		return u, int32(h.at / u.Each), nil
	}
	return nil, 0, nil
}

// heldAlone makes a unit of an object's own memory, whose descriptor the client has sent.
func (c *conversation) heldAlone(o *objects.Object, h *held) (*memory.Unit, error) {
	table := c.server.table
	onHost := h.where == protocol.OwnMemory
	if h.size < h.Bytes || (onHost && h.size != protocol.RoundUp(h.Bytes, protocol.PageSize)) {
		return nil, &protocol.ProtocolError{Problem: fmt.Sprintf("%d bytes of memory for %d", h.size, h.Bytes)}
	}
	filled := h.Bytes
	if onHost {
		if _, err := checkHeld(c.descriptors[0], h.size, h.Sealed); err != nil {
			return nil, err
		}
		filled = h.size
	}
	u, err := table.Memory.Reserve(h.Device, h.size, filled)
	if err != nil {
		return nil, err
	}
	// While something was spilled another client may have told of the object, or of its deletion.
	_, deleted := table.Book.Of(protocol.OpDelete, h.id)
	err = table.Room(o.TableBytes())
	if table.Objects[h.id] != nil || deleted {
		err = &protocol.NotFoundError{ID: h.id}
	}
	if err != nil {
		table.Memory.Unclaim(u)
		return nil, err
	}
	u.Descriptor, u.Writable = wire.NewDescriptor(c.descriptors[0]), !h.Sealed
	c.descriptors = nil
	return u, nil
}
