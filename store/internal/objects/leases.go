package objects

import (
	"hamr/store/internal/book"
	"hamr/store/internal/chain"
	"hamr/store/internal/memory"
	"hamr/store/internal/protocol"
	"hamr/store/internal/turn"
	"hamr/store/internal/watch"
)

// NewSession begins a session of a process.
func (t *Table) NewSession(process int) *Session {
	s := &Session{
		Memory: memory.NewClient(), Leases: map[protocol.ID]Lease{}, process: process,
		unsealed: map[*Object]struct{}{}, bound: map[*Object]struct{}{},
	}
	t.sessions[s] = struct{}{}
	return s
}

// Lease gives a session more leases of an object.
func (t *Table) Lease(s *Session, o *Object, times int64) {
	l := s.Leases[o.ID]
	if l.Object != nil && l.Object != o {
		t.Release(s, o.ID, l.times) // an object of the same id was deleted, and this one was told of again
		l.times = 0
	}
	//mutate:remove leases of a session have no limit
	times = min(times, protocol.MostLeases-l.times)
	s.Leases[o.ID] = Lease{o, l.times + times}
	o.Leases += times
	t.leases += times
	if o.Unit != nil {
		o.Unit.Touch()
	}
	o.update()
}

// Release ends n leases. A deleted object goes with the last.
func (t *Table) Release(s *Session, id protocol.ID, n int64) {
	l := s.Leases[id]
	o := l.Object
	if n = min(n, l.times); n <= 0 {
		return
	}
	if l.times == n {
		delete(s.Leases, id)
	} else {
		s.Leases[id] = Lease{o, l.times - n}
	}
	o.Leases -= n
	t.leases -= n
	switch {
	case o.Leases > 0:
	case o.Deleted:
		t.Memory.Leave(&o.Tenant)
		return
	case !o.Sealed && o.Owner == nil: // its maker has ended with an earlier server
		t.Remove(o, false, protocol.Deleted)
		return
	}
	o.update()
	if o.Unit != nil {
		o.Unit.Touch()
	}
}

// Remove deletes an object: nobody finds it any more, and its memory goes with the last lease.
func (t *Table) Remove(o *Object, force bool, why protocol.EventKind) { t.remove(o, force, why, true) }

func (t *Table) remove(o *Object, force bool, why protocol.EventKind, note bool) {
	if !o.Deleted {
		if o.Owner != nil {
			delete(o.Owner.unsealed, o)
			o.Owner = nil
		}
		if o.Bound != nil {
			o.Bound.Unbind(o)
		}
		t.bytes -= o.TableBytes()
		names := o.names
		o.names, o.named, o.Deleted = chain.Chain[Name]{}, 0, true
		t.forgetOrder(o)
		delete(t.Objects, o.ID)
		t.dropNames(names)
		t.Book.Went(o.ID)
		// Clients that have it, or may have it, must not tell another server of it.
		if !note { // it was
		} else if why == protocol.Deleted && (o.Leases > 0 || o.Learned || names.Count > 0) {
			t.NoteOf(protocol.OpDelete, o.ID, force)
		} else if names.Count > 0 {
			//mutate:remove names of what was evicted come back with it
			t.NoteDropped(o, "")
		}
		t.Watch.Tell(protocol.Event{Kind: why, ID: o.ID})
		if o.Sealed {
			t.Watch.Ready(o.ID, -1)
		}
	}
	//mutate:always a deleted object's memory goes while it is leased
	if o.Leases == 0 {
		t.Memory.Leave(&o.Tenant)
		return
	}
	o.update()
	if force {
		t.Memory.Force(&o.Tenant)
	}
}

// End drops all that a session has.
func (t *Table) End(s *Session) {
	if s.ended {
		return
	}
	s.ended = true
	for id, l := range s.Leases {
		t.Release(s, id, l.times)
	}
	//mutate:replace an unsealed object of a session that ended is kept
	//mutate:with {s.unsealed, s.bound} => {s.bound}
	//mutate:replace a sealed object of a session that it was bound to is kept
	//mutate:with {s.unsealed, s.bound} => {s.unsealed}
	for _, gone := range []map[*Object]struct{}{s.unsealed, s.bound} {
		for o := range gone {
			t.Remove(o, false, protocol.Deleted)
		}
	}
	t.Memory.End(&s.Memory)
	t.Watch.End(&s.Watch)
	delete(t.sessions, s)
}

// Evict deletes an object that is not leased.
func (t *Table) Evict(id protocol.ID) {
	t.evicted++
	t.Remove(t.Objects[id], false, protocol.Evicted)
}

// Tell tells clients of an event.
func (t *Table) Tell(e protocol.Event) { t.Watch.Tell(e) }

// EachSession calls f with the process of each session, and what goes over the units of its leases.
func (t *Table) EachSession(f func(process int, units func(func(*memory.Unit)))) {
	for s := range t.sessions {
		f(s.process, func(f func(*memory.Unit)) {
			for _, l := range s.Leases {
				if u := l.Object.Unit; u != nil {
					f(u)
				}
			}
		})
	}
}

// Figures fills in what is counted of objects and of memory.
func (t *Table) Figures(f *protocol.Statistics) {
	f.Objects, f.Names, f.Leases, f.Sessions = int64(len(t.Objects)), t.there, t.leases, int64(len(t.sessions))
	f.Table, f.TableLimit, f.Evicted = t.bytes, t.limit, t.evicted
	for s := range t.sessions {
		f.Unsealed += int64(len(s.unsealed))
	}
	t.Memory.Figures(f)
}

// New returns a table without objects. It knows at most limit bytes of all, and maxMetadata of each.
func New(limit int64, maxMetadata int, o memory.Options, lock *turn.Lock) *Table {
	t := &Table{
		Watch: watch.New(lock), Objects: map[protocol.ID]*Object{}, Names: map[string]*Name{}, lock: lock,
		limit: limit, maxMetadata: maxMetadata, sessions: map[*Session]struct{}{},
	}
	t.Book = book.New(limit, func(id protocol.ID) bool { return t.Objects[id] != nil })
	t.Memory = memory.New(o, lock, t)
	return t
}
