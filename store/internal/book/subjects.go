package book

import "hamr/store/internal/protocol"

// SubjectOf returns what a fact is about, of which the newest holds, and the object, if it is about one.
func SubjectOf(operation uint16, payload []byte) (key string, id protocol.ID, ok bool) {
	d := protocol.Decoder{Rest: payload}
	switch operation {
	case protocol.OpPutName:
		n := readNaming(&d)
		key, id = NameKey(n.name), n.id
	case protocol.OpDropName:
		if all := d; all.Text() == "" { // all names of an object
			id = all.ID()
			return objectKey(protocol.OpDropName, id), id, all.Done() == nil && id != protocol.ID{}
		}
		key = NameKey(d.Name())
	case protocol.OpMark:
		id = d.ID()
		what := d.U8()
		d.Flag()
		if what > protocol.MarkEvictable {
			d.Fail("mark %d", what)
		}
		key = markKey(id, what)
	case protocol.OpSeal:
		id = d.ID()
		key = objectKey(protocol.OpSeal, id)
	case protocol.OpDelete:
		id = d.ID()
		d.Flag()
		key = objectKey(protocol.OpDelete, id)
	case protocol.OpSetMetadata:
		id = d.ID()
		d.Blob()
		key = objectKey(protocol.OpSetMetadata, id)
	default:
		return "", protocol.ID{}, false
	}
	return key, id, d.Done() == nil
}

func NameKey(name string) string                { return "n" + name }
func markKey(id protocol.ID, what uint8) string { return string(append([]byte{'m', what}, id[:]...)) }
func objectKey(operation uint16, id protocol.ID) string {
	return string(append([]byte{'o', byte(operation)}, id[:]...))
}

func (b *Book) Of(operation uint16, id protocol.ID) (f *Entry, ok bool) {
	f, ok = b.Facts[objectKey(operation, id)]
	return f, ok
}

// ObjectOf returns whose a name is by a fact, unless the object was deleted or lost all its names since.
func (b *Book) ObjectOf(f *Fact) (id protocol.ID, ok bool) {
	if f.Operation != protocol.OpPutName {
		return id, false
	}
	if _, id, ok = SubjectOf(f.Operation, f.Payload); !ok {
		return id, false
	}
	for _, operation := range []uint16{protocol.OpDelete, protocol.OpDropName} {
		//mutate:replace a deleted object keeps its names
		//mutate:with later.When > f.When => later.When == 0
		if later, known := b.Of(operation, id); known && later.When > f.When {
			return id, false
		}
	}
	return id, true
}

// Replaced returns an object that is not there and goes when another one replaces it under a name: it has no other.
func (b *Book) Replaced(name string) (id protocol.ID) {
	key := NameKey(name)
	f := b.Facts[key]
	if f == nil || f.Object == nil || f.Object.There {
		return id
	}
	if its, ok := b.ObjectOf(&f.Fact); ok && !b.HasName(its, key) {
		return its
	}
	return id
}

// Untold returns until when an object got a name that is to be deleted, and of which nobody has told yet: until the
// server began that replaced it and knew nothing of the name. 0 is none.
func (b *Book) Untold(name string, replaces bool) (until uint64) {
	if f := b.Facts[NameKey(name)]; f != nil {
		//mutate:replace what a server did not know of stays where its name is replaced twice
		//mutate:with .until => .until * 0
		return namingOf(&f.Fact).until
	}
	if replaces {
		return b.since
	}
	return 0
}

// naming is what an entry says of a name.
type naming struct {
	name  string
	id    protocol.ID
	until uint64 // see Untold
}

func readNaming(d *protocol.Decoder) (n naming) {
	n.name, n.id = d.Name(), d.ID()
	if d.Naming()&protocol.NameDeletes != 0 {
		n.until = d.U64()
	}
	return n
}

// namingOf reads an entry; a zero value is of one that gives no name.
func namingOf(f *Fact) (n naming) {
	if f.Operation != protocol.OpPutName {
		return n
	}
	return readNaming(&protocol.Decoder{Rest: f.Payload})
}

// EncodeNaming appends the fields of an entry that an object has a name, and until when another one got it that goes.
func EncodeNaming(e *protocol.Encoder, name string, id protocol.ID, until uint64) {
	e.Text(name)
	e.ID(id)
	if until > 0 {
		e.U8(protocol.NameReplaces | protocol.NameDeletes)
		e.U64(until)
	} else {
		e.U8(0)
	}
}

// HasName reports whether an object has a name by a fact, other than that of a key.
func (b *Book) HasName(id protocol.ID, except string) bool {
	o := b.Objects[id]
	if o == nil {
		return false
	}
	for k := o.Facts.Oldest; k != nil; k = k.ofObject.Newer {
		if _, holds := b.ObjectOf(&k.Fact); holds && k.Key != except {
			return true
		}
	}
	return false
}

// outdoes keeps the fact of a name before a newer one by which whatever had the name is deleted: the server that has
// written that down did not know what had it.
func (b *Book) outdoes(newer, older *Entry) {
	if older.When >= namingOf(&newer.Fact).until {
		return
	}
	if k := b.outdone[newer.Key]; k == nil || older.When > k.When {
		b.outdone[newer.Key] = older
	}
}

// Outdone returns the objects that were replaced by others where no server knew of them. They have no other name by a
// fact. Each is told once.
func (b *Book) Outdone() (list []protocol.ID) {
	for key, k := range b.outdone {
		now := b.Facts[key]
		if now == nil {
			continue
		}
		its, has := b.ObjectOf(&now.Fact)
		if old, had := b.ObjectOf(&k.Fact); had && old != its && !b.HasName(old, "") {
			list = append(list, old)
		}
		//mutate:replace a name comes back with what was evicted, as it had replaced an object that is told of later
		//mutate:with has => has || now.Object != nil
		if has { // what had the name earlier still is nobody's concern
			var e protocol.Encoder
			EncodeNaming(&e, namingOf(&now.Fact).name, its, 0)
			b.Note(protocol.OpPutName, e.Bytes)
		}
	}
	clear(b.outdone)
	return list
}

// Expected returns the object that has a name, where some client may still tell of it.
func (b *Book) Expected(name string) (id protocol.ID, ok bool) {
	if f := b.Facts[NameKey(name)]; f != nil && b.Expects > Clock() {
		return b.ObjectOf(&f.Fact)
	}
	return id, false
}
