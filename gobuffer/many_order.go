package gobuffer

import (
	"cmp"
	"slices"
)

// span is bytes of a piece: an address is that of one space.
type span struct{ space, low, high int }

var spanLists scratch[span]

// independent reports whether pairs may be copied in any order: none writes to bytes that another
// one, or itself, writes or reads. It looks at what they span, and not at gaps between elements.
func independent(list []pair) bool {
	room := spanLists.take(2 * len(list))
	defer spanLists.give(room)
	written, read := (*room)[:0:len(list)], (*room)[len(list):len(list)]
	var spaces []*Memory
	for i := range list {
		p := &list[i]
		if p.dst.layout.Count() == 0 {
			continue
		}
		if p.dst.memory.mapping != nil || p.src.memory.mapping != nil {
			return false // it is in two spaces
		}
		written, read = append(written, p.dst.spanIn(&spaces)), append(read, p.src.spanIn(&spaces))
	}
	slices.SortFunc(written, func(a, b span) int {
		if a.space != b.space {
			return a.space - b.space
		}
		return cmp.Compare(a.low, b.low)
	})
	for i := 1; i < len(written); i++ {
		//mutate:never copies to the same bytes are made in any order
		if written[i].space == written[i-1].space && written[i].low < written[i-1].high {
			return false
		}
	}
	for _, s := range read {
		// They lie apart, so that their ends are in order, too.
		at, _ := slices.BinarySearchFunc(written, s, func(w, s span) int {
			if w.space != s.space {
				return w.space - s.space
			}
			return cmp.Compare(w.high, s.low+1)
		})
		//mutate:never copies that depend on each other are made in any order
		if at < len(written) && written[at].space == s.space && written[at].low < s.high {
			return false
		}
	}
	return true
}

func (p *piece) spanIn(spaces *[]*Memory) span {
	low, high := p.layout.Span()
	at := int(p.address)
	return span{p.space(spaces), at + low, at + high}
}

// space numbers the address space that p is in: that of the host, or one of those of which there is
// a memory in spaces, to which it adds its own.
func (p *piece) space(spaces *[]*Memory) int {
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
