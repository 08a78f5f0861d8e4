package memory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
	"hamr/store/internal/turn"
	"hamr/store/internal/wire"
)

// MostDomains is for how many devices figures are kept that have no objects.
const MostDomains = 64

// MostDevices is on how many devices there may be objects: more than one machine has.
const MostDevices = 256

// Options are the limits of memory.
type Options struct {
	HostLimit   int64
	DeviceLimit int64
	Spill       string // a folder for files; none where it is empty
	Devices     *spill.Devices
	MaxSessions int // sessions need descriptors, too
}

// Objects are those whose memory it is.
type Objects interface {
	// Evict deletes an object. Its place is free afterwards, as nobody has a lease of it.
	Evict(id protocol.ID)
	// Tell tells clients of an event.
	Tell(protocol.Event)
	// EachSession calls f with the process of each session, and what goes over the units of its leases.
	EachSession(f func(process int, units func(func(*Unit))))
}

// Memory is all that a server counts. The lock guards it.
type Memory struct {
	options   Options
	lock      *turn.Lock
	objects   Objects
	moved     *sync.Cond            // a unit was spilled or brought back
	slabs     map[protocol.ID]*Unit // to be found by their id
	lingering map[protocol.ID]*Unit // those that are gone, and that clients have mapped
	domains   map[backends.UUID]*Domain
	inFiles   queue // of units that are in files, those that may be evicted
	spares    spares
	// Units is how many there are. Each has a descriptor.
	Units    int64
	swapping bool // a unit comes back beyond the limit
	// OpenFile makes a file in the folder of spilled memory. Tests have it fail.
	OpenFile     func(folder string) (*os.File, error)
	spills       int64
	spilledBytes int64
	restored     int64
}

// New returns memory of which nothing is used.
func New(o Options, lock *turn.Lock, objects Objects) *Memory {
	return &Memory{
		options: o, lock: lock, objects: objects, moved: sync.NewCond(lock),
		slabs: map[protocol.ID]*Unit{}, lingering: map[protocol.ID]*Unit{}, domains: map[backends.UUID]*Domain{},
		inFiles: newQueue(), OpenFile: spill.Open,
	}
}

// Domain returns the host's memory, which zero is, or that of a device.
func (m *Memory) Domain(device backends.UUID) *Domain {
	d := m.domains[device]
	if d == nil {
		if len(m.domains) > MostDomains {
			for device, d := range m.domains {
				if d.isEmpty() && d.idle.Oldest == nil && device != (backends.UUID{}) {
					delete(m.domains, device)
				}
			}
		}
		d = &Domain{
			device: device, name: device.String(), limit: m.options.DeviceLimit,
			spills: m.options.Devices.Copies(device), idle: newQueue(), goes: newQueue(), inFiles: &m.inFiles,
		}
		if device == (backends.UUID{}) {
			d.name, d.limit, d.spills = "host", m.options.HostLimit, m.options.Spill != ""
		}
		m.domains[device] = d
	}
	return d
}

// limitedDomain is Domain that refuses one device more than there can be.
func (m *Memory) limitedDomain(device backends.UUID) (*Domain, error) {
	d := m.Domain(device)
	//mutate:replace objects may be on any number of devices
	//mutate:with len(m.domains) > MostDevices => false
	if len(m.domains) > MostDevices && d.isEmpty() {
		delete(m.domains, device)
		accepted := fmt.Sprintf("one of at most %d with objects", MostDevices)
		return nil, &protocol.ArgumentError{Argument: "device", Value: device.String(), Accepted: accepted}
	}
	return d, nil
}

// Slab returns the slab of an id, nil where there is none, and whether one is gone that some client has mapped.
func (m *Memory) Slab(id protocol.ID) (u *Unit, lingers bool) {
	return m.slabs[id], m.lingering[id] != nil
}

