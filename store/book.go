package store

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
)

// book has what clients asked of objects after they were made: names, marks, seals, metadata and deletions. It is a
// file without a name, of which each client has a descriptor, so that it lasts as long as anybody who can tell
// another server of an object. Only the server writes to it, and clients do not read it.
//
// It begins with its id, 8 bytes that say where its entries begin, and 8 that say until when clients are expected to
// tell a new server what they have. An entry is a frame as of the socket: a request, whose number says when it was
// answered. The newest one of a subject holds.
//
// The facts of objects that are there are all kept. Of the others the oldest go where there are too many: see isFull.
type book struct {
	bookFile
	id            ID
	isThere       func(ID) bool
	facts         map[string]*kept
	objects       map[ID]*subject
	gone          chain[subject] // that are not there, those first that went first
	dropped       chain[kept]    // names that no object has
	orphans       int            // facts of gone objects and dropped names
	mostOrphans   int
	limit         int64  // of the bytes of all entries that hold
	last          uint64 // when the last fact was new
	expectsAtMost uint64
	expects       uint64          // until when clients may tell of what they have
	keeps         uint64          // until when no fact is forgotten because there are many
	learning      int             // requests that learn of other servers' books
	read          map[ID]struct{} // these books
}

// fact is a request that was answered.
type fact struct {
	when      uint64
	operation uint16
	payload   []byte
}

// kept is the newest fact of its subject.
type kept struct {
	fact
	key              string
	object           *subject // nil of a dropped name
	at               int64    // in the file, -1 before it is written
	inFile, ofObject neighbours[kept]
}

// told is a fact of another server's book, without one where it was none.
type told struct {
	*kept
	id ID
}

// subject is an object that there are facts of.
type subject struct {
	id     ID
	facts  chain[kept]
	there  bool
	since  uint64 // when it went
	ofGone neighbours[subject]
}

// mostOrphans is how many facts are kept that are of no object there is: somebody may still tell of one.
const mostOrphans = 1 << 16

// newBook returns a book without a file. isThere reports whether there is an object.
func newBook(limit int64, isThere func(ID) bool) *book {
	return &book{
		bookFile: newBookFile(), id: protocol.NewID(), isThere: isThere, facts: map[string]*kept{}, objects: map[ID]*subject{},
		gone: chain[subject]{neighbours: func(o *subject) *neighbours[subject] { return &o.ofGone }}, dropped: newFacts(),
		mostOrphans: mostOrphans, limit: limit, read: map[ID]struct{}{},
	}
}

func newFacts() chain[kept] {
	return chain[kept]{neighbours: func(k *kept) *neighbours[kept] { return &k.ofObject }}
}

func (b *book) open() error { return b.bookFile.open(b.id) }

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
	b.expectMore(within)
	now := clock()
	if b.expectsAtMost == 0 {
		b.expectsAtMost = now + uint64(toldAtMost)
	}
	until := min(now+uint64(within), b.expectsAtMost)
	if b.number >= 0 && b.expects < now+uint64(within)/2 && until > b.expects {
		b.expects = until
		_ = b.writeAll(binary.LittleEndian.AppendUint64(nil, until), expectsAt)
	}
}

// expectMore has facts be kept for as long, though nobody waits for them.
func (b *book) expectMore(within time.Duration) { b.keeps = max(b.keeps, clock()+uint64(within)) }

// isExpecting reports, by a book's descriptor, whether its server may still be told of objects.
func isExpecting(number int) bool {
	var until [8]byte
	n, err := unix.Pread(number, until[:], expectsAt)
	return err == nil && n == len(until) && binary.LittleEndian.Uint64(until[:]) > clock()
}

// now returns when a new fact is, after all that are known.
func (b *book) now() uint64 {
	b.last = max(b.last+1, clock())
	return b.last
}

func (f *fact) encode(e *protocol.Encoder) {
	at := e.Begin(f.operation, 0, f.when)
	e.Bytes = append(e.Bytes, f.payload...)
	e.End(at)
}

// bytes is how long an entry is in the file.
func (f *fact) bytes() int64 { return int64(protocol.HeaderBytes + len(f.payload)) }

// note writes a new fact down, at once.
func (b *book) note(operation uint16, payload []byte) {
	key, id, ok := subjectOf(operation, payload)
	if !ok {
		return
	}
	b.enter(&kept{fact: fact{b.now(), operation, slices.Clone(payload)}, key: key}, id)
	_ = b.flush() // what is still pending then, the next call writes
	b.tidy()
}

// learn takes another server's facts that are newer than those here, and before some time. They are written.
func (b *book) learn(list []told, before uint64) (newer []*kept) {
	for _, f := range list {
		//mutate:replace an entry of a time that has not come holds
		//mutate:with f.when >= before => false
		if f.kept == nil || f.when >= before {
			continue
		}
		//mutate:replace an older entry of a book holds
		//mutate:with f.when > had.when => f.when != 0
		if had := b.facts[f.key]; had == nil || f.when > had.when {
			b.enter(f.kept, f.id)
			newer = append(newer, f.kept)
		}
	}
	_ = b.flush()
	b.tidy()
	return newer
}

// readsAtMost is how many bytes of another server's book are read. The facts that hold have at most twice the limit there,
// and its file less than three times as many bytes and some more.
func (b *book) readsAtMost() int64 { return 8*min(b.limit, 1<<56) + 16*spareBytes }

