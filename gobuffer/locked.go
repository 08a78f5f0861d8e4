package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// lockedRange is host memory that somebody has page-locked for a runtime, as it has told last.
type lockedRange struct {
	as        *served // page-locked memory of that runtime; nil: none was found
	low, high backends.Address
}

// lockFor makes p what the runtime of side takes it for: page-locked memory of its own where somebody has page-locked
// all of p. Whoever did so may end it without a word. So each operation asks, and the answer goes with it. known is the
// answer to an earlier question of the same operation.
func (p *piece) lockFor(side *piece, known *lockedRange) {
	if p.memory == nil || p.memory.kind != backends.Pageable || side.onHost() || side.memory.locator == nil {
		return
	}
	first, end := p.layout.Span()
	low, high := offset(p.address, first), offset(p.address, end)
	if known.as == nil || known.as.backend != side.memory.backend || low < known.low || high > known.high {
		*known = side.memory.lockedAt(p.memory.runtime, low, high)
	}
	//mutate:replace memory of which a part is page-locked is taken for locked
	//mutate:with known.as != nil && known.low <= low && high <= known.high => known.as != nil
	if known.as != nil && known.low <= low && high <= known.high {
		p.locked = known.as
	}
}

// lockedAt asks the runtime of m about the bytes from low to high. A copy will tell of the error, if there is one. A
// runtime that does not know how far a lock reaches is asked about the last byte, too.
func (m *Memory) lockedAt(r *Runtime, low, high backends.Address) lockedRange {
	found, err := m.locator.Locate(low)
	a := found.Allocator
	if err != nil || a == backends.None || a.Kind() != backends.Pinned || r.byAllocator[a].backend != m.backend {
		return lockedRange{}
	}
	if found.Size == 0 {
		last, err := m.locator.Locate(offset(high, -1))
		if err != nil || last.Allocator != a {
			return lockedRange{}
		}
		return lockedRange{&r.byAllocator[a], low, high}
	}
	return lockedRange{&r.byAllocator[a], found.Base, offset(found.Base, found.Size)}
}

// kind is the memory's, unless that is page-locked for the operation.
func (p piece) kind() backends.MemoryKind {
	if p.locked != nil {
		return p.locked.kind
	}
	return p.memory.kind
}

// settleUnlocked waits for what writes to p, before a runtime is asked to read it on w's stream: ordinary host memory
// is read at once, and not in the order of a stream. It may have been page-locked when the writing began, or be so for
// another device.
func (p piece) settleUnlocked(w *order.Work) error {
	if p.memory == nil || p.memory.kind != backends.Pageable || !p.memory.uses.WrittenLate() {
		return nil
	}
	if p.locked != nil {
		//mutate:replace host memory that is page-locked for another device is read before it was written
		//mutate:with p.readInOrder(w) => true, error(nil)
		if inOrder, err := p.readInOrder(w); inOrder || err != nil {
			return err
		}
	}
	//mutate:skip host memory that is not page-locked any more is read before it was written
	return p.settle()
}

// readInOrder reports whether a copy on w's stream reads p, which is page-locked, in the order of that stream.
func (p piece) readInOrder(w *order.Work) (bool, error) {
	able, ok := backends.As[backends.HostReader](w.Backend)
	if !ok {
		return true, nil
	}
	span := p.span()
	return able.ReadsInOrder(span.region(), span.layout.NBytes(), w.Device, w.Stream)
}
