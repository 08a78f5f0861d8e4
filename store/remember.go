package store

// note writes down what was asked of an object.
func (s *Server) note(operation uint16, payloads ...[]byte) {
	if s.quiet {
		return
	}
	s.book.note(operation, payloads...)
	crash("server-noted")
}

// noteOf is note of a request that has nothing but an object and, perhaps, a flag.
func (s *Server) noteOf(operation uint16, id ID, flags ...bool) {
	var e encoder
	e.id(id)
	for _, on := range flags {
		e.flag(on)
	}
	s.note(operation, e.bytes)
}

// remember learns of a book that a client has of another server.
func (c *conversation) remember(d *decoder) error {
	if err := d.done(); err != nil {
		return err
	}
	if err := c.one("book"); err != nil {
		return err
	}
	s := c.server
	book, at, err := openBook(c.descriptors[0])
	if err != nil {
		return err
	}
	_, known := s.book.read[book]
	known = known || book == s.book.id // of a client that has lost its connection alone
	if !known {
		var list []fact
		s.pause(func() { list, err = readBook(c.descriptors[0], at, s.options.TableLimit) })
		if err != nil {
			return err
		}
		s.learnAll(list)
		if len(s.book.read) == 0 {
			s.book.expect(toldWithin)
		}
		s.book.read[book] = struct{}{}
	}
	if s.book.number >= 0 && (!known || s.book.broken) {
		if s.book.broken = s.book.rewrite() != nil; s.book.broken {
			return &SystemError{"what another server knew could not be written down"}
		}
	}
	crash("server-learned")
	return nil
}

// learnAll learns those facts that are new. Others' requests are answered in between.
func (s *Server) learnAll(list []fact) {
	latest := s.book.now()
	newer := map[string]uint64{}
	letOthers := func(i int) {
		if i%learnAtOnce == learnAtOnce-1 {
			s.pause(func() {})
		}
	}
	for i, f := range list {
		letOthers(i)
		key, _, ok := subjectOf(f.operation, f.payload)
		if ok && f.when < latest && f.when > s.book.facts[key].when {
			s.book.facts[key] = f
			newer[key] = f.when
		}
	}
	learned := 0
	for key, when := range newer {
		letOthers(learned)
		learned++
		if f := s.book.facts[key]; f.when == when { // or somebody was answered meanwhile
			_, id, _ := subjectOf(f.operation, f.payload)
			s.learn(f, id)
		}
	}
}

// learn has a fact hold of an object that is there.
func (s *Server) learn(f fact, id ID) {
	d := decoder{rest: f.payload}
	if f.operation == opDropName {
		name := d.name()
		if named, ok := s.names[name]; ok {
			s.unname(named.object, name)
		}
		return
	}
	o := s.objects[id]
	if f.operation == opPutName {
		name := d.name()
		named, taken := s.names[name]
		if taken && named.object == o {
			return
		}
		if taken {
			s.unname(named.object, name)
		}
		if o != nil && s.tableRoom(nameBytes(name)) == nil {
			s.name(o, name)
		} else if o == nil {
			s.absent[id] = append(s.absent[id], name)
		}
		return
	}
	if o == nil {
		return
	}
	d.id()
	switch f.operation {
	case opMark:
		o.set(d.u8(), d.flag())
	case opSeal:
		s.settle(o)
	case opDelete:
		s.remove(o, false, Deleted)
	case opSetMetadata:
		metadata := d.blob()
		if checkMetadata(metadata, s.options.MaxMetadata) == nil && s.tableRoom(int64(len(metadata))) == nil {
			o.setMetadata(s, metadata)
		}
	}
}

// recall has what is known hold of an object that a client has told of.
func (s *Server) recall(o *object) {
	for _, what := range []uint8{markPinned, markEvictable} {
		if f, ok := s.book.facts[markKey(o.id, what)]; ok {
			s.learn(f, o.id)
		}
	}
	for _, operation := range []uint16{opSeal, opSetMetadata} {
		if f, ok := s.book.of(operation, o.id); ok {
			s.learn(f, o.id)
		}
	}
	for _, name := range s.absent[o.id] {
		if f := s.book.facts["name "+name]; f.operation == opPutName {
			if _, id, _ := subjectOf(f.operation, f.payload); id == o.id {
				s.learn(f, id)
			}
		}
	}
	delete(s.absent, o.id)
}
