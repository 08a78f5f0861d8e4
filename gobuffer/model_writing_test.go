package gobuffer_test

import (
	"github.com/stretchr/testify/assert"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// lend has the host or a device use some array for reading or writing, from the access to its
// end: what others do meanwhile is what may happen to any memory.
func (w *modelWorld) lend() {
	a := w.some()
	if a == nil {
		return
	}
	mode := gobuffer.Mode(w.random.IntN(3))
	if a.array.ReadOnly() {
		mode = gobuffer.Read
	}
	u := user{backends.SpaceHost, -1}
	if spaces := w.spaces(); w.random.IntN(3) > 0 {
		u = user{spaces[w.random.IntN(len(spaces))], w.random.IntN(2)}
		if owner := a.array.Owner(); owner >= 0 && w.random.IntN(2) == 0 {
			u.device = owner
		}
	}
	w.lendTo(a, u, mode)
}

func (w *modelWorld) lendTo(a *held, u user, mode gobuffer.Mode) {
	h := w.lent(a, u, mode)
	if h == nil {
		return
	}
	target, closed := a, func() {}
	if a.array.Size() > 0 {
		target, closed = w.part(a, a.array.Size()) // with the stream that a has now
	}
	defer closed()
	w.use(h, u, mode)
	if mode.Writes() && a.array.Size() > 0 {
		w.logf("    nobody else gets or changes the elements")
		_, err := a.array.AccessMode(backends.SpaceHost, -1, gobuffer.Read)
		assert.ErrorIs(w.t, err, gobuffer.ErrInUse)
		one := w.scalar(arrayiface.Int64, 1)
		assert.ErrorIs(w.t, a.array.Fill(one), gobuffer.ErrInUse)
		_ = one.Close()
	}
	if w.random.IntN(3) == 0 {
		w.progress()
	}
	if w.random.IntN(4) == 0 {
		w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
	}
	if w.random.IntN(5) > 0 {
		w.commit(h, target, mode)
	}
	w.logf("release %s", h.name)
	w.leave(h)
	_ = w.call(h.handle.Release)
	h.drop()
}

// lent is an access for a mode; nil where there is none.
func (w *modelWorld) lent(a *held, u user, mode gobuffer.Mode) *held {
	h := &held{name: w.name("h"), device: u.device}
	w.logf("%s = %s.AccessMode(%s, %d, %s)", h.name, a.name, u.space, u.device, mode)
	if u.space == backends.SpaceHost {
		inPlace := a.array.Accessible(u.space) || w.mappable(a)
		if inPlace {
			w.orderForHost(a, mode.Writes())
		} else {
			w.order(a, a.indices(), false)
		}
	} else {
		w.unmap(a.cells)
		inPlace := a.cells != nil && a.array.Accessible(u.space) && (u.device == a.array.Owner() ||
			a.array.Allocator().Kind() == backends.Managed)
		w.order(a, a.indices(), inPlace && mode.Writes())
	}
	if w.call(func() (err error) { h.handle, err = a.array.AccessMode(u.space, u.device, mode); return err }) != nil {
		return nil
	}
	if mode.Writes() {
		a.changes(a.indices())
	}
	switch {
	case h.handle.Memory() == nil:
		assert.NoError(w.t, h.handle.Release())
		return nil
	case h.handle.Temporary() && !mode.Writes():
		h.hold(w.temporaryOf(a, u, h.handle))
	case h.handle.Temporary():
		h.hold(w.newCells(h.handle.Memory(), a.kind()))
		if mode != gobuffer.Write {
			h.store(a.values())
		}
	default:
		h.hold(a.cells)
		h.at = a.indices()
	}
	return h
}

// use has a user read and write the elements as the mode says.
func (w *modelWorld) use(h *held, u user, mode gobuffer.Mode) {
	if len(h.indices()) == 0 {
		return
	}
	if u.space != backends.SpaceHost {
		what := reads
		switch {
		case mode == gobuffer.Write:
			what = overwrites
		case mode == gobuffer.ReadWrite:
			what = changes
		}
		w.launch(h, u.device, h.handle.Stream(), what)
		return
	}
	if mode != gobuffer.Write {
		w.compareView(h)
	}
	if mode.Writes() {
		w.overwrite(h)
	}
}

// commit writes back, where there is something to write back.
func (w *modelWorld) commit(h, target *held, mode gobuffer.Mode) {
	w.logf("%s.Commit()", h.name)
	back := h.handle.Temporary() && mode.Writes()
	if back {
		w.order(target, target.indices(), true)
	}
	if err := w.call(h.handle.Commit); err != nil {
		w.failed(target, err, target.indices())
		return
	}
	if back {
		target.store(h.values())
		w.seen(target)
	}
}

// writeMemory writes the elements where they lie in order, from memory that is another's at once.
func (w *modelWorld) writeMemory() {
	a := w.some()
	if a == nil || a.cells == nil || a.array.Size() == 0 || a.array.ReadOnly() || !a.array.Layout().ContiguousC() {
		return
	}
	w.logf("%s's memory is written", a.name)
	list := w.fresh(a.array.Size())
	size := a.array.Layout().NBytes()
	source := w.array(place{backends.Malloc, -1}.options(0), model{arrayiface.Uint8, []int{size}, image(a.kind(), list)})
	before := a.values()
	w.order(a, a.indices(), true)
	var done bool
	err := w.call(func() (err error) {
		done, err = a.cells.memory.Write(a.array.Address(), source.Address(), size, a.array.Stream(), a.array.Transfer())
		return err
	})
	for i := range hostBytes(source.Address(), size) {
		hostBytes(source.Address(), size)[i] ^= 0xFF
	}
	source.Close()
	switch {
	case err != nil:
		w.failed(a, err, a.indices())
	case done:
		a.store(list)
		w.seen(a)
	default:
		a.store(before)
	}
}
