// Package objects is the table of a store's objects, their names, their leases and the sessions that have them. It
// knows no connection.
package objects

import (
	"sort"
	"sync"

	"hamr/store/internal/book"
	"hamr/store/internal/chain"
	"hamr/store/internal/memory"
	"hamr/store/internal/protocol"
	"hamr/store/internal/turn"
	"hamr/store/internal/watch"
)

// Object is what the server knows of an object. The server's lock guards it.
type Object struct {
	protocol.Told
	memory.Tenant          // its id, and where its bytes are
	Owner         *Session // that may still seal it
	Bound         *Session // with which it ends
	Leases        int64
	Deleted       bool
	Learned       bool   // a client of an earlier server has told of it
	sequence      uint64 // counts objects as they are made
	names         chain.Chain[Name]
	named         int64 // bytes that are reckoned for the names
}

// Name is a name that an object has.
type Name struct {
	Object   *Object
	name     string
	ofObject chain.Neighbours[Name]
}

// Lease is of an object, by one session.
type Lease struct {
	Object *Object
	times  int64
}

// Session is a client that has leases.
type Session struct {
	Memory   memory.Client
	Watch    watch.Client
	Leases   map[protocol.ID]Lease // of deleted objects, too
	process  int
	unsealed map[*Object]struct{} // what it owns
	bound    map[*Object]struct{} // what ends with it, sealed or not
	ended    bool
}

// objectBytes is what is reckoned for the server's own knowledge of an object, beside metadata and names.
const objectBytes = 512

// TableBytes is what is reckoned for all that the server knows of an object.
func (o *Object) TableBytes() int64 {
	return int64(objectBytes+len(o.Layout)+len(o.Metadata)) + o.named
}

// nameBytes is what is reckoned for a name.
func nameBytes(name string) int64 { return int64(2*len(name) + 64) }

// update settles whether the object keeps its unit from being spilled and evicted.
func (o *Object) update() {
	if o.Unit == nil {
		return
	}
	//mutate:replace a lease does not keep an object from eviction
	//mutate:with o.Leases > 0 => false
	blocks := o.Leases > 0 || (!o.Deleted && (!o.Sealed || o.Pinned || (!o.Evicts && !o.Unit.Spills())))
	o.Settle(blocks, !o.Deleted && !o.Evicts)
}

// Own makes a session the owner of an object that is not sealed.
func (s *Session) Own(o *Object) {
	o.Owner = s
	s.unsealed[o] = struct{}{}
}

// Bind ends an object with the session.
func (s *Session) Bind(o *Object) {
	if o.Bound == nil {
		o.Bound = s
		s.bound[o] = struct{}{}
	}
}

// Unbind has an object stay that would end with the session.
func (s *Session) Unbind(o *Object) {
	if o.Bound == s {
		delete(s.bound, o)
		o.Bound = nil
	}
}

// Mark sets one of an object's marks.
func (o *Object) Mark(what uint8, on bool) {
	if what == protocol.MarkPinned {
		o.Pinned = on
	} else {
		o.Evicts = on
	}
	o.update()
}

// HasName reports whether the object has any name.
func (o *Object) HasName() bool { return o.names.Count > 0 }

// EachName calls f with the object's names, from the one that it has had for the longest time on, until f returns
// false.
func (o *Object) EachName(f func(name string) bool) {
	for n := o.names.Oldest; n != nil && f(n.name); n = n.ofObject.Newer {
	}
}

// Table is all objects. The lock guards it.
type Table struct {
	Memory  *memory.Memory
	Watch   *watch.Watch
	Book    *book.Book
	Objects map[protocol.ID]*Object
	Names   map[string]*Name // some of them of objects that are gone
	// Closed says that nothing new begins, Quiet that what ends now ends with the server: the next server is told of it.
	Closed, Quiet bool

	lock        *turn.Lock
	limit       int64 // of bytes
	maxMetadata int
	sessions    map[*Session]struct{}
	order       []listed
	holes       int // entries of order whose objects went
	sequence    uint64
	unswept     []chain.Chain[Name] // of objects that went, which are in names still
	sweeping    bool
	sweeps      sync.WaitGroup // goroutines
	there       int64          // names that objects have
	bytes       int64
	leases      int64
	evicted     int64
}

