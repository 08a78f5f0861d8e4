package gobuffer

import (
	"cmp"
	"slices"
)

// mention is bytes that a pair has: an address is that of one space.
type mention struct {
	space     int
	low, high int
	written   bool
}

// independent reports whether pairs may be copied in any order: none writes to bytes that another
// one, or itself, writes or reads. It looks at what they span, and not at gaps between elements.
func independent(list []pair) bool {
	mentions := make([]mention, 0, 2*len(list))
	var spaces []*Memory
	for _, p := range list {
		if p.dst.layout.Count() == 0 {
			continue
		}
		for i, each := range [...]piece{p.src, p.dst} {
			if each.memory.mapping != nil {
				return false // it is in two spaces
			}
			low, high := each.layout.Span()
			at := int(each.address)
			mentions = append(mentions, mention{each.space(&spaces), at + low, at + high, i == 1})
		}
	}
	slices.SortFunc(mentions, func(a, b mention) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.low, b.low))
	})
	space, end, written := -1, 0, 0
	for i, m := range mentions {
		if i == 0 || m.space != space {
			space, end, written = m.space, m.low, m.low
		}
		//mutate:never copies that depend on each other are made in any order
		//mutate:replace a copy of many overwrites what an earlier one has yet to read
		//mutate:with m.written && m.low < end => false
		if m.low < written || m.written && m.low < end {
			return false
		}
		if end = max(end, m.high); m.written {
			written = max(written, m.high)
		}
	}
	return true
}

// space numbers the address space that p is in: that of the host, or one of those of which there is
// a memory in spaces, to which it adds its own.
func (p piece) space(spaces *[]*Memory) int {
	if p.onHost() {
		return 0
	}
	i := slices.IndexFunc(*spaces, func(m *Memory) bool {
		return m.backend == p.memory.backend && m.region.Device == p.memory.region.Device
	})
	if i < 0 {
		i = len(*spaces)
		*spaces = append(*spaces, p.memory)
	}
	return i + 1
}
