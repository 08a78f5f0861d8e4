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
// It begins with its id, 8 bytes that say where its entries begin, and 8 that say until when clients are expected to
// tell a new server what they have. An entry is a frame as of the socket: a request, whose number says when it was
// answered. The newest one of a subject holds.
type book struct {
	id            ID
	number        int         // -1 where there is none
	shared        *descriptor // for reading only
	isThere       func(ID) bool
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
	rewriteFrom = 64 << 10
	bookHeader  = 16 + 8 + 8
	learnAtOnce = 10_000 // facts, before others' requests are answered
)

// newBook returns a book without a file. isThere reports whether there is an object.
func newBook(isThere func(ID) bool) *book {
	return &book{id: newID(), number: -1, isThere: isThere, facts: map[string]fact{}, read: map[ID]struct{}{}}
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
	if _, err = unix.Pwrite(number, append(b.id[:], make([]byte, bookHeader-len(b.id))...), 0); err == nil { // it is read also where nothing follows
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
	if b.expectsAtMost == 0 {
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
	b.forgetOrphans()
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
	b.rewriteAt = b.end + max(int64(len(e.bytes)), rewriteFrom)
	if first := roundUp(1, pageSize); start > 2*first { // gives the memory back
		_ = unix.Fallocate(b.number, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, first, start/pageSize*pageSize-first)
	}
	return nil
}

// forgetOrphans leaves out the oldest of the facts that are of no object there is, if there are too many and clients
// have told of what they have.
func (b *book) forgetOrphans() {
	if b.expects > clock() {
		return
	}
	type orphan struct {
		key  string
		when uint64
	}
	var list []orphan
	for key, f := range b.facts {
		if _, id, _ := subjectOf(f.operation, f.payload); id == (ID{}) || !b.isThere(id) {
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