// listed is an entry of the list of all objects; of one that went the object is nil.
type listed struct {
	sequence uint64
	object   *Object
}

// Find returns an object that is there for everybody.
func (t *Table) Find(id protocol.ID) (*Object, error) {
	if o := t.Objects[id]; o != nil && !o.Deleted {
		return o, nil
	}
	return nil, &protocol.NotFoundError{ID: id}
}

// Add makes an object one that is found. It has a place in a unit, where there is one.
func (t *Table) Add(o *Object, u *memory.Unit, place int32) {
	if u != nil {
		u.Put(&o.Tenant, place)
		o.update()
	}
	t.sequence++
	o.sequence = t.sequence
	t.Objects[o.ID] = o
	t.order = append(t.order, listed{t.sequence, o})
	t.bytes += o.TableBytes()
}

// Room refuses to know of more bytes than the limit.
func (t *Table) Room(bytes int64) error {
	if t.bytes+bytes > t.limit {
		return &protocol.FullError{Memory: "table", Needed: bytes, Limit: t.limit, Used: t.bytes}
	}
	return nil
}

// Settled reports whether an object is there for everybody to get.
func (t *Table) Settled(id protocol.ID) bool {
	o := t.Objects[id]
	return o != nil && o.Sealed
}

// Seal notes that an object is sealed.
func (t *Table) Seal(o *Object) {
	if o.Sealed {
		return
	}
	if o.Owner != nil {
		delete(o.Owner.unsealed, o)
	}
	o.Sealed, o.Owner = true, nil
	o.update()
	t.Watch.Tell(protocol.Event{Kind: protocol.Sealed, ID: o.ID})
	t.Watch.Ready(o.ID, 1)
}

// SetMetadata replaces the metadata of an object, unless it is too much.
func (t *Table) SetMetadata(o *Object, metadata []byte) error {
	if err := protocol.MetadataWithin(metadata, t.maxMetadata); err != nil {
		return err
	}
	more := int64(len(metadata) - len(o.Metadata))
	if err := t.Room(more); err != nil {
		return err
	}
	t.bytes += more
	o.Metadata = append([]byte(nil), metadata...)
	return nil
}

// after returns where the objects begin in the list that were made after the one of a sequence.
func (t *Table) after(sequence uint64) int {
	return sort.Search(len(t.order), func(i int) bool { return t.order[i].sequence > sequence })
}

// mostLooked is at how many entries a list looks at most, so that it does not keep other requests waiting.
const mostLooked = 10_000

// List calls f with the objects that were made after the one of a sequence, until f has listed as many as may be, or
// says that an object has no room in the list. next is the sequence to go on after, 0 where there are no more objects.
func (t *Table) List(after uint64, most uint32, f func(*Object) (listed, full bool)) (next uint64) {
	at, n := t.after(after), uint32(0)
	for looked := 0; at < len(t.order) && n < most && looked < mostLooked; at++ {
		looked++
		after = t.order[at].sequence
		if o := t.order[at].object; o != nil {
			listed, full := f(o)
			if full {
				return after - 1
			}
			if listed {
				n++
			}
		}
	}
	if at < len(t.order) {
		return after
	}
	return 0
}

// forgetOrder takes an object out of the list of all. The list is made shorter when half of it is of objects that went.
func (t *Table) forgetOrder(o *Object) {
	t.order[t.after(o.sequence-1)].object = nil
	t.holes++
	if t.holes > 64 && t.holes > len(t.order)/2 {
		kept := t.order[:0]
		for _, entry := range t.order {
			if entry.object != nil {
				kept = append(kept, entry)
			}
		}
		clear(t.order[len(kept):])
		t.order, t.holes = kept, 0
	}
}
