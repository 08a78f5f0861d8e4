package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
)

// book has what clients asked of objects after they were made: names, marks, seals, metadata and deletions. It is a
// file without a name, of which each client has a descriptor, so that it lasts as long as anybody who can tell
// another server of an object. Only the server writes to it, and clients do not read it.
//
// It has an id, 8 bytes that say where it begins, 8 that say until when clients are still expected to tell a new server
// what they have, and from there on frames as of the socket: requests, whose number
// says when they were answered. The last one of a subject holds.
type book struct {
	id            ID
	number        int         // -1 where there is none
	shared        *descriptor // for reading only
	facts         map[string]fact
	last          uint64 // when the last fact was new
	start         int64
	end           int64
	expectsAtMost uint64
	expects       uint64          // until when clients may tell of what they have
	rewriteAt     int64           // the end at which what does not hold any more is left out
	broken        bool            // something could not be written
	read          map[ID]struct{} // other servers' books
}

// fact is a request that was answered.
type fact struct {
	when      uint64
	operation uint16
	payload   []byte
}

const (
	// mostOrphans is how many facts are kept that are of no object there is: somebody may still tell of one.
	mostOrphans = 1 << 16
	rewriteFrom = 2 * mostPacket
	bookHeader  = 16 + 8 + 8
	learnAtOnce = 10_000 // facts, before others' requests are answered
)

func newBook() *book {
	return &book{id: newID(), number: -1, facts: map[string]fact{}, read: map[ID]struct{}{}}
}

// open makes the file.
func (b *book) open() error {
	number, err := unix.MemfdCreate("hamr-book", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	readable, err := host.ReadOnlyDescriptor(number)
	if err != nil {
		_ = unix.Close(number)
		return err
	}
	b.number, b.shared = number, newDescriptor(readable)
	record(number)
	if _, err = unix.Pwrite(number, b.id[:], 0); err == nil {
		err = b.rewrite()
	}
	return err
}

func (b *book) close() {
	if b.number >= 0 {
		_ = closeRecorded(b.number)
		b.shared.release()
	}
	b.number, b.shared = -1, nil
}

// toldWithin is how long clients may take that have heard of a new server, and toldAgain how long after the last of
// them others may.
const (
	toldWithin = time.Second
	toldAgain  = 250 * time.Millisecond
	toldAtMost = 30 * time.Second // of all
)

// clock is one that all servers and clients of a machine share.
func clock() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return uint64(t.Nano())
}

// expect has clients wait for what others may tell of.
func (b *book) expect(within time.Duration) {
	now := clock()
	if len(b.read) == 0 {
		b.expectsAtMost = now + uint64(toldAtMost)
	}
	until := min(now+uint64(within), b.expectsAtMost)
	if b.number >= 0 && b.expects < now+uint64(within)/2 && until > b.expects {
		b.expects = until
		_, _ = unix.Pwrite(b.number, binary.LittleEndian.AppendUint64(nil, until), int64(len(b.id))+8)
	}
}

// isExpecting reports, by a book's descriptor, whether its server may still be told of objects.
func isExpecting(number int) bool {
	var until [8]byte
	n, err := unix.Pread(number, until[:], int64(len(ID{}))+8)
	return err == nil && n == len(until) && binary.LittleEndian.Uint64(until[:]) > clock()
}

// now returns when a new fact is, after all that are known.
func (b *book) now() uint64 {
	b.last = max(b.last+1, clock())
	return b.last
}

func (f fact) encode(e *encoder) {
	at := e.begin(f.operation, 0, f.when)
	e.bytes = append(e.bytes, f.payload...)
	e.end(at)
}

// note writes new facts down, at once.
func (b *book) note(operation uint16, payloads ...[]byte) {
	var e encoder
	for _, payload := range payloads {
		if key, _, ok := subjectOf(operation, payload); ok {
			f := fact{b.now(), operation, slices.Clone(payload)}
			b.facts[key] = f
			f.encode(&e)
		}
	}
	if b.number < 0 || len(e.bytes) == 0 {
		return
	}
	if b.broken || b.end+int64(len(e.bytes)) > b.rewriteAt {
		b.broken = b.rewrite() != nil
		return
	}
	n, err := unix.Pwrite(b.number, e.bytes, b.end)
	if b.broken = err != nil || n < len(e.bytes); !b.broken {
		b.end += int64(n)
	}
}

// rewrite writes all facts behind the others, and then has the book begin there: whoever reads it in between finds
// the same.
func (b *book) rewrite() error {
	var e encoder
	for _, f := range b.facts {
		f.encode(&e)
	}
	start := max(b.end, bookHeader)
	for rest, at := e.bytes, start; len(rest) > 0; {
		n, err := unix.Pwrite(b.number, rest, at)
		if err != nil {
			return err
		}
		rest, at = rest[n:], at+int64(n)
	}
	began := binary.LittleEndian.AppendUint64(nil, uint64(start))
	if _, err := unix.Pwrite(b.number, began, int64(len(b.id))); err != nil {
		return err
	}
	b.start, b.end = start, start+int64(len(e.bytes))
	b.rewriteAt = b.end + int64(len(e.bytes)) + rewriteFrom
	if first := roundUp(1, pageSize); start > 2*first { // gives the memory back
		_ = unix.Fallocate(b.number, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, first, start/pageSize*pageSize-first)
	}
	return nil
}

