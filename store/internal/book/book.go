// Package book is a client's book: a file of what a store's server has told its client, from which the next server
// learns what it cannot know by itself. It knows neither clients nor servers.
package book

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
)

// Book has what clients asked of objects after they were made: names, marks, seals, metadata and deletions. It is a
// file without a name, of which each client has a descriptor, so that it lasts as long as anybody who can tell
// another server of an object. Only the server writes to it, and clients do not read it.
//
// It begins with its id, 8 bytes that say where its entries begin, and 8 that say until when clients are expected to
// tell a new server what they have. An entry is a frame as of the socket: a request, whose number says when it was
// answered. The newest one of a subject holds.
//
// The facts of objects that are there are all kept. Of the others the oldest go where there are too many: see isFull.
type Book struct {
	File
	ID            protocol.ID
	isThere       func(protocol.ID) bool
	Facts         map[string]*Entry
	Objects       map[protocol.ID]*subject
	gone          chain.Chain[subject] // that are not there, those first that went first
	dropped       chain.Chain[Entry]   // names that no object has
	Orphans       int                  // facts of gone objects and dropped names
	MostOrphans   int
	Limit         int64  // of the bytes of all entries that hold
	last          uint64 // when the last fact was new
	expectsAtMost uint64
	Expects       uint64                   // until when clients may tell of what they have
	Keeps         uint64                   // until when no fact is forgotten because there are many
	Learning      int                      // requests that learn of other servers' books
	Read          map[protocol.ID]struct{} // these books
	outdone       map[string]*Entry        // see outdoes
	since         uint64                   // when the server began
}

// Fact is a request that was answered.
type Fact struct {
	When      uint64
	Operation uint16
	Payload   []byte
}

// Entry is the newest fact of its subject.
type Entry struct {
	Fact
	Key              string
	Object           *subject // nil of a dropped name
	with             *Entry   // that is written as a part of it, so that both hold or neither
	at               int64    // in the file, -1 before it is written
	inFile, ofObject chain.Neighbours[Entry]
}

// Told is a fact of another server's book, without one where it was none.
type Told struct {
	*Entry
	id protocol.ID
}

// subject is an object that there are facts of.
type subject struct {
	ID     protocol.ID
	Facts  chain.Chain[Entry]
	There  bool
	since  uint64 // when it went
	ofGone chain.Neighbours[subject]
}

// MostOrphans is how many facts are kept of objects that are not there: a client may still tell of such an object.
const MostOrphans = 1 << 16

// New returns a book without a file. isThere reports whether there is an object.
func New(limit int64, isThere func(protocol.ID) bool) *Book {
	return &Book{
		File: newFile(), ID: protocol.NewID(), isThere: isThere,
		Facts: map[string]*Entry{}, Objects: map[protocol.ID]*subject{}, dropped: newFacts(),
		gone:        chain.Chain[subject]{Neighbours: func(o *subject) *chain.Neighbours[subject] { return &o.ofGone }},
		MostOrphans: MostOrphans, Limit: limit, Read: map[protocol.ID]struct{}{},
		outdone: map[string]*Entry{}, since: Clock(),
	}
}

func newFacts() chain.Chain[Entry] {
	return chain.Chain[Entry]{Neighbours: func(k *Entry) *chain.Neighbours[Entry] { return &k.ofObject }}
}

func (b *Book) Open() error { return b.File.open(b.ID) }

// ToldWithin is how long clients may take that have heard of a new server, and ToldAgain how long after the last of
// them others may.
const (
	ToldWithin = time.Second
	ToldAgain  = 250 * time.Millisecond
	toldAtMost = 30 * time.Second // of all
)

// Clock is one that all servers and clients of a machine share.
func Clock() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return uint64(t.Nano())
}

// Expect has clients wait for what others may tell of.
func (b *Book) Expect(within time.Duration) {
	b.ExpectMore(within)
	now := Clock()
	if b.expectsAtMost == 0 {
		b.expectsAtMost = now + uint64(toldAtMost)
	}
	until := min(now+uint64(within), b.expectsAtMost)
	if b.Number >= 0 && b.Expects < now+uint64(within)/2 && until > b.Expects {
		b.Expects = until
		_ = b.writeAll(binary.LittleEndian.AppendUint64(nil, until), expectsAt)
	}
}

// ExpectMore keeps facts for as long, though no client waits for them.
func (b *Book) ExpectMore(within time.Duration) { b.Keeps = max(b.Keeps, Clock()+uint64(within)) }

// IsExpecting reports, by a book's descriptor, whether its server may still be told of objects.
func IsExpecting(number int) bool {
	var until [8]byte
	n, err := unix.Pread(number, until[:], expectsAt)
	return err == nil && n == len(until) && binary.LittleEndian.Uint64(until[:]) > Clock()
}

// Now returns when a new fact is, after all that are known.
func (b *Book) Now() uint64 {
	b.last = max(b.last+1, Clock())
	return b.last
}

func (f *Fact) Encode(e *protocol.Encoder) {
	at := e.Begin(f.Operation, 0, f.When)
	e.Bytes = append(e.Bytes, f.Payload...)
	e.End(at)
}

// Bytes is how long an entry is in the file.
func (f *Fact) Bytes() int64 { return int64(protocol.HeaderBytes + len(f.Payload)) }

