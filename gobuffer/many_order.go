package gobuffer

import (
	"cmp"
	"errors"
	"slices"

	"hamr/backends"
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

// alias is an end of a pair, among those that may have its bytes by another Memory.
type alias struct {
	span
	of             *piece
	written, later bool
}

// tellOthers has who uses the memory of later pairs find what is pending on that of earlier ones: others may know the
// same bytes by another Memory, as they do that were shared twice.
func tellOthers(earlier, later []pair) (err error) {
	all := make([]alias, 0, 2*(len(earlier)+len(later)))
	var spaces []*Memory
	shared := false // memory that hamr owns is known by one Memory
	for k, list := range [...][]pair{earlier, later} {
		for i := range list {
			p := &list[i]
			if p.dst.layout.Count() == 0 {
				continue
			}
			all = append(all, alias{p.dst.spanIn(&spaces), &p.dst, true, k == 1},
				alias{p.src.spanIn(&spaces), &p.src, false, k == 1})
			shared = shared || !p.dst.memory.owned || !p.src.memory.owned
		}
	}
	if !shared {
		return nil
	}
	slices.SortFunc(all, func(a, b alias) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.low, b.low))
	})
	for i := range all {
		a := &all[i]
		for j := i + 1; j < len(all) && all[j].space == a.space && all[j].low < a.high; j++ {
			b := &all[j]
			if a.of.memory == b.of.memory || a.later == b.later || !a.written && !b.written {
				continue
			}
			before, after := a.of, b.of
			if a.later {
				before, after = after, before
			}
			err = errors.Join(err, after.comesAfter(before))
		}
	}
	return err
}

// comesAfter has who uses p wait for what is pending on q, which has some of the same bytes by another Memory.
func (p *piece) comesAfter(q *piece) (err error) {
	//mutate:always a copy of many does not follow an earlier one of the same bytes by another Memory
	if q.memory.uses.Idle() {
		return nil
	}
	// Ordinary host memory is read without asking anybody.
	if p.kind() == backends.Pageable {
		//mutate:replace a copy of many reads host memory that is yet to be written, by another Memory
		//mutate:with q.settle() => error(nil)
		return q.settle()
	}
	for _, w := range q.memory.uses.Recorded() {
		err = errors.Join(err, p.mark(w, nil))
	}
	return err
}
