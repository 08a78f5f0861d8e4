package objects

import (
	"runtime"
	"time"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// mostAtOnce is for how long a request that takes long keeps others waiting.
const mostAtOnce = time.Millisecond

// letOthers lets other requests be answered when that is due.
func (t *Table) letOthers(since *time.Time) {
	if time.Since(*since) > mostAtOnce {
		t.lock.Pause(runtime.Gosched)
		*since = time.Now()
	}
}

// Remember learns the facts of another server's book that are new, and writes them down. Other requests are answered in
// between.
func (t *Table) Remember(file int, id protocol.ID, at int64) error {
	_, known := t.Book.Read[id]
	known = known || id == t.Book.ID // of a client that has lost only its connection
	if !known {
		if err := t.learnAll(file, at); err != nil {
			return err
		}
		t.Book.Read[id] = struct{}{}
		//mutate:remove what was replaced comes back where the server did not know of it
		t.removeOutdone()
	}
	for t.Book.IsBroken() {
		if t.Book.Flush() != nil {
			return errUnwritten
		}
		t.lock.Pause(runtime.Gosched)
	}
	return nil
}

var errUnwritten = &protocol.SystemError{Problem: "what another server knew could not be written down"}

// learnAll learns these facts, and has clients wait for what others may tell of.
func (t *Table) learnAll(file int, at int64) error {
	expect := t.Book.ExpectMore
	if len(t.Book.Read) == 0 {
		expect = t.Book.Expect
	}
	t.Book.Learning++
	defer func() {
		t.Book.Learning--
		expect(book.ToldWithin)
		t.sweepLater()
	}()
	newer, err := t.enterAll(file, at, expect)
	since := time.Now()
	for _, list := range newer { // after an error as well: when they are told again they are not new any more
		expect(book.ToldWithin)
		for _, k := range list {
			if t.Book.Facts[k.Key] == k { // else a request was answered meanwhile that has changed it
				t.learn(k)
			}
			t.letOthers(&since)
		}
	}
	return err
}

// removeOutdone deletes what was replaced by a server that did not know of it, unless it has another name.
// Of a book of which another request has read a part, a later entry of the name may follow.
func (t *Table) removeOutdone() {
	//mutate:never a book that another request still reads says what goes
	if t.Book.Learning > 0 {
		return
	}
	for _, id := range t.Book.Outdone() {
		if o := t.Objects[id]; o == nil {
			t.NoteOf(protocol.OpDelete, id, false)
		} else if o.Sealed && !o.HasName() {
			t.Remove(o, false, protocol.Deleted)
		}
	}
}

// enterAll enters those facts of another server's book that are new.
func (t *Table) enterAll(file int, at int64, expect func(time.Duration)) (newer [][]*book.Entry, err error) {
	latest := t.Book.Now()
	buffer := make([]byte, 2*protocol.MostPacket)
	for rest := t.Book.ReadsAtMost() + at; at < rest; {
		expect(book.ToldWithin)
		var list []book.Told
		t.lock.Pause(func() { list, at, err = book.Read(file, at, buffer) })
		if err != nil || len(list) == 0 {
			break
		}
		for since := time.Now(); len(list) > 0; t.letOthers(&since) {
			n := min(len(list), book.FactsAtOnce)
			newer = append(newer, t.Book.Learn(list[:n], latest))
			if list = list[n:]; t.Book.IsBroken() {
				return newer, errUnwritten
			}
			wire.Crash("server-learning")
		}
	}
	return newer, err
}

// learn applies a fact to the object that it is of, if that is there.
func (t *Table) learn(k *book.Entry) {
	d := protocol.Decoder{Rest: k.Payload}
	if k.Object == nil {
		name := d.Name()
		if n := t.Named(name); n != nil {
			t.Unname(n)
		}
		return
	}
	o := t.Objects[k.Object.ID]
	if k.Operation == protocol.OpPutName {
		t.learnName(k, d.Name(), o)
		return
	}
	if o == nil {
		return
	}
	if k.Operation == protocol.OpDropName {
		t.learnUnnamed(k, o)
		return
	}
	d.ID()
	switch k.Operation {
	case protocol.OpMark:
		o.Mark(d.U8(), d.Flag())
	case protocol.OpSeal:
		t.Seal(o)
	case protocol.OpDelete:
		t.Remove(o, false, protocol.Deleted)
	case protocol.OpSetMetadata:
		_ = t.SetMetadata(o, d.Blob())
	}
}

// learnName gives an object a name. It is nil where it is not there: then nobody has the name.
func (t *Table) learnName(k *book.Entry, name string, o *Object) {
	had := t.Named(name)
	if _, holds := t.Book.ObjectOf(&k.Fact); !holds {
		o = nil
	}
	if had != nil && had.Object == o {
		return
	}
	if had != nil {
		t.Unname(had)
	}
	if o != nil && t.NameRoom(name) == nil {
		t.Name(o, name)
	}
}

// learnUnnamed takes the names away from an object that it was given before.
func (t *Table) learnUnnamed(unnamed *book.Entry, o *Object) {
	since := time.Now()
	for range o.names.Count {
		n := o.names.Oldest
		if n == nil {
			return
		}
		if k := t.Book.Facts[book.NameKey(n.name)]; k != nil && k.When < unnamed.When {
			t.Unname(n)
		} else {
			o.names.Renew()
		}
		t.letOthers(&since)
	}
}

// Recall applies what is known of an object that a client has told of. Other requests are answered in between where
// that is much.
func (t *Table) Recall(o *Object) {
	t.Book.Came(o.ID)
	about := t.Book.Objects[o.ID]
	if about == nil {
		return
	}
	since := time.Now()
	for range about.Facts.Count {
		k := about.Facts.Oldest
		if k == nil || o.Deleted {
			return
		}
		about.Facts.Renew()
		if _, holds := t.Book.ObjectOf(&k.Fact); k.Operation == protocol.OpPutName && !holds {
			t.Book.Leave(k) // nobody has the name: it must not bring back other names
			t.Book.Drop(k)
			continue
		}
		t.learn(k)
		if time.Since(since) > mostAtOnce {
			t.Book.Expect(book.ToldAgain)
			t.letOthers(&since)
		}
	}
}