// Leave takes the place of a deleted object away.
func (m *Memory) Leave(t *Tenant) {
	u := t.Unit
	if u == nil {
		return
	}
	count(&u.blockers, &t.blocks, false)
	count(&u.keepers, &t.keeps, false)
	t.Unit = nil
	u.tenants[t.place] = nil
	u.count--
	u.free = append(u.free, t.place)
	if u.count == 0 && !u.Moving && (u.creator == nil || !u.isNewest()) {
		m.free(u)
		return
	}
	u.list()
}

// Force takes the memory of an object off the count, though it is still leased. A slab stays counted.
func (m *Memory) Force(t *Tenant) {
	if u := t.Unit; u != nil && !u.IsSlab() && !u.forced {
		u.forced = true
		u.domain.used -= u.Size
		u.domain.lingering += u.Size
	}
}

// free lets go of a unit that has no objects.
func (m *Memory) free(u *Unit) {
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
		m.spilledBytes -= u.Size
		u.domain.spilled -= u.Size
		u.Spilled.Close()
		u.Spilled = nil
	}
	delete(m.slabs, u.ID)
	m.Units--
	switch {
	case u.forced:
		u.domain.lingering -= u.Size
	case !spilled:
		u.domain.used -= u.Size
	}
	m.spares.wanted()
	for c := range u.knownBy {
		c.gone = append(c.gone, u.ID)
	}
	if len(u.knownBy) > 0 {
		u.domain.lingering += u.Size
		m.lingering[u.ID] = u
	}
}

// Forget is told by a client that it has no slab of an id any more.
func (m *Memory) Forget(c *Client, id protocol.ID) {
	u := m.lingering[id]
	if u == nil {
		u = m.slabs[id] // the client could not map it
	}
	if u != nil {
		m.letGo(c, u)
	}
}

// letGo notes that a client neither has a slab nor fills it.
func (m *Memory) letGo(c *Client, u *Unit) {
	delete(c.known, u)
	delete(u.knownBy, c)
	if u.creator == c {
		u.retire()
	}
	if u.count == 0 && u.creator == nil && !u.Moving && !u.gone {
		m.free(u)
	}
	if u.gone && len(u.knownBy) == 0 && m.lingering[u.ID] == u {
		delete(m.lingering, u.ID)
		u.domain.lingering -= u.Size
	}
}

// End lets go of what a client has.
func (m *Memory) End(c *Client) {
	for _, list := range c.slabs {
		for _, u := range append([]*Unit(nil), list...) {
			u.retire()
			u.list()
			if u.count == 0 && !u.Moving {
				m.free(u)
			}
		}
	}
	for u := range c.known {
		m.letGo(c, u)
	}
}

// Wait waits until a unit was spilled or brought back. The lock is let go of meanwhile.
func (m *Memory) Wait() {
	m.lock.Aside()
	m.moved.Wait()
}

// Moved tells those who wait that a unit was spilled or brought back.
func (m *Memory) Moved() { m.moved.Broadcast() }

// spares is the host's memory that is kept ready for large objects: one file whose pages are there, huge ones where the
// machine has them. Memory that an object had never becomes ready again. The server's lock guards it.
type spares struct {
	want   int64  // bytes that are to be ready, 0 for none
	ready  *spare // nil where none is
	making *spare
	hits   int64
	misses int64         // objects that it would have been for, and was not there
	wake   chan struct{} // holds one entry if something may have to be made
	done   chan struct{} // closed when nothing is made any more
}

type spare struct {
	size       int64
	descriptor int
	givenUp    atomic.Bool // while it was made
}

// fits reports whether it is for an object of some bytes. An object of less than half of it gets nothing: too much
// would be cut off and thrown away.
func (p *spares) fits(bytes int64) bool { return p.want > 0 && bytes >= p.want/2 }

// bytes is how many of those that are counted as used could be given up.
func (p *spares) bytes() (n int64) {
	for _, one := range []*spare{p.ready, p.making} {
		if one != nil {
			n += one.size
		}
	}
	return n
}

