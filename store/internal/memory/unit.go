// Package memory counts the memory of objects, makes room by eviction and by spilling, and finds places for small
// objects. It knows objects by their ids alone, and sessions by what they have mapped.
package memory

import (
	"hamr/backends"
	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
	"hamr/store/internal/wire"
)

// Unit is memory that is counted, evicted and spilled as a whole: that of one object, or a slab of small ones. The
// server's lock guards it.
type Unit struct {
	ID       protocol.ID
	Size     int64 // bytes, as counted
	Each     int64 // bytes from one place to the next
	domain   *Domain
	filled   int64     // bytes that a file has to hold
	tenants  []*Tenant // by place, nil where a place is free
	free     []int32   // places of a slab
	count    int       // of tenants
	blockers int       // tenants for which it may not leave memory now
	keepers  int       // tenants that may be spilled, but not evicted
	// Writable says that nobody has sealed the memory yet.
	Writable bool
	// creator is the client that has a slab mapped for writing and whose new objects go there.
	creator    *Client
	knownBy    map[*Client]struct{} // clients that have a slab mapped, or may have
	idle       entry                // among what may leave memory
	goes       entry                // among what may be evicted
	gone       bool                 // it gets no tenants any more
	forced     bool                 // counted as lingering
	Descriptor *wire.Descriptor
	Spilled    *spill.File
	Replaced   bool // it was brought back, as other memory than clients may have mapped
	// Moving says that it is being written to or read from a file. The lock is not held meanwhile.
	Moving bool
}

// Tenant is the part of an object that stands for its place in a unit.
type Tenant struct {
	ID     protocol.ID
	Unit   *Unit // nil if the object has no bytes
	place  int32
	blocks bool // is counted in Unit.blockers
	keeps  bool // is counted in Unit.keepers
}

// Domain is memory with a limit of its own: the host's, or that of a device.
type Domain struct {
	device    backends.UUID // zero is the host
	name      string
	limit     int64
	used      int64
	peak      int64
	lingering int64 // of objects whose deletion was forced, and of slabs that are gone and still mapped
	spills    bool
	idle      queue  // what may be evicted or spilled
	goes      queue  // what may be evicted
	inFiles   *queue // what may be evicted of all that is in files, whatever memory it was in
	leaving   int64  // bytes that are being spilled
	spilled   int64  // bytes in files
}

// OnDevice reports whether it is the memory of a device.
func (u *Unit) OnDevice() bool { return u.domain.device != (backends.UUID{}) }

// IsSlab reports whether it has places for more than one object.
func (u *Unit) IsSlab() bool { return len(u.tenants) > 1 }

// Spills reports whether its memory can be written to files.
func (u *Unit) Spills() bool { return u.domain.spills }

// HasRoomAt reports whether an object of another server may be at a place that begins at some byte: it is there and
// free, and no client makes objects there.
func (u *Unit) HasRoomAt(at int64) bool {
	return at%u.Each == 0 && at/u.Each < int64(len(u.tenants)) && u.tenants[at/u.Each] == nil && u.creator == nil &&
		u.Spilled == nil
}

// TakePlace returns a free place of a slab, where its next object goes.
func (u *Unit) TakePlace() (place int32) {
	place = u.free[len(u.free)-1]
	u.free = u.free[:len(u.free)-1]
	return place
}

// Put gives an object a place.
func (u *Unit) Put(t *Tenant, place int32) {
	t.Unit, t.place = u, place
	u.tenants[place] = t
	u.count++
}

// At is where the object's bytes begin in the unit.
func (t *Tenant) At() int64 { return int64(t.place) * t.Unit.Each }

// Settle says whether the object keeps its unit in memory, and whether it keeps the unit from eviction.
func (t *Tenant) Settle(blocks, keeps bool) {
	count(&t.Unit.blockers, &t.blocks, blocks)
	count(&t.Unit.keepers, &t.keeps, keeps)
	t.Unit.list()
}

// count counts a tenant among others, or not any more.
func count(n *int, was *bool, is bool) {
	if is && !*was {
		*n++
	} else if *was && !is {
		*n--
	}
	*was = is
}

