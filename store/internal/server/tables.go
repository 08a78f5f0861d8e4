package server

import (
	"sort"

	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
)

// object is what the server knows of an object. The server's lock guards it.
type object struct {
	protocol.Told
	id       protocol.ID
	sequence uint64   // counts objects as they are made
	Unit     *unit    // nil of one without bytes
	place    int32    // in the unit
	owner    *session // who has not sealed it yet
	bound    *session // with which it goes
	Leases   int64
	deleted  bool
	blocks   bool // is counted in unit.blockers
	keeps    bool // is counted in unit.keepers
	learned  bool // a client of an earlier server has told of it
	names    chain.Chain[named]
	named    int64 // bytes that are reckoned for the names
}

// named is a name that an object has.
type named struct {
	name     string
	object   *object
	ofObject chain.Neighbours[named]
}

type lease struct {
	object *object
	times  int64
}

// session is a connection that has leases.
type session struct {
	process  int
	Leases   map[protocol.ID]lease // of objects that were deleted, too
	unsealed map[*object]struct{}
	bound    map[*object]struct{} // what goes with it, sealed or not
	known    map[*unit]struct{}   // slabs that it has, or may have
	slabs    map[int64][]*unit    // those that it fills, by bytes of a place
	gone     []protocol.ID        // slabs that it is to be told of
	events   *eventQueue
	Waiting  *waiter
	ended    bool
}

func newSession(process int) *session {
	return &session{
		process: process, Leases: map[protocol.ID]lease{}, unsealed: map[*object]struct{}{}, bound: map[*object]struct{}{},
		known: map[*unit]struct{}{}, slabs: map[int64][]*unit{},
	}
}

// objectBytes is what is reckoned for the server's own knowledge of an object, beside metadata
// and names.
const objectBytes = 512

func (o *object) tableBytes() int64 {
	return int64(objectBytes+len(o.Layout)+len(o.Metadata)) + o.named
}

// nameBytes is what is reckoned for a name.
func nameBytes(name string) int64 { return int64(2*len(name) + 64) }

// update settles whether the object keeps its unit from being spilled and evicted.
func (o *object) update() {
	if o.Unit == nil {
		return
	}
	//mutate:replace a lease does not keep an object from eviction
	//mutate:with o.Leases > 0 => false
	blocks := o.Leases > 0 || (!o.deleted && (!o.Sealed || o.Pinned || (!o.Evicts && !o.Unit.domain.spills)))
	count(&o.Unit.blockers, &o.blocks, blocks)
	count(&o.Unit.keepers, &o.keeps, !o.deleted && !o.Evicts)
	o.Unit.list()
}

// count has an object be counted among others, or not.
func count(n *int, was *bool, is bool) {
	if is && !*was {
		*n++
	} else if *was && !is {
		*n--
	}
	*was = is
}

// find returns an object that is there for everybody.
func (s *Server) find(id protocol.ID) (*object, error) {
	if o := s.Objects[id]; o != nil && !o.deleted {
		return o, nil
	}
	return nil, &protocol.NotFoundError{ID: id}
}

// add makes an object one that is found.
func (s *Server) add(o *object) {
	s.sequence++
	o.sequence = s.sequence
	s.Objects[o.id] = o
	s.order = append(s.order, listed{s.sequence, o})
	s.table += o.tableBytes()
}

// put gives an object a place in a unit.
func (u *unit) put(o *object, place int32) {
	o.Unit, o.place = u, place
	u.places[place] = o
	u.objects++
	o.update()
}

// lease gives a session more leases of an object.
func (s *Server) lease(c *session, o *object, times int64) {
	l := c.Leases[o.id]
	if l.object != nil && l.object != o {
		s.release(c, o.id, l.times) // one of the same id that was deleted, and told of again
		l.times = 0
	}
	//mutate:remove leases of a session have no limit
	times = min(times, protocol.MostLeases-l.times)
	c.Leases[o.id] = lease{o, l.times + times}
	o.Leases += times
	s.leases += times
	if o.Unit != nil {
		o.Unit.touch()
	}
	o.update()
}

// release ends n leases. What was deleted goes with the last.
func (s *Server) release(c *session, id protocol.ID, n int64) {
	l := c.Leases[id]
	o := l.object
	if n = min(n, l.times); n <= 0 {
		return
	}
	if l.times == n {
		delete(c.Leases, id)
	} else {
		c.Leases[id] = lease{o, l.times - n}
	}
	o.Leases -= n
	s.leases -= n
	switch {
	case o.Leases > 0:
	case o.deleted:
		s.drop(o)
		return
	case !o.Sealed && o.owner == nil: // its maker has ended with an earlier server
		s.Remove(o, false, protocol.Deleted)
		return
	}
	o.update()
	if o.Unit != nil {
		o.Unit.touch()
	}
}

