package pool

import "hamr/backends"

// Segments returns what was taken from the driver, by address, for memory of an allocator on a device.
func (p *Pool) Segments(a backends.Allocator, device int) (list []backends.Segment) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, g := range p.segments {
		s := backends.Segment{Allocator: a, Device: device, Address: g.at, Size: g.size}
		for b := g.first; b != nil; b = b.next {
			s.Blocks = append(s.Blocks, backends.SegmentBlock{Address: b.at, Size: b.size, Lent: b.state.Load() == stateLent})
		}
		list = append(list, s)
	}
	return list
}
