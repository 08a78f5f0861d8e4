package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"hamr/backends"
)

// mostDomains is of how many devices figures are kept that have no objects.
const mostDomains = 64

// mostDevices is on how many devices there may be objects: more than one machine has.
const mostDevices = 256

// mostMemory is how many bytes can be counted of one memory. No processor addresses more, and sums do not overflow.
const mostMemory = 1 << 57

func (s *Server) domainOf(device backends.UUID) *domain {
	d := s.domains[device]
	if d == nil {
		if len(s.domains) > mostDomains {
			for device, d := range s.domains {
				if d.used == 0 && d.lingering == 0 && d.spilled == 0 && d.oldest == nil && device != (backends.UUID{}) {
					delete(s.domains, device)
				}
			}
		}
		d = &domain{device: device, name: device.String(), limit: s.options.DeviceLimit, spills: s.devices.spills(device)}
		if device == (backends.UUID{}) {
			d.name, d.limit, d.spills = "host", s.options.HostLimit, s.options.Spill != ""
		}
		s.domains[device] = d
	}
	return d
}

// deviceRoom is domainOf that refuses one device more than there can be.
func (s *Server) deviceRoom(device backends.UUID) (*domain, error) {
	d := s.domainOf(device)
	if len(s.domains) > mostDevices && d.used == 0 && d.lingering == 0 && d.spilled == 0 {
		delete(s.domains, device)
		return nil, &ArgumentError{"device", device.String(), fmt.Sprintf("one of at most %d with objects", mostDevices)}
	}
	return d, nil
}

// room sees to it that a number of bytes may be taken, and counts them. What is ready for later is given
// up first. It evicts nothing where that would not be enough. The lock is let go of while something is
// spilled. What cannot be read, and may not be evicted, is passed over; where no file can be written, it ends.
func (s *Server) room(d *domain, bytes int64) error {
	stays := map[*unit]bool{}
	var failed error
	if bytes > mostMemory-d.used {
		return s.full(d, bytes)
	}
	for d.limit > 0 && bytes > d.limit-d.used {
		spare := int64(0)
		if d.device == (backends.UUID{}) {
			spare = s.spares.bytes()
		}
		u, idle := d.oldest, d.idle
		for u != nil && stays[u] {
			u = u.newer
		}
		for each := range stays {
			if each.listed {
				idle -= each.size
			}
		}
		if u == nil && spare == 0 || bytes > d.limit-d.used+idle+spare {
			if d.leaving > 0 && bytes <= d.limit-d.used+idle+spare+d.leaving {
				s.waitMoved() // for what makes room for others, perhaps for more than they need
				continue
			}
			if len(stays) > 0 {
				return &SystemError{"no room could be made: " + failed.Error()}
			}
			return s.full(d, bytes)
		}
		if spare > 0 {
			s.giveUpSpare()
			continue
		}
		if !d.spills || u.objects == 0 {
			s.evict(u)
		} else if err := s.spill(u); err != nil {
			failed = err
			switch {
			case !u.listed: // somebody has it since
			case !slices.ContainsFunc(u.places, func(o *object) bool { return o != nil && !o.evicts }):
				s.evict(u)
			case errors.As(err, new(*unreadableError)):
				stays[u] = true
			default:
				return &SystemError{"no room could be made: " + err.Error()}
			}
		}
	}
	d.count(bytes)
	return nil
}

// evict deletes the objects of a unit.
func (s *Server) evict(u *unit) {
	crash("server-evicting")
	u.retire()
	for _, o := range u.places {
		if o != nil {
			s.evicted++
			s.remove(o, false, Evicted)
		}
	}
	s.free(u)
}

func (s *Server) full(d *domain, bytes int64) error {
	held := map[int]int64{}
	for c := range s.sessions {
		counted := map[*unit]bool{}
		for _, l := range c.leases {
			if u := l.object.unit; u != nil && u.domain == d && !counted[u] {
				counted[u] = true
				held[c.process] += u.size
			}
		}
	}
	limit := d.limit
	if limit == 0 {
		limit = mostMemory
	}
	full := &FullError{Memory: d.name, Needed: bytes, Limit: limit, Used: d.used}
	for process, bytes := range held {
		full.Holders = append(full.Holders, Holder{process, bytes})
	}
	slices.SortFunc(full.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Process, b.Process))
	})
	full.Holders = full.Holders[:min(len(full.Holders), 16)]
	return full
}
