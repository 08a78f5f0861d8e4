package server

import (
	"runtime"
	"time"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Note writes down what was asked of an object.
func (s *Server) Note(operation uint16, payload []byte) {
	if s.quiet {
		return
	}
	//mutate:remove what was asked of an object is not written down
	s.Book.Note(operation, payload)
	wire.Crash("server-noted")
}

// NoteOf is Note of a request that has nothing but an object and, perhaps, a flag.
func (s *Server) NoteOf(operation uint16, id protocol.ID, flags ...bool) {
	var e protocol.Encoder
	e.ID(id)
	for _, on := range flags {
		e.Flag(on)
	}
	s.Note(operation, e.Bytes)
}

// remember learns of a book that a client has of another server.
func (c *Conversation) remember(d *protocol.Decoder) error {
	if err := d.Done(); err != nil {
		return err
	}
	if err := c.one("book"); err != nil {
		return err
	}
	s := c.Server
	id, at, err := book.Open(c.descriptors[0])
	if err != nil {
		return err
	}
	_, known := s.Book.Read[id]
	known = known || id == s.Book.ID // of a client that has lost its connection alone
	if !known {
		if err := s.learnAll(c.descriptors[0], at); err != nil {
			return err
		}
		s.Book.Read[id] = struct{}{}
	}
	for s.Book.IsBroken() {
		if s.Book.Flush() != nil {
			return errUnwritten
		}
		s.pause(runtime.Gosched)
	}
	wire.Crash("server-learned")
	return nil
}

var errUnwritten = &protocol.SystemError{Problem: "what another server knew could not be written down"}

// mostAtOnce is for how long a request that takes long keeps others from being answered.
const mostAtOnce = time.Millisecond

// letOthers has others' requests be answered where that is due.
func (s *Server) letOthers(since *time.Time) {
	if time.Since(*since) > mostAtOnce {
		s.pause(runtime.Gosched)
		*since = time.Now()
	}
}

// learnAll learns those facts of another server's book that are new, and writes them down. Others' requests are
// answered in between.
func (s *Server) learnAll(file int, at int64) error {
	expect := s.Book.ExpectMore
	if len(s.Book.Read) == 0 {
		expect = s.Book.Expect
	}
	s.Book.Learning++
	defer func() {
		s.Book.Learning--
		expect(book.ToldWithin)
		s.sweepLater()
	}()
	newer, err := s.enterAll(file, at, expect)
	since := time.Now()
	for _, list := range newer { // after an error as well: they are not new any more when they are told again
		expect(book.ToldWithin)
		for _, k := range list {
			if s.Book.Facts[k.Key] == k { // or somebody was answered meanwhile
				s.learn(k)
			}
			s.letOthers(&since)
		}
	}
	return err
}

// enterAll enters those facts of another server's book that are new.
func (s *Server) enterAll(file int, at int64, expect func(time.Duration)) (newer [][]*book.Entry, err error) {
	latest := s.Book.Now()
	buffer := make([]byte, 2*protocol.MostPacket)
	for rest := s.Book.ReadsAtMost() + at; at < rest; {
		expect(book.ToldWithin)
		var list []book.Told
		s.pause(func() { list, at, err = book.Read(file, at, buffer) })
		if err != nil || len(list) == 0 {
			break
		}
		for since := time.Now(); len(list) > 0; s.letOthers(&since) {
			n := min(len(list), book.FactsAtOnce)
			newer = append(newer, s.Book.Learn(list[:n], latest))
			if list = list[n:]; s.Book.IsBroken() {
				return newer, errUnwritten
			}
			wire.Crash("server-learning")
		}
	}
	return newer, err
}

// learn has a fact hold of an object that is there.
func (s *Server) learn(k *book.Entry) {
	d := protocol.Decoder{Rest: k.Payload}
	if k.Object == nil {
		name := d.Name()
		if n := s.named(name); n != nil {
			s.Unname(n)
		}
		return
	}
	o := s.Objects[k.Object.ID]
	if k.Operation == protocol.OpPutName {
		s.learnName(k, d.Name(), o)
		return
	}
	if o == nil {
		return
	}
	if k.Operation == protocol.OpDropName {
		s.learnUnnamed(k, o)
		return
	}
	d.ID()
	switch k.Operation {
	case protocol.OpMark:
		o.set(d.U8(), d.Flag())
	case protocol.OpSeal:
		s.settle(o)
	case protocol.OpDelete:
		s.Remove(o, false, protocol.Deleted)
	case protocol.OpSetMetadata:
		metadata := d.Blob()
		if protocol.MetadataWithin(metadata, s.Options.MaxMetadata) == nil && s.tableRoom(int64(len(metadata)-len(o.Metadata))) == nil {
			o.setMetadata(s, metadata)
		}
	}
}

// learnName has a name be an object's, nil of one that is not there.
func (s *Server) learnName(k *book.Entry, name string, o *object) {
	had := s.named(name)
	if _, holds := s.Book.ObjectOf(&k.Fact); !holds {
		o = nil
	}
	if had != nil && had.object == o {
		return
	}
	if had != nil {
		s.Unname(had)
	}
	if o != nil && s.tableRoom(nameBytes(name)) == nil {
		s.Name(o, name)
	}
}

// learnUnnamed has an object lose the names that it was given before.
func (s *Server) learnUnnamed(unnamed *book.Entry, o *object) {
	since := time.Now()
	for range o.names.Count {
		n := o.names.Oldest
		if n == nil {
			return
		}
		if k := s.Book.Facts[book.NameKey(n.name)]; k != nil && k.When < unnamed.When {
			s.Unname(n)
		} else {
			o.names.Renew()
		}
		s.letOthers(&since)
	}
}

// recall has what is known hold of an object that a client has told of. Others' requests are answered in between where
// that is much.
func (s *Server) recall(o *object) {
	s.Book.Came(o.id)
	about := s.Book.Objects[o.id]
	if about == nil {
		return
	}
	since := time.Now()
	for range about.Facts.Count {
		k := about.Facts.Oldest
		if k == nil || o.deleted {
			return
		}
		about.Facts.Renew()
		if _, holds := s.Book.ObjectOf(&k.Fact); k.Operation == protocol.OpPutName && !holds {
			s.Book.Leave(k) // the name is nobody's: others' names do not come back by it
			s.Book.Drop(k)
			continue
		}
		s.learn(k)
		if time.Since(since) > mostAtOnce {
			s.Book.Expect(book.ToldAgain)
			s.letOthers(&since)
		}
	}
}