// wanted is told when memory may be made ready: an object was sealed, or memory has gone.
func (p *spares) wanted() {
	if p.want > 0 && p.ready == nil && p.making == nil {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// StartSpares keeps bytes of the host's memory ready from now on. 0 is none.
func (m *Memory) StartSpares(bytes int64) {
	if bytes == 0 {
		return
	}
	p := &m.spares
	p.want, p.wake, p.done = protocol.RoundUp(bytes, protocol.PageSize), make(chan struct{}, 1), make(chan struct{})
	p.wake <- struct{}{}
	go func() {
		defer close(p.done)
		for range p.wake {
			m.makeSpare()
		}
	}()
}

// WantSpare is told that an object was sealed, after which memory may be made ready.
func (m *Memory) WantSpare() { m.spares.wanted() }

// EndSpares has nothing made any more, and gives up what there is. The lock is not held.
func (m *Memory) EndSpares() {
	p := &m.spares
	if p.want == 0 {
		return
	}
	m.lock.Lock()
	p.want = 0
	m.giveUpSpare()
	close(p.wake)
	m.lock.Unlock()
	<-p.done
}

// makeSpare makes memory ready if there is room which nobody needs. Where that fails there is none until something else
// changes.
func (m *Memory) makeSpare() {
	p := &m.spares
	m.lock.Lock()
	d := m.Domain(backends.UUID{})
	if p.want == 0 || p.ready != nil || p.want > d.limit-d.used {
		m.lock.Unlock()
		return
	}
	one := &spare{size: p.want}
	p.making = one
	d.count(one.size)
	m.lock.Unlock()
	descriptor, err := host.NewReadyFile(int(one.size), func() bool {
		wire.Crash("server-readying")
		return !one.givenUp.Load()
	})
	m.lock.Lock()
	defer m.lock.Unlock()
	if p.making == one {
		p.making = nil
	}
	switch {
	case one.givenUp.Load():
		d.lingering -= one.size
		if err == nil && descriptor >= 0 {
			_ = unix.Close(descriptor)
		}
	case err != nil:
		d.used -= one.size
	default:
		wire.Record(descriptor)
		one.descriptor = descriptor
		p.ready = one
		wire.Crash("server-ready")
	}
}

// giveUpSpare frees the room of what is ready, or becomes so. What is being made is there until its next part would be
// made: it lingers. The lock is held.
func (m *Memory) giveUpSpare() {
	p := &m.spares
	d := m.Domain(backends.UUID{})
	if one := p.ready; one != nil {
		p.ready = nil
		d.used -= one.size
		_ = wire.CloseRecorded(one.descriptor)
	}
	if one := p.making; one != nil {
		one.givenUp.Store(true)
		p.making = nil
		d.used -= one.size
		d.lingering += one.size
	}
}

// readyIn is how much is ready of a memory.
func (m *Memory) readyIn(d *Domain) int64 {
	if one := m.spares.ready; one != nil && d.device == (backends.UUID{}) {
		return one.size
	}
	return 0
}

// Figures fills in what is counted of memory.
func (m *Memory) Figures(t *protocol.Statistics) {
	t.Spilled, t.Spills, t.Restored = m.spilledBytes, m.spills, m.restored
	t.ReadyHits, t.ReadyMisses = m.spares.hits, m.spares.misses
	m.Domain(backends.UUID{})
	for _, d := range m.domains {
		t.Memories = append(t.Memories, protocol.MemoryStatistics{
			Name: d.name, Device: d.device, Limit: d.limit, Used: d.used, Peak: d.peak, Lingering: d.lingering,
			Ready: m.readyIn(d),
		})
	}
	slices.SortFunc(t.Memories, func(a, b protocol.MemoryStatistics) int {
		if (a.Name == "host") != (b.Name == "host") {
			if a.Name == "host" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}
