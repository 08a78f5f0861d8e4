package book

import (
	"slices"

	"hamr/store/internal/protocol"
)

// SubjectOf returns what a fact is about, of which the newest holds, and the object, if it is about one.
func SubjectOf(operation uint16, payload []byte) (key string, id protocol.ID, ok bool) {
	d := protocol.Decoder{Rest: payload}
	switch operation {
	case protocol.OpPutName:
		key, id = NameKey(d.Name()), d.ID()
		d.Naming()
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
// known says whether anything is known of the name.
func (b *Book) Replaced(name string) (id protocol.ID, known bool) {
	key := NameKey(name)
	f := b.Facts[key]
	if f == nil || f.Object == nil || f.Object.There {
		return id, f != nil
	}
	if its, ok := b.ObjectOf(&f.Fact); ok && !b.HasName(its, key) {
		return its, true
	}
	return id, true
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
	if newer.Operation != protocol.OpPutName || older.When == newer.When {
		return
	}
	d := protocol.Decoder{Rest: newer.Payload}
	_, _, flags := d.Name(), d.ID(), d.Naming()
	if k := b.outdone[newer.Key]; flags&protocol.NameDeletes != 0 && (k == nil || older.When > k.When) {
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
		_, its, _ := SubjectOf(now.Operation, now.Payload)
		if old, had := b.ObjectOf(&k.Fact); had && old != its && !b.HasName(old, "") {
			list = append(list, old)
		}
		if now.Operation == protocol.OpPutName { // what had the name earlier still is nobody's concern
			payload := slices.Clone(now.Payload)
			payload[len(payload)-1] = 0
			b.Note(protocol.OpPutName, payload)
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
