package book

import "hamr/store/internal/protocol"

// SubjectOf returns what a fact is about, of which the newest holds, and the object, if it is about one.
func SubjectOf(operation uint16, payload []byte) (key string, id protocol.ID, ok bool) {
	d := protocol.Decoder{Rest: payload}
	switch operation {
	case protocol.OpPutName:
		key, id = NameKey(d.Name()), d.ID()
		d.Flag()
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
	its, ok := b.ObjectOf(&f.Fact)
	if !ok {
		return id
	}
	for k := f.Object.Facts.Oldest; k != nil; k = k.ofObject.Newer {
		if _, holds := b.ObjectOf(&k.Fact); holds && k.Key != key {
			return id
		}
	}
	return its
}

// Expected returns the object that has a name, where some client may still tell of it.
func (b *Book) Expected(name string) (id protocol.ID, ok bool) {
	if f := b.Facts[NameKey(name)]; f != nil && b.Expects > Clock() {
		return b.ObjectOf(&f.Fact)
	}
	return id, false
}
