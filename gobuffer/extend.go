package gobuffer

import (
	"errors"

	"hamr/backends"
)

// growthShare is the part of its size that memory which grows in place becomes more, at least:
// little enough to waste little of a device, and enough to seldom ask its driver.
const growthShare = 8

// Grows reports whether the memory can become more without a copy.
func (m *Memory) Grows() bool {
	return m.check() == nil && m.grower != nil && m.owned && !m.taken && m.mapping == nil && m.region.Address != 0
}

// Growing says of an array that View made whether it is the one that grows where it is, if its
// memory Grows, and whether nobody else has the memory at all, but for whom it is lent by.
func (a *Array) Growing(is, sole bool) *Array {
	if a.live() {
		a.grows, a.sole = is && a.memory.Grows(), sole
	}
	return a
}

// Grows reports whether more elements come into being where the array is, as long as the
// addresses behind it are free.
func (a *Array) Grows() bool { return a.live() && a.grows && a.memory.Grows() }

// roomInPlace is how many elements to have room for where at least need are to be.
func (a *Array) roomInPlace(need int) int {
	if room := a.room + a.room/growthShare; room > need && a.checkCount(room) == nil {
		return room
	}
	return need
}

// extend makes room for n elements or, as far as there is memory, for wanted, where the
// elements are, and reports whether it has.
func (a *Array) extend(n, wanted int) (bool, error) {
	size := a.layout.ItemSize()
	if !a.growsInPlace() || size == 0 {
		return false, nil
	}
	err := a.memory.extend(n*size, wanted*size)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.room = a.memory.Size() / size
	return true, nil
}

func (a *Array) growsInPlace() bool {
	return a.Grows() && a.ownsRoom() && a.address == a.memory.region.Address
}

// elsewhere returns an array with room for n elements, which are to be a's. holds is whether
// they are already, as the memory is the same at other addresses. That it cannot be while
// somebody else has it, who would find one element at two addresses.
func (a *Array) elsewhere(n int) (next *Array, holds bool, err error) {
	if size := a.layout.ItemSize(); size > 0 && a.growsInPlace() && a.has() {
		m, err := a.memory.relocated(n * size)
		if err == nil {
			return &Array{runtime: a.runtime, options: a.options, memory: m, address: m.region.Address,
				layout: a.layout, room: m.Size() / size, grows: true}, true, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, false, err
		}
	}
	next, err = a.runtime.NewArray(a.layout.Type, []int{n}, a.options)
	return next, false, err
}

// has reports whether nobody has the memory but a, and whom it is lent by.
func (a *Array) has() bool {
	if a.memory == nil {
		return true
	}
	references := a.memory.refs.Load()
	//mutate:replace memory moves while somebody else has it
	//mutate:with references == 1 || (references == 2 && a.lent && a.sole) => references > 0
	return references == 1 || (references == 2 && a.lent && a.sole)
}

// extend makes the memory one of at least size bytes or, as far as there is memory, of wanted.
func (m *Memory) extend(size, wanted int) error {
	had := m.Size()
	if size <= had {
		return nil
	}
	has, err := m.grower.Grow(m.region, had, wanted)
	if wanted > size && (outOfMemory(err) || errors.Is(err, errors.ErrUnsupported)) {
		has, err = m.grower.Grow(m.region, had, size)
	}
	if err != nil && m.runtime.madeRoom(m.backend, err) {
		has, err = m.grower.Grow(m.region, had, size)
	}
	if err != nil {
		return err
	}
	m.size.Store(int64(has))
	if c := m.runtime.checked(); c != nil {
		c.witness.grows(m)
	}
	m.grown(has - had)
	if r := m.runtime; r.tracing() {
		r.tracef("grow %s device %d at %#x from %d to %d bytes", m.region.Allocator, m.region.Device, m.region.Address, had, has)
	}
	return nil
}

// relocated is the memory at other addresses, with one reference.
func (m *Memory) relocated(size int) (*Memory, error) {
	r, had := m.runtime, m.Size()
	at, has, err := m.grower.Relocate(m.region, had, size)
	if err != nil && r.madeRoom(m.backend, err) {
		at, has, err = m.grower.Relocate(m.region, had, size)
	}
	if err != nil {
		return nil, err
	}
	next := &Memory{runtime: r, served: m.served, owned: true,
		region: backends.Region{Address: at, Allocator: m.region.Allocator, Device: m.region.Device}}
	next.size.Store(int64(has))
	next.asked.Store(m.asked.Load())
	next.stream.Store(m.stream.Load())
	next.every.Store(m.every.Load())
	next.refs.Store(1)
	// Whoever uses the memory at its new addresses runs after what is under way at the old.
	pending := m.uses.Recorded()
	for _, w := range pending {
		//mutate:remove memory at other addresses knows nothing of the work at the old ones
		_ = next.mark(w, nil) // takes the ticket over, and drops none
	}
	next.library = m.library
	next.come(has)
	if r.tracing() {
		r.tracef("relocate %s device %d from %#x to %#x of %d bytes", m.region.Allocator, m.region.Device, m.region.Address, at, has)
	}
	return next, nil
}
