package gobuffer

import (
	"math"

	"hamr/arrayiface"
	"hamr/backends"
)

// NewElementsAtOnce is NewElements without a value, if that needs no wait, see backends.AtOnce. Otherwise m is nil and
// nothing has happened. It reports no errors: NewElements finds them.
func (r *Runtime) NewElementsAtOnce(t arrayiface.ElementType, count int, o Options) (m *Memory) {
	if r.check() != nil || o.Allocator < 0 || int(o.Allocator) >= allocatorSlots || r.tracing() ||
		r.books.watched.Load() != 0 {
		return nil
	}
	// Other streams than the default one may have to be asked for first.
	atOnce := r.byAllocator[o.Allocator].atOnce
	if atOnce == nil || o.Stream != 0 || o.Tag != backends.NoTag || count <= 0 ||
		count > math.MaxInt64/2/max(t.Size(), 1) {
		return nil
	}
	m, size := r.newMemory(o.Allocator), count*t.Size()
	where := backends.Region{Allocator: o.Allocator, Device: o.Device}
	if r.place(m, where, size, 0) != nil || m.maps || m.resolveStream() != nil {
		return nil
	}
	w := m.uses.Room()
	if w == nil || m.setWork(w, m.ordered()) != nil {
		return nil // what is not there in stream order
	}
	request := backends.Request{Allocator: o.Allocator, Device: m.region.Device, Size: size, Stream: m.ordered()}
	at, ok := atOnce.AllocateAtOnce(request)
	if !ok {
		return nil
	}
	m.owned, m.ending, m.region.Address = true, freed{}, at
	//mutate:remove new memory does not say that it is there on one stream only
	m.uses.Begin(w)
	m.come(size)
	return m
}

// ReleaseAtOnce is Release if that needs no wait. Otherwise it returns false and the reference still exists.
func (m *Memory) ReleaseAtOnce() bool {
	if m.check() != nil {
		return false
	}
	left := m.refs.Load()
	for ; left > 1; left = m.refs.Load() {
		if m.refs.CompareAndSwap(left, left-1) {
			return true
		}
	}
	// Nobody else has a reference, nor can get one.
	plain := left == 1 && m.atOnce != nil && m.owned && m.freedInStreamOrder() && !m.isTakenOver() && !m.keeps &&
		m.region.Address != 0 && m.watched == nil
	//mutate:replace memory is given back at once that other streams still use
	//mutate:with !m.uses.OnlyOn(m.backend, m.context(), m.ordered()) => false
	//mutate:replace memory is given back at once that streams still use which have ended
	//mutate:with m.every.Load() => false
	//mutate:replace memory of a graph, whose stream has ended, is handed out again without the driver
	//mutate:with m.left.Load() => false
	if !plain || m.every.Load() || m.left.Load() || m.mapping != nil || m.runtime.tracing() ||
		m.runtime.books.watched.Load() != 0 || !m.uses.OnlyOn(m.backend, m.context(), m.ordered()) {
		return false
	}
	if !m.atOnce.FreeAtOnce(m.region, m.Size(), m.ordered()) {
		return false
	}
	m.refs.Store(0)
	m.gone()
	return true
}