// enter keeps a fact in place of the one that held of its subject. It is pending then.
func (b *book) enter(k *kept, id ID) {
	if had := b.facts[k.key]; had != nil {
		b.forget(had)
	}
	b.facts[k.key] = k
	b.add(k)
	if id == (ID{}) {
		b.drop(k)
		return
	}
	o := b.objects[id]
	if o == nil {
		o = &subject{id: id, facts: newFacts(), there: b.isThere(id)}
		b.objects[id] = o
		if !o.there {
			o.since = b.last
			b.gone.push(o)
		}
	}
	k.object = o
	o.facts.push(k)
	if !o.there {
		b.orphans++
	}
}

// drop counts a fact as one of a name that no object has.
func (b *book) drop(k *kept) {
	k.object = nil
	b.dropped.push(k)
	b.orphans++
}

// forget has a fact not be known any more. Older ones of the same subject do not come back: in the file they are
// before it, and readers begin behind all of them or before it.
func (b *book) forget(k *kept) {
	delete(b.facts, k.key)
	b.remove(k)
	b.leave(k)
}

// leave has a fact not be its object's any more.
func (b *book) leave(k *kept) {
	o := k.object
	if o == nil {
		b.dropped.remove(k)
		b.orphans--
		return
	}
	o.facts.remove(k)
	if !o.there {
		b.orphans--
	}
	if o.facts.count == 0 {
		delete(b.objects, o.id)
		if !o.there {
			b.gone.remove(o)
		}
	}
}

// came is told of an object that is there.
func (b *book) came(id ID) {
	if o := b.objects[id]; o != nil && !o.there {
		b.gone.remove(o)
		o.there = true
		b.orphans -= o.facts.count
	}
}

// went is told of an object that is there no more.
func (b *book) went(id ID) {
	if o := b.objects[id]; o != nil && o.there {
		o.there, o.since = false, b.last
		b.gone.push(o)
		b.orphans += o.facts.count
	}
}

// isFull reports whether a fact has to be forgotten: more than mostOrphans are of no object there is, or all together have
// more bytes than the limit. While clients may still tell of objects, that is twice the limit, however many they are.
func (b *book) isFull() bool {
	if b.orphans == 0 || b.orphans <= b.mostOrphans && b.bookFile.bytes <= b.limit {
		return false
	}
	//mutate:never facts are forgotten while clients may still tell of their objects
	if b.learning > 0 || b.keeps > clock() {
		return b.bookFile.bytes > 2*b.limit
	}
	return true
}

// forgetOldest forgets the oldest fact that is of no object there is.
func (b *book) forgetOldest() {
	name, object := b.dropped.oldest, b.gone.oldest
	if object == nil || name != nil && name.when < object.since {
		b.forget(name)
		return
	}
	facts := &object.facts
	for range 2 { // what takes its names from it goes after these
		if k := facts.oldest; k.operation == protocol.OpDelete || k.operation == protocol.OpDropName {
			facts.renew()
		}
	}
	b.forget(facts.oldest)
}

// tidy forgets what is too much and makes the file shorter, a little at a time. It reports whether there is more to do.
func (b *book) tidy() (more bool) {
	for range forgetAtOnce {
		if !b.isFull() {
			return b.clean()
		}
		b.forgetOldest()
	}
	b.clean()
	return true
}

// subjectOf returns what a fact is about, of which the newest holds, and the object, if it is about one.
func subjectOf(operation uint16, payload []byte) (key string, id ID, ok bool) {
	d := protocol.Decoder{Rest: payload}
	switch operation {
	case protocol.OpPutName:
		key, id = nameKey(d.Name()), d.ID()
		d.Flag()
	case protocol.OpDropName:
		if all := d; all.Text() == "" { // all names of an object
			id = all.ID()
			return objectKey(protocol.OpDropName, id), id, all.Done() == nil && id != ID{}
		}
		key = nameKey(d.Name())
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
		return "", ID{}, false
	}
	return key, id, d.Done() == nil
}

func nameKey(name string) string       { return "n" + name }
func markKey(id ID, what uint8) string { return string(append([]byte{'m', what}, id[:]...)) }
func objectKey(operation uint16, id ID) string {
	return string(append([]byte{'o', byte(operation)}, id[:]...))
}

func (b *book) of(operation uint16, id ID) (f *kept, ok bool) {
	f, ok = b.facts[objectKey(operation, id)]
	return f, ok
}

// objectOf returns whose a name is by a fact, unless the object was deleted or lost all its names since.
func (b *book) objectOf(f *fact) (id ID, ok bool) {
	if f.operation != protocol.OpPutName {
		return id, false
	}
	if _, id, ok = subjectOf(f.operation, f.payload); !ok {
		return id, false
	}
	for _, operation := range []uint16{protocol.OpDelete, protocol.OpDropName} {
		//mutate:replace a deleted object keeps its names
		//mutate:with later.when > f.when => later.when == 0
		if later, known := b.of(operation, id); known && later.when > f.when {
			return id, false
		}
	}
	return id, true
}

// expected returns the object that has a name, where some client may still tell of it.
func (b *book) expected(name string) (id ID, ok bool) {
	if f := b.facts[nameKey(name)]; f != nil && b.expects > clock() {
		return b.objectOf(&f.fact)
	}
	return id, false
}