// Remove deletes an object: nobody finds it any more, and its memory goes with the last lease.
func (s *Server) Remove(o *object, force bool, why protocol.EventKind) {
	if !o.deleted {
		if o.owner != nil {
			delete(o.owner.unsealed, o)
			o.owner = nil
		}
		if o.bound != nil {
			delete(o.bound.bound, o)
			o.bound = nil
		}
		s.table -= o.tableBytes()
		names := o.names
		o.names, o.named, o.deleted = chain.Chain[named]{}, 0, true
		s.forgetOrder(o)
		delete(s.Objects, o.id)
		s.dropNames(names)
		s.Book.Went(o.id)
		if why == protocol.Deleted && (o.Leases > 0 || o.learned || names.Count > 0) { // who has it, or may have it, is not to tell of it
			s.NoteOf(protocol.OpDelete, o.id, force)
		} else if names.Count > 0 {
			//mutate:remove names of what was evicted come back with it
			s.noteDropped(o, "")
		}
		s.tell(protocol.Event{Kind: why, ID: o.id})
		if o.Sealed {
			s.ready(o.id, -1)
		}
	}
	//mutate:always a deleted object's memory goes while it is leased
	if o.Leases == 0 {
		s.drop(o)
		return
	}
	o.update()
	if u := o.Unit; force && u != nil && len(u.places) == 1 && !u.forced {
		u.forced = true
		u.domain.used -= u.size
		u.domain.lingering += u.size
	}
}

// drop takes a deleted object's place away from it.
func (s *Server) drop(o *object) {
	u := o.Unit
	if u == nil {
		return
	}
	count(&u.blockers, &o.blocks, false)
	count(&u.keepers, &o.keeps, false)
	o.Unit = nil
	u.places[o.place] = nil
	u.objects--
	u.free = append(u.free, o.place)
	if u.objects == 0 && !u.Moving && (u.creator == nil || !u.isNewest()) {
		s.free(u)
		return
	}
	u.list()
}

// isNewest reports whether its creator's next object of the size goes there.
func (u *unit) isNewest() bool {
	list := u.creator.slabs[u.each]
	return len(list) > 0 && list[len(list)-1] == u
}

// free lets go of a unit that has no objects.
func (s *Server) free(u *unit) {
	if u.gone {
		return
	}
	u.gone = true
	u.list()
	u.retire()
	u.Descriptor.Release()
	u.Descriptor = nil
	spilled := u.Spilled != nil
	if spilled {
		s.SpilledBytes -= u.size
		u.domain.spilled -= u.size
		u.Spilled.close()
		u.Spilled = nil
	}
	delete(s.units, u.id)
	s.Open--
	switch {
	case u.forced:
		u.domain.lingering -= u.size
	case !spilled:
		u.domain.used -= u.size
	}
	s.wantSpare()
	for c := range u.knownBy {
		c.gone = append(c.gone, u.id)
	}
	if len(u.knownBy) > 0 {
		u.domain.lingering += u.size
		s.lingering[u.id] = u
	}
}

// retire has no new object go to a slab.
func (u *unit) retire() {
	if u.creator == nil {
		return
	}
	list := u.creator.slabs[u.each]
	for i, other := range list {
		if other == u {
			u.creator.slabs[u.each] = append(list[:i:i], list[i+1:]...)
		}
	}
	u.creator = nil
}

// letGo is told by a session that it has a slab no more, and fills it no more.
func (s *Server) letGo(c *session, u *unit) {
	delete(c.known, u)
	delete(u.knownBy, c)
	if u.creator == c {
		u.retire()
	}
	if u.objects == 0 && u.creator == nil && !u.Moving && !u.gone {
		s.free(u)
	}
	if u.gone && len(u.knownBy) == 0 && s.lingering[u.id] == u {
		delete(s.lingering, u.id)
		u.domain.lingering -= u.size
	}
}

// end drops all that a session has.
func (s *Server) end(c *session) {
	if c.ended {
		return
	}
	c.ended = true
	for id, l := range c.Leases {
		s.release(c, id, l.times)
	}
	//mutate:replace an unsealed object of a session that ended is kept
	//mutate:with {c.unsealed, c.bound} => {c.bound}
	//mutate:replace a sealed object of a session that it was bound to is kept
	//mutate:with {c.unsealed, c.bound} => {c.unsealed}
	for _, gone := range []map[*object]struct{}{c.unsealed, c.bound} {
		for o := range gone {
			s.Remove(o, false, protocol.Deleted)
		}
	}
	for _, list := range c.slabs {
		for _, u := range append([]*unit(nil), list...) {
			u.retire()
			u.list()
			if u.objects == 0 && !u.Moving {
				s.free(u)
			}
		}
	}
	for u := range c.known {
		s.letGo(c, u)
	}
	s.unwait(c)
	delete(s.Sessions, c)
	delete(s.watchers, c)
}

// listed is an entry of the list of all objects; of one that went the object is nil.
type listed struct {
	sequence uint64
	object   *object
}

// after returns where the objects begin in the list that were made after the one of a sequence.
func (s *Server) after(sequence uint64) int {
	return sort.Search(len(s.order), func(i int) bool { return s.order[i].sequence > sequence })
}

// forgetOrder takes an object out of the list of all, which is made shorter when half of it is
// of objects that went.
func (s *Server) forgetOrder(o *object) {
	s.order[s.after(o.sequence-1)].object = nil
	s.holes++
	if s.holes > 64 && s.holes > len(s.order)/2 {
		kept := s.order[:0]
		for _, entry := range s.order {
			if entry.object != nil {
				kept = append(kept, entry)
			}
		}
		clear(s.order[len(kept):])
		s.order, s.holes = kept, 0
	}
}
