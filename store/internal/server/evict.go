package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// MostDomains is of how many devices figures are kept that have no objects.
const MostDomains = 64

// MostDevices is on how many devices there may be objects: more than one machine has.
const MostDevices = 256

// mostMemory is how many bytes can be counted of one memory. No processor addresses more, and sums do not overflow.
const mostMemory = 1 << 57

func (s *Server) DomainOf(device backends.UUID) *domain {
	d := s.domains[device]
	if d == nil {
		if len(s.domains) > MostDomains {
			for device, d := range s.domains {
				if d.used == 0 && d.lingering == 0 && d.spilled == 0 && d.idle.oldest == nil && device != (backends.UUID{}) {
					delete(s.domains, device)
				}
			}
		}
		d = &domain{device: device, name: device.String(), limit: s.Options.DeviceLimit, spills: s.devices.spills(device), files: &s.files}
		if device == (backends.UUID{}) {
			d.name, d.limit, d.spills = "host", s.Options.HostLimit, s.Options.Spill != ""
		}
		s.domains[device] = d
	}
	return d
}

// deviceRoom is DomainOf that refuses one device more than there can be.
func (s *Server) deviceRoom(device backends.UUID) (*domain, error) {
	d := s.DomainOf(device)
	//mutate:replace objects may be on any number of devices
	//mutate:with len(s.domains) > MostDevices => false
	if len(s.domains) > MostDevices && d.used == 0 && d.lingering == 0 && d.spilled == 0 {
		delete(s.domains, device)
		return nil, &protocol.ArgumentError{Argument: "device", Value: device.String(), Accepted: fmt.Sprintf("one of at most %d with objects", MostDevices)}
	}
	return d, nil
}

// room sees to it that a number of bytes may be taken, and counts them. What is ready for later is given
// up first. It evicts nothing where that would not be enough. The lock is let go of while something is
// spilled. What cannot be read, and may not be evicted, is passed over; where no file can be written, others are
// evicted instead.
func (s *Server) room(d *domain, bytes int64) error {
	if bytes > mostMemory-d.used {
		return s.full(d, bytes)
	}
	stays := map[*unit]bool{}
	var failed error
	//mutate:never a limit is not enforced
	for d.limit > 0 && bytes > d.limit-d.used {
		spare := int64(0)
		if d.device == (backends.UUID{}) {
			spare = s.spares.bytes()
		}
		u, idle := d.next(stays)
		if u == nil && spare == 0 || bytes > d.limit-d.used+idle+spare {
			if d.leaving > 0 && bytes <= d.limit-d.used+idle+spare+d.leaving {
				s.waitMoved() // for what makes room for others, perhaps for more than they need
				continue
			}
			if len(stays) > 0 {
				return &protocol.SystemError{Problem: "no room could be made: " + failed.Error()}
			}
			return s.full(d, bytes)
		}
		if spare > 0 {
			s.giveUpSpare()
			continue
		}
		if !d.spills || u.objects == 0 {
			s.evict(u)
		} else if err := s.Spill(u); err != nil {
			failed = err
			switch {
			case u.idle.in == nil: // somebody has it since
			case !errors.As(err, new(*unreadableError)):
				if !s.evictInstead(d, bytes, err) {
					return &protocol.SystemError{Problem: "no room could be made: " + err.Error()}
				}
			case u.goes.in != nil:
				s.evict(u)
			default:
				stays[u] = true
			}
		}
	}
	d.count(bytes)
	return nil
}

// next is what may leave memory next, and how many bytes there are of such units. Some are passed over.
func (d *domain) next(stays map[*unit]bool) (u *unit, bytes int64) {
	e := d.idle.oldest
	for e != nil && stays[e.unit] {
		e = e.newer
	}
	bytes = d.idle.bytes
	for each := range stays {
		if each.idle.in != nil {
			bytes -= each.size
		}
	}
	if e == nil {
		return nil, bytes
	}
	return e.unit, bytes
}

// evictInstead evicts a unit because another one cannot be spilled, and reports whether there was any. Where files
// have no room, it is one of those in files, which are used the least.
func (s *Server) evictInstead(d *domain, bytes int64, why error) bool {
	evictable, files := d.goes.bytes, hasNoRoom(why) || wire.RanOut(why)
	if files {
		evictable += s.files.bytes
	}
	if bytes > d.limit-d.used+evictable {
		return false
	}
	//mutate:never nothing is evicted in place of what cannot be spilled
	if e := s.files.oldest; files && e != nil {
		s.evict(e.unit)
		return true
	}
	if e := d.goes.oldest; e != nil {
		s.evict(e.unit)
		return true
	}
	return false
}

func hasNoRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// evict deletes the objects of a unit.
func (s *Server) evict(u *unit) {
	wire.Crash("server-evicting")
	u.retire()
	for _, o := range u.places {
		if o != nil {
			s.evicted++
			s.Remove(o, false, protocol.Evicted)
		}
	}
	s.free(u)
}

func (s *Server) full(d *domain, bytes int64) error {
	held := map[int]int64{}
	for c := range s.Sessions {
		counted := map[*unit]bool{}
		for _, l := range c.Leases {
			if u := l.object.Unit; u != nil && u.domain == d && !counted[u] {
				counted[u] = true
				held[c.process] += u.size
			}
		}
	}
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
