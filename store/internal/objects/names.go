package objects

import (
	"runtime"

	"hamr/store/internal/book"
	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Named returns a name that an object has, nil where none has it.
func (t *Table) Named(name string) *Name {
	if n := t.Names[name]; n != nil && !n.Object.Deleted {
		return n
	}
	return nil
}

// NameRoom refuses a name for which the table has no room.
func (t *Table) NameRoom(name string) error { return t.Room(nameBytes(name)) }

// Name gives an object a name that no object has.
func (t *Table) Name(o *Object, name string) {
	n := &Name{name: name, Object: o}
	t.Names[name] = n
	t.there++
	if o.names.Neighbours == nil {
		o.names.Neighbours = func(n *Name) *chain.Neighbours[Name] { return &n.ofObject }
	}
	o.names.Push(n)
	o.named += nameBytes(name)
	t.bytes += nameBytes(name)
	t.Watch.Tell(protocol.Event{Kind: protocol.Named, ID: o.ID, Name: name})
	t.Watch.Named(name, o.ID)
}

// Unname takes a name away from its object.
func (t *Table) Unname(n *Name) {
	o := n.Object
	o.names.Remove(n)
	delete(t.Names, n.name)
	t.there--
	o.named -= nameBytes(n.name)
	t.bytes -= nameBytes(n.name)
	t.Watch.Tell(protocol.Event{Kind: protocol.Unnamed, ID: o.ID, Name: n.name})
}

// Note writes down what was asked of an object.
func (t *Table) Note(operation uint16, payload []byte) {
	if t.Quiet {
		return
	}
	//mutate:remove what was asked of an object is not written down
	t.Book.Note(operation, payload)
	wire.Crash("server-noted")
}

// Rename gives an object a name in place of that which had it, if any. With deletes that one is deleted, unless it has
// other names or is not sealed: its maker still writes to it. It is written down first: who is told of the new one must
// not find the old one by another server.
func (t *Table) Rename(name string, had *Name, o *Object, deletes bool) {
	var old *Object
	gone := protocol.ID{}
	switch {
	case !deletes:
	case had == nil:
		gone = t.Book.Replaced(name) // which no client has told of yet
	case had.Object.Sealed && had.Object.names.Count == 1:
		old, gone = had.Object, had.Object.ID
	}
	t.NoteNamed(name, o.ID, deletes, gone)
	if had != nil {
		t.Unname(had)
	}
	t.Name(o, name)
	if old != nil {
		t.remove(old, false, protocol.Deleted, false)
	}
}

// NoteNamed writes down that an object has a name, whether it replaces what may have it of which nobody has told yet,
// and, unless gone is zero, that this was deleted: both or nothing.
func (t *Table) NoteNamed(name string, id protocol.ID, replaces bool, gone protocol.ID) {
	var e protocol.Encoder
	book.EncodeNaming(&e, name, id, t.Book.Untold(name, replaces))
	if gone == (protocol.ID{}) {
		t.Note(protocol.OpPutName, e.Bytes)
		return
	}
	var deleted protocol.Encoder
	deleted.ID(gone)
	deleted.Flag(false)
	t.Book.NoteBoth(book.Fact{Operation: protocol.OpPutName, Payload: e.Bytes},
		book.Fact{Operation: protocol.OpDelete, Payload: deleted.Bytes})
	wire.Crash("server-noted")
}

// NoteOf is Note of a request that has only an object and, perhaps, a flag.
func (t *Table) NoteOf(operation uint16, id protocol.ID, flags ...bool) {
	var e protocol.Encoder
	e.ID(id)
	for _, on := range flags {
		e.Flag(on)
	}
	t.Note(operation, e.Bytes)
}

// NoteDropped writes down that an object lost a name, or all its names where the name is empty.
func (t *Table) NoteDropped(o *Object, name string) {
	var e protocol.Encoder
	e.Text(name)
	if name == "" {
		e.ID(o.ID)
	}
	t.Note(protocol.OpDropName, e.Bytes)
}

// sweptAtOnce is how many names are taken out of the table before other requests are answered.
const sweptAtOnce = 500

// dropNames frees the names of an object that went. Nobody finds them any more; where they are many, they leave the
// table later, a part at a time.
func (t *Table) dropNames(names chain.Chain[Name]) {
	t.there -= int64(names.Count)
	if t.Quiet || names.Count == 0 {
		return
	}
	if t.takeOut(&names); names.Count > 0 {
		t.unswept = append(t.unswept, names)
		t.sweepLater()
	}
}

// takeOut takes some names out of the table that are of an object which went.
func (t *Table) takeOut(names *chain.Chain[Name]) {
	for range min(names.Count, sweptAtOnce) {
		n := names.Oldest
		names.Remove(n)
		if t.Names[n.name] == n { // else another object has the name since
			delete(t.Names, n.name)
		}
	}
}

// sweepLater has a goroutine do what takes long and nobody waits for.
func (t *Table) sweepLater() {
	if t.sweeping || t.Closed {
		return
	}
	t.sweeping = true
	t.sweeps.Add(1)
	go func() {
		defer t.sweeps.Done()
		for t.sweep() {
			runtime.Gosched()
		}
	}()
}

// sweep does a part of it, and reports whether there is more.
func (t *Table) sweep() (more bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.Closed {
		return false
	}
	if len(t.unswept) > 0 {
		if t.takeOut(&t.unswept[0]); t.unswept[0].Count == 0 {
			t.unswept = t.unswept[1:]
		}
	}
	t.sweeping = t.Book.Tidy() || len(t.unswept) > 0
	return t.sweeping
}

// Wait returns when nothing is done later any more. The table is closed.
func (t *Table) Wait() { t.sweeps.Wait() }
