package gobuffer

import (
	"math"

	"hamr/arrayiface"
	"hamr/backends"
)

// fresh is an Array and the Memory made for it: one object for Go's collector.
type fresh struct {
	array  Array
	memory Memory
}

// NewArray returns an Array of the given shape whose elements are not initialised. The caller closes it.
func (r *Runtime) NewArray(t arrayiface.ElementType, shape []int, o Options) (*Array, error) {
	return r.NewFilledArray(t, shape, o, Value{})
}

// NewFilledArray is NewArray whose elements hold value, if there is one. A value that the type cannot hold is an error.
func (r *Runtime) NewFilledArray(t arrayiface.ElementType, shape []int, o Options, value Value) (*Array, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	layout, err := arrayiface.NewLayout(t, shape, nil)
	if err != nil {
		return nil, err
	}
	f := new(fresh)
	count := layout.Count()
	if err := r.newElements(&f.memory, t, count, o, value); err != nil {
		return nil, err
	}
	if a := f.memory.region.Allocator; a != o.Allocator {
		o.Allocator, o.StreamOf = a, o.Allocator
	}
	o.Device = f.memory.region.Device
	if o.Stream, err = f.memory.resolved(o.Stream); err != nil {
		f.memory.Release()
		return nil, err
	}
	f.array = Array{runtime: r, options: o, memory: &f.memory, address: f.memory.region.Address, layout: layout,
		room: count, grows: f.memory.Grows(), where: f.memory.whereIs(o.Stream)}
	return &f.array, nil
}

// NewElements returns memory for count elements, with one reference. They hold value, if there is one, else they are
// not initialised. It is NewFilledArray without the Array, for callers that keep their own description.
func (r *Runtime) NewElements(t arrayiface.ElementType, count int, o Options, value Value) (*Memory, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	m := r.newMemory(o.Allocator)
	if err := r.newElements(m, t, count, o, value); err != nil {
		return nil, err
	}
	return m, nil
}

func (r *Runtime) newElements(m *Memory, t arrayiface.ElementType, count int, o Options, value Value) error {
	if count < 0 || count > math.MaxInt64/2/max(t.Size(), 1) {
		return valueError("count", count, "a count of zero or more whose bytes fit in 62 bits")
	}
	if value.Pointer != nil {
		if err := m.first.set(t, value); err != nil {
			return err
		}
	}
	if o.Tag != backends.NoTag && r.pauses.ever.Load() != 0 && r.pausable(o.Allocator) {
		m.tag = o.Tag
	}
	err := r.allocate(m, o.Allocator, o.Device, count*t.Size(), o.Stream, false)
	if o.OrPageable && o.Allocator.Kind() == backends.Pinned && outOfMemory(err) {
		pattern, library := m.first, m.library
		*m = Memory{}
		m.first, m.library = pattern, library
		err = r.allocate(m, backends.Temporaries(backends.SpaceHost)[0], backends.HostDevice, count*t.Size(), 0, false)
	}
	if err != nil {
		return err
	}
	if value.Pointer == nil || count == 0 {
		return nil
	}
	whole := piece{memory: m, address: m.region.Address, stream: o.Stream}
	if err := whole.fillContiguous(m.first.bytes(), count, o.Transfer); err != nil {
		m.Release()
		return err
	}
	return nil
}

// pausable reports whether memory of an allocator can be paused.
func (r *Runtime) pausable(a backends.Allocator) bool {
	return a >= 0 && int(a) < allocatorSlots && r.byAllocator[a].pauser != nil
}
