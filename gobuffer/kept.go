package gobuffer

import (
	"errors"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
)

// DropKept gives up what Cached arrays keep.
func (r *Runtime) DropKept() {
	if r != nil {
		r.kept.drop(func(*keeping) bool { return true })
	}
}

// LeaveKept makes the temporaries that Cached arrays keep independent of a stream that is about to end and that no
// array uses any more. See Memory.Forget.
func (r *Runtime) LeaveKept(s backends.Stream) error {
	if err := r.check(); err != nil {
		return err
	}
	//mutate:skip a temporary that is kept names a stream that has ended
	return r.kept.leave(s, func(*keeping) bool { return true })
}

// find returns what is kept of source's elements for code in space s on a device, with a
// new reference; without memory if there is nothing.
func (k *kept) find(source piece, s backends.Space, device int) (made piece) {
	if k.some.Load() == 0 {
		return piece{}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, e := range k.list {
		if e.made.memory != nil && e.isOf(source, s, device) {
			e.made.memory.Retain()
			return e.made
		}
	}
	return piece{}
}

func (e *keeping) isOf(source piece, s backends.Space, device int) bool {
	return e.space == s && e.device == device && e.isOfElements(source)
}

func (e *keeping) isOfElements(p piece) bool {
	return e.source.memory == p.memory && e.source.address == p.address && e.source.layout.Equal(p.layout)
}

// leave makes the wanted temporaries independent of a stream.
func (k *kept) leave(s backends.Stream, wanted func(*keeping) bool) (failed error) {
	if k.some.Load() == 0 {
		return nil
	}
	var using []*Memory
	k.mutex.Lock()
	for _, e := range k.list {
		m := e.made.memory
		if m == nil || !wanted(e) {
			continue
		}
		//mutate:remove a temporary that is kept names a stream that its array left while a handle had it
		m.turns.Add(1) // who has it has perhaps yet to use the stream
		if m.Uses(s) {
			using = append(using, m.Retain())
		}
	}
	k.mutex.Unlock()
	for _, m := range using {
		failed = errors.Join(failed, m.Forget(s), m.Release())
	}
	return failed
}

// begin is called before a temporary is made. Any later change of the elements removes what it returns.
func (k *kept) begin(source piece, s backends.Space, device int) *keeping {
	e := &keeping{source: source, space: s, device: device}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	source.memory.keeps = true
	k.list = append(k.list, e)
	k.some.Store(int64(len(k.list)))
	return e
}

// end undoes begin if nothing is to be kept.
func (k *kept) end(begun *keeping) { k.drop(func(e *keeping) bool { return e == begun }) }

// finish keeps the temporary that was made, and reports whether it does. It does not if the elements have changed since
// begin, or if somebody else has made one meanwhile.
func (k *kept) finish(begun *keeping, made piece) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	at := slices.Index(k.list, begun)
	//mutate:insert a temporary is kept whose elements changed while they were copied
	//mutate:with if at < 0 { k.list, at = append(k.list, begun), len(k.list) }
	if at < 0 {
		return false
	}
	for _, e := range k.list {
		if e.made.memory != nil && e.isOf(begun.source, begun.space, begun.device) {
			k.list = slices.Delete(k.list, at, at+1)
			k.some.Store(int64(len(k.list)))
			return false
		}
	}
	made.memory.Retain()
	begun.made = made
	return true
}

// changed drops the temporaries of elements that p has some of. It is called after the elements were written, or after
// a device's write was recorded: a copy that was made meanwhile may hold some old and some new elements.
func (k *kept) changed(p piece) {
	if k.some.Load() == 0 {
		return
	}
	//mutate:replace a temporary is kept that hamr has written
	//mutate:with (e.made.memory != nil && e.made.mayShare(p)) => false
	k.drop(func(e *keeping) bool { return e.source.mayShare(p) || (e.made.memory != nil && e.made.mayShare(p)) })
}

// changedBytes is changed for host memory of which nothing is known.
func (k *kept) changedBytes(at backends.Address, size int) {
	k.changedPart(piece{address: at}, size)
}

// changedPart is changed for size bytes from p's address on.
func (k *kept) changedPart(p piece, size int) {
	if k.some.Load() == 0 {
		return
	}
	p.layout = arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{size}, Strides: []int{1}}
	k.changed(p)
}

// ends drops what is kept of memory that is no more.
func (k *kept) ends(m *Memory) { k.drop(func(e *keeping) bool { return e.source.memory == m }) }

// dropOf drops what is kept in memory of a backend's, and reports whether there was any.
func (k *kept) dropOf(b backends.Backend) bool {
	return k.drop(func(e *keeping) bool { return e.made.memory != nil && e.made.memory.backend == b })
}

// drop drops what is wanted, and reports whether that was anything.
func (k *kept) drop(wanted func(*keeping) bool) bool {
	if k.some.Load() == 0 {
		return false
	}
	var dropped []*keeping
	k.mutex.Lock()
	k.list = slices.DeleteFunc(k.list, func(e *keeping) bool {
		is := wanted(e)
		if is {
			dropped = append(dropped, e)
		}
		return is
	})
	k.some.Store(int64(len(k.list)))
	k.mutex.Unlock()
	// Without the mutex: it may wait for a device.
	for _, e := range dropped {
		m := e.made.memory
		if m == nil {
			continue
		}
		r := m.runtime
		if r.tracing() {
			r.tracef("drop the kept temporary at %#x of %d bytes", e.made.address, m.Size())
		}
		if err := m.Release(); err != nil && r.tracing() {
			r.tracef("while giving back a kept temporary: %v", err)
		}
	}
	return len(dropped) > 0
}