func (d *Domain) count(bytes int64) {
	d.used += bytes
	d.peak = max(d.peak, d.used)
}

// isEmpty reports whether it has no memory, in files neither.
func (d *Domain) isEmpty() bool { return d.used == 0 && d.lingering == 0 && d.spilled == 0 }

// list puts the unit into the queues that it may leave memory from. It stands as the newest where it was in none.
func (u *Unit) list() {
	free := u.blockers == 0 && !u.gone && !u.Moving
	from := &u.domain.goes
	if u.Spilled != nil {
		from = u.domain.inFiles
	}
	u.idle.stand(u, &u.domain.idle, free && u.Spilled == nil)
	u.goes.stand(u, from, free && u.keepers == 0)
}

// Touch makes the unit the one that was used last.
func (u *Unit) Touch() {
	u.idle.renew()
	u.goes.renew()
}

// Client is the part of a session that says which memory it has.
type Client struct {
	known map[*Unit]struct{} // slabs that it has mapped, or may have
	slabs map[int64][]*Unit  // slabs that it fills, by bytes of a place
	gone  []protocol.ID      // slabs that it has to be told are gone
}

// NewClient returns one that has nothing.
func NewClient() Client { return Client{known: map[*Unit]struct{}{}, slabs: map[int64][]*Unit{}} }

// Knows reports whether the client has a slab mapped, or may have.
func (c *Client) Knows(u *Unit) bool {
	_, known := c.known[u]
	return known
}

// Learn notes that the client is told of a slab.
func (c *Client) Learn(u *Unit) {
	c.known[u] = struct{}{}
	if u.knownBy == nil {
		u.knownBy = map[*Client]struct{}{}
	}
	u.knownBy[c] = struct{}{}
}

// HasGone reports whether slabs are gone that the client has to be told of.
func (c *Client) HasGone() bool { return len(c.gone) > 0 }

// TakeGone calls begin with how many of these there are, at most so many, and then each with the id of each.
func (c *Client) TakeGone(most int, begin func(n int), each func(protocol.ID)) {
	n := min(len(c.gone), most)
	begin(n)
	for _, id := range c.gone[:n] {
		each(id)
	}
	c.gone = append(c.gone[:0], c.gone[n:]...)
}

// retire has no new object go to a slab.
func (u *Unit) retire() {
	if u.creator == nil {
		return
	}
	list := u.creator.slabs[u.Each]
	for i, other := range list {
		if other == u {
			u.creator.slabs[u.Each] = append(list[:i:i], list[i+1:]...)
		}
	}
	u.creator = nil
}

// isNewest reports whether its creator's next object of the size goes there.
func (u *Unit) isNewest() bool {
	list := u.creator.slabs[u.Each]
	return len(list) > 0 && list[len(list)-1] == u
}

// queue is a list of units, the least recently used first.
type queue struct {
	chain.Chain[entry]
	bytes int64
}

// entry is a unit's place in a queue.
type entry struct {
	chain.Neighbours[entry]
	unit *Unit
	in   *queue // nil where it is in none
}

func newQueue() queue {
	return queue{Chain: chain.Chain[entry]{Neighbours: func(e *entry) *chain.Neighbours[entry] { return &e.Neighbours }}}
}

// stand puts the entry into a queue as its newest, if it is not there yet, or takes it out of all.
func (e *entry) stand(u *Unit, q *queue, may bool) {
	if !may {
		q = nil
	}
	if e.in == q {
		return
	}
	e.leave()
	if e.unit = u; q != nil {
		e.join(q)
	}
}

// renew makes the entry the newest of its queue.
func (e *entry) renew() {
	if q := e.in; q != nil && e.Newer != nil {
		e.leave()
		e.join(q)
	}
}

func (e *entry) join(q *queue) {
	e.in = q
	q.bytes += e.unit.Size
	q.Push(e)
}

func (e *entry) leave() {
	if e.in != nil {
		e.in.bytes -= e.unit.Size
		e.in.Remove(e)
		e.in = nil
	}
}
