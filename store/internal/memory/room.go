package memory

import (
	"cmp"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
	"hamr/store/internal/wire"
)

// evict deletes the objects of a unit.
func (m *Memory) evict(u *Unit) {
	wire.Crash("server-evicting")
	u.retire()
	for _, t := range u.tenants {
		if t != nil {
			m.objects.Evict(t.ID)
		}
	}
	m.free(u)
}

// EvictOldest evicts a unit of whatever memory, so that its descriptor is free, and reports whether there was any.
func (m *Memory) EvictOldest() bool {
	if m.spares.ready != nil {
		m.giveUpSpare()
		return true
	}
	if m.evictFrom(&m.inFiles) {
		return true
	}
	for _, d := range m.domains {
		if m.evictFrom(&d.goes) {
			return true
		}
	}
	return false
}

// evictFrom evicts the least recently used unit of a queue, and reports whether there was any.
func (m *Memory) evictFrom(q *queue) bool {
	e := q.Oldest
	if e != nil {
		m.evict(e.unit)
	}
	return e != nil
}

// evictInstead evicts a unit because another one cannot be spilled, and reports whether there was any. Where files have
// no room, the least recently used unit in files goes.
func (m *Memory) evictInstead(d *Domain, bytes int64, why error) bool {
	evictable, files := d.goes.bytes, hasNoRoom(why) || wire.RanOut(why)
	if files {
		evictable += m.inFiles.bytes
	}
	if bytes > d.limit-d.used+evictable {
		return false
	}
	//mutate:replace nothing is evicted in place of what cannot be spilled
	//mutate:with files => false
	return files && m.evictFrom(&m.inFiles) || m.evictFrom(&d.goes)
}

func hasNoRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// MostUnits is how many units a server may have, as each has a descriptor. The process keeps the other descriptors for
// connections, of which each has two, and for files that are open for a moment: a quarter at most, or 40 of few.
func MostUnits(sessions int) int64 {
	files := int64(wire.FilesLimit())
	return files - min(int64(2*sessions+64), max(files/4, min(files/2, 40)))
}

// claim counts one more unit. Where there are too many, what may be evicted goes.
func (m *Memory) claim() error {
	//mutate:never descriptors are no limit
	for m.Units >= MostUnits(m.options.MaxSessions) { // which may change
		if !m.EvictOldest() {
			return m.FullOfDescriptors()
		}
	}
	m.Units++
	return nil
}

// FullOfDescriptors says that the process has no descriptor left.
func (m *Memory) FullOfDescriptors() error {
	return &protocol.FullError{
		Memory: protocol.MemoryDescriptors, Needed: 1, Limit: int64(wire.FilesLimit()), Used: m.Units,
	}
}

// retrying calls f again for each unit that was evicted, as long as it fails for want of descriptors.
func (m *Memory) retrying(f func() error) error {
	for {
		err := f()
		if !wire.RanOut(err) {
			return err
		}
		if !m.EvictOldest() {
			return m.FullOfDescriptors()
		}
	}
}

// mostMemory is how many bytes can be counted of one memory. No processor addresses more, and sums do not overflow.
const mostMemory = 1 << 57

// room counts bytes as used, and makes room for them first. It gives up first what is ready for later. It evicts
// nothing where that would not be enough. The lock is let go of while something is spilled. A unit that cannot be read,
// and may not be evicted, is passed over; where no file can be written, others are evicted instead.
func (m *Memory) room(d *Domain, bytes int64) error {
	if bytes > mostMemory-d.used {
		return m.full(d, bytes)
	}
	stays := map[*Unit]bool{}
	var failed error
	//mutate:never a limit is not enforced
	for d.limit > 0 && bytes > d.limit-d.used {
		spare := int64(0)
		if d.device == (backends.UUID{}) {
			spare = m.spares.bytes()
		}
		u, idle := d.next(stays)
		if u == nil && spare == 0 || bytes > d.limit-d.used+idle+spare {
			if d.leaving > 0 && bytes <= d.limit-d.used+idle+spare+d.leaving {
				m.Wait() // for what makes room for others, perhaps for more than they need
				continue
			}
			if len(stays) > 0 {
				return &protocol.SystemError{Problem: "no room could be made: " + failed.Error()}
			}
			return m.full(d, bytes)
		}
		if spare > 0 {
			m.giveUpSpare()
			continue
		}
		if !d.spills || u.count == 0 {
			m.evict(u)
		} else if err := m.Spill(u); err != nil {
			failed = err
			switch {
			case u.idle.in == nil: // it was leased meanwhile
			case !errors.As(err, new(*spill.UnreadableError)):
				if !m.evictInstead(d, bytes, err) {
					return &protocol.SystemError{Problem: "no room could be made: " + err.Error()}
				}
			case u.goes.in != nil:
				m.evict(u)
			default:
				stays[u] = true
			}
		}
	}
	d.count(bytes)
	return nil
}

// next is what may leave memory next, and how many bytes there are of such units. Some are passed over.
func (d *Domain) next(stays map[*Unit]bool) (u *Unit, bytes int64) {
	e := d.idle.Oldest
	for e != nil && stays[e.unit] {
		e = e.Newer
	}
	bytes = d.idle.bytes
	for each := range stays {
		if each.idle.in != nil {
			bytes -= each.Size
		}
	}
	if e == nil {
		return nil, bytes
	}
	return e.unit, bytes
}

// full says which processes hold the memory.
func (m *Memory) full(d *Domain, bytes int64) error {
	held := map[int]int64{}
	m.objects.EachSession(func(process int, units func(f func(u *Unit))) {
		counted := map[*Unit]bool{}
		units(func(u *Unit) {
			if u.domain == d && !counted[u] {
				counted[u] = true
				held[process] += u.Size
			}
		})
	})
	limit := d.limit
	if limit == 0 {
		limit = mostMemory
	}
	full := &protocol.FullError{Memory: d.name, Needed: bytes, Limit: limit, Used: d.used}
	for process, bytes := range held {
		full.Holders = append(full.Holders, protocol.Holder{Process: process, Bytes: bytes})
	}
	slices.SortFunc(full.Holders, func(a, b protocol.Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Process, b.Process))
	})
	full.Holders = full.Holders[:min(len(full.Holders), 16)]
	return full
}