// forgetOrphans leaves out the oldest of the facts that are of no object there is, if there are too many.
func (b *book) forgetOrphans(isThere func(ID) bool) {
	type orphan struct {
		key  string
		when uint64
	}
	var list []orphan
	for key, f := range b.facts {
		if _, id, _ := subjectOf(f.operation, f.payload); id == (ID{}) || !isThere(id) {
			list = append(list, orphan{key, f.when})
		}
	}
	slices.SortFunc(list, func(x, y orphan) int { return cmp.Compare(x.when, y.when) })
	for _, o := range list[:max(0, len(list)-mostOrphans)] {
		delete(b.facts, o.key)
	}
}

// subjectOf returns what a fact is about, of which the newest holds, and the object, if it is about one.
func subjectOf(operation uint16, payload []byte) (key string, id ID, ok bool) {
	d := decoder{rest: payload}
	switch operation {
	case opPutName:
		key, id = "name "+d.name(), d.id()
		d.flag()
	case opDropName:
		key = "name " + d.name()
	case opMark:
		id = d.id()
		what := d.u8()
		d.flag()
		if what > markEvictable {
			d.fail("mark %d", what)
		}
		key = markKey(id, what)
	case opSeal:
		id = d.id()
		key = objectKey(opSeal, id)
	case opDelete:
		id = d.id()
		d.flag()
		key = objectKey(opDelete, id)
	case opSetMetadata:
		id = d.id()
		d.blob()
		key = objectKey(opSetMetadata, id)
	default:
		return "", ID{}, false
	}
	return key, id, d.done() == nil
}

// expected returns the object that has a name, where some client may still tell of it.
func (b *book) expected(name string) (id ID, ok bool) {
	if f := b.facts["name "+name]; f.operation == opPutName && b.expects > clock() {
		_, id, ok = subjectOf(f.operation, f.payload)
	}
	return id, ok
}

func markKey(id ID, what uint8) string         { return fmt.Sprintf("%d %s", what, id[:]) }
func objectKey(operation uint16, id ID) string { return fmt.Sprintf("%d %s", 100+operation, id[:]) }
func (b *book) of(operation uint16, id ID) (f fact, ok bool) {
	f, ok = b.facts[objectKey(operation, id)]
	return f, ok
}

// openBook returns which book a descriptor is of, and where it begins.
func openBook(number int) (id ID, at int64, err error) {
	if _, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0); err != nil {
		return id, 0, &ArgumentError{"book", "a descriptor of something else", "what a server has sent"}
	}
	var head [bookHeader]byte
	if n, err := unix.Pread(number, head[:], 0); err != nil || n < len(head) {
		return id, 0, &ArgumentError{"book", fmt.Sprintf("a file of %d bytes", n), "what a server has sent"}
	}
	return ID(head[:len(id)]), int64(binary.LittleEndian.Uint64(head[len(id):])), nil
}

// readBook returns the facts of another server's book, of most bytes of it.
func readBook(number int, at, most int64) (list []fact, err error) {
	buffer := make([]byte, 0, 4*mostPacket)
	for read := int64(0); at >= 0 && read < most; {
		n, err := unix.Pread(number, buffer[len(buffer):cap(buffer)], at)
		if err != nil {
			return nil, &SystemError{"the book: " + err.Error()}
		}
		at, read = at+int64(n), read+int64(n)
		rest := buffer[:len(buffer)+n]
		for {
			f, after, err := nextFrame(rest)
			if err != nil { // of the last one the writer may have written a part
				break
			}
			list = append(list, fact{f.request, f.operation, slices.Clone(f.payload)})
			rest = after
		}
		if n == 0 || len(rest) == cap(buffer) {
			break
		}
		buffer = append(buffer[:0], rest...)
	}
	return list, nil
}

// note writes down what was asked of an object.
func (s *Server) note(operation uint16, payloads ...[]byte) {
	if s.closed { // what ends with the server is told of to the next one
		return
	}
	if s.book.number >= 0 && s.book.end+mostPacket > s.book.rewriteAt {
		s.book.forgetOrphans(func(id ID) bool { return s.objects[id] != nil })
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
	if _, known := s.book.read[book]; known || err != nil {
		return err
	}
	var list []fact
	s.pause(func() { list, err = readBook(c.descriptors[0], at, s.options.TableLimit) })
	if err != nil {
		return err
	}
	latest := s.book.now()
	newer := map[string]ID{}
	for i, f := range list {
		if i%learnAtOnce == learnAtOnce-1 {
			s.pause(func() {})
		}
		key, id, ok := subjectOf(f.operation, f.payload)
		if ok && f.when < latest && f.when > s.book.facts[key].when {
			s.book.facts[key] = f
			newer[key] = id
		}
	}
	for key, id := range newer {
		s.learn(s.book.facts[key], id)
	}
	s.book.forgetOrphans(func(id ID) bool { return s.objects[id] != nil })
	if s.book.number >= 0 {
		s.book.broken = s.book.rewrite() != nil
	}
	if s.book.broken {
		return &SystemError{"what another server knew could not be written down"}
	}
	if len(s.book.read) == 0 {
		s.book.expect(toldWithin)
	}
	s.book.read[book] = struct{}{}
	crash("server-learned")
	return nil
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