// Note writes a new fact down, at once.
func (b *Book) Note(operation uint16, payload []byte) {
	if b.new(Fact{0, operation, slices.Clone(payload)}) != nil {
		_ = b.Flush() // what is still pending then, the next call writes
		b.Tidy()
	}
}

// NoteBoth is Note of two facts. Whoever reads the book finds both, or neither.
func (b *Book) NoteBoth(first, second Fact) {
	//mutate:replace a server that ends may have written one of two facts down
	//mutate:with .with = b.new(second) => .at += 0 * b.new(second).at
	b.new(first).with = b.new(second)
	_ = b.Flush()
	b.Tidy()
}

// new keeps a fact of now; nil for what is none.
func (b *Book) new(f Fact) *Entry {
	key, id, ok := SubjectOf(f.Operation, f.Payload)
	if !ok {
		return nil
	}
	f.When = b.Now()
	k := &Entry{Fact: f, Key: key}
	b.enter(k, id)
	return k
}

// Learn takes another server's facts that are newer than those here, and before some time. They are written.
func (b *Book) Learn(list []Told, before uint64) (newer []*Entry) {
	for _, f := range list {
		//mutate:replace an entry of a time that has not come holds
		//mutate:with f.When >= before => false
		if f.Entry == nil || f.When >= before {
			continue
		}
		//mutate:replace an older entry of a book holds
		//mutate:with f.When > had.When => f.When != 0
		if had := b.Facts[f.Key]; had == nil || f.When > had.When {
			if had != nil {
				b.outdoes(f.Entry, had)
			}
			b.enter(f.Entry, f.id)
			newer = append(newer, f.Entry)
		} else {
			b.outdoes(had, f.Entry)
		}
	}
	_ = b.Flush()
	b.Tidy()
	return newer
}

// ReadsAtMost is how many bytes of another server's book are read. There the facts that hold have at most twice the
// limit, and the file has less than three times as many bytes and some more.
func (b *Book) ReadsAtMost() int64 { return 8*min(b.Limit, 1<<56) + 16*SpareBytes }

// enter keeps a fact in place of the one that held of its subject. It is pending then.
func (b *Book) enter(k *Entry, id protocol.ID) {
	if had := b.Facts[k.Key]; had != nil {
		b.forget(had)
	}
	b.Facts[k.Key] = k
	b.add(k)
	if id == (protocol.ID{}) {
		b.Drop(k)
		return
	}
	o := b.Objects[id]
	if o == nil {
		o = &subject{ID: id, Facts: newFacts(), There: b.isThere(id)}
		b.Objects[id] = o
		if !o.There {
			o.since = b.last
			b.gone.Push(o)
		}
	}
	k.Object = o
	o.Facts.Push(k)
	if !o.There {
		b.Orphans++
	}
}

// Drop counts a fact as one of a name that no object has.
func (b *Book) Drop(k *Entry) {
	k.Object = nil
	b.dropped.Push(k)
	b.Orphans++
}

// forget removes a fact. Older ones of the same subject do not come back: in the file they are
// before it, and readers begin behind all of them or before it.
func (b *Book) forget(k *Entry) {
	delete(b.Facts, k.Key)
	b.remove(k)
	b.Leave(k)
}

// Leave takes a fact away from its object.
func (b *Book) Leave(k *Entry) {
	o := k.Object
	if o == nil {
		b.dropped.Remove(k)
		b.Orphans--
		return
	}
	o.Facts.Remove(k)
	if !o.There {
		b.Orphans--
	}
	if o.Facts.Count == 0 {
		delete(b.Objects, o.ID)
		if !o.There {
			b.gone.Remove(o)
		}
	}
}

// Came is told of an object that is there.
func (b *Book) Came(id protocol.ID) {
	if o := b.Objects[id]; o != nil && !o.There {
		b.gone.Remove(o)
		o.There = true
		b.Orphans -= o.Facts.Count
	}
}

// Went is told of an object that is there no more.
func (b *Book) Went(id protocol.ID) {
	if o := b.Objects[id]; o != nil && o.There {
		o.There, o.since = false, b.last
		b.gone.Push(o)
		b.Orphans += o.Facts.Count
	}
}

// isFull reports whether a fact has to be forgotten: more than MostOrphans are of no object there is, or all together
// have more bytes than the limit. While clients may still tell of objects, the limit is twice that, for any number.
func (b *Book) isFull() bool {
	if b.Orphans == 0 || b.Orphans <= b.MostOrphans && b.File.Bytes <= b.Limit {
		return false
	}
	//mutate:never facts are forgotten while clients may still tell of their objects
	if b.Learning > 0 || b.Keeps > Clock() {
		return b.File.Bytes > 2*b.Limit
	}
	return true
}

// forgetOldest forgets the oldest fact that is of no object there is.
func (b *Book) forgetOldest() {
	name, object := b.dropped.Oldest, b.gone.Oldest
	if object == nil || name != nil && name.When < object.since {
		b.forget(name)
		return
	}
	facts := &object.Facts
	for range 2 { // what takes its names from it goes after these
		if k := facts.Oldest; k.Operation == protocol.OpDelete || k.Operation == protocol.OpDropName {
			facts.Renew()
		}
	}
	b.forget(facts.Oldest)
}

// Tidy forgets what is too much and makes the file shorter, a little at a time. It reports whether there is more to do.
func (b *Book) Tidy() (more bool) {
	for range forgetAtOnce {
		if !b.isFull() {
			return b.clean()
		}
		b.forgetOldest()
	}
	b.clean()
	return true
}
