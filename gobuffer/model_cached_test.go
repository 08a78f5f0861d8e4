package gobuffer_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// keep is a temporary that hamr has to hand out again: of these elements, until some are written.
type keep struct {
	address   backends.Address
	at        []int // the cells, of all of which hamr knows the first and the last
	user      user
	temporary *cells
}

// cache has an array keep temporaries, or not any more.
func (w *modelWorld) cache() {
	a := w.some()
	if a == nil {
		return
	}
	on := w.random.IntN(4) > 0
	w.logf("%s.Cached(%t)", a.name, on)
	if !on && a.array.IsCached() {
		a.changes(a.indices())
	}
	require.NoError(w.t, a.array.Cached(on))
}

// changed tells hamr what nobody needs to tell.
func (w *modelWorld) changed() {
	if a := w.some(); a != nil {
		w.logf("%s.Changed()", a.name)
		require.NoError(w.t, a.array.Changed())
		a.changes(a.indices())
	}
}

// outlive has a handle of a Cached array's end after the array has turned from the stream that both
// had, which few walks come to by chance; then nobody names it, and it may end.
func (w *modelWorld) outlive() {
	a := w.some()
	if a == nil {
		return
	}
	was := a.array.Stream()
	for _, s := range w.allStreams() {
		space, err := backends.ParseSpace(s.fake.Name())
		if s.stream != was || err != nil {
			continue
		}
		w.logf("%s.Cached(true)", a.name)
		require.NoError(w.t, a.array.Cached(true))
		at := &w.handles[w.random.IntN(len(w.handles))]
		w.access(at, a, space, s.device, reads)
		w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
		w.useAgain(*at)
		w.release(at)
		w.end(was)
	}
}

func (w *modelWorld) dropKept() {
	w.logf("DropKept()")
	w.runtime.DropKept()
	for _, h := range w.holders() {
		if h.cells != nil {
			h.cells.keeps = nil
		}
	}
}

// changes is after elements were written, or may have been: hamr hands out no more what it
// kept of any between the first and the last.
func (h *held) changes(at []int) {
	if h.cells == nil || len(at) == 0 {
		return
	}
	low, high := slices.Min(at), slices.Max(at)
	h.cells.keeps = slices.DeleteFunc(h.cells.keeps, func(k *keep) bool {
		return slices.Min(k.at) <= high && low <= slices.Max(k.at)
	})
}

// foreignWrite is what users do after others than hamr wrote elements of h, and before anybody
// asks for them.
func (w *modelWorld) foreignWrite(h *held) {
	m, layout := h.cells.memory, h.layout()
	if h.handle != nil {
		m = h.handle.Memory()
	}
	a := gobuffer.View(m.Retain(), h.address(), layout, layout.Count(), false,
		gobuffer.Options{Allocator: m.Region().Allocator, Device: m.Region().Device}).Lent()
	require.NoError(w.t, a.Changed())
	require.NoError(w.t, a.Close())
}

// temporaryOf is what is in the temporary that a user was handed, who asked for a's elements:
// a new one, save where nothing has changed since a Cached array was last asked.
func (w *modelWorld) temporaryOf(a *held, u user, h *gobuffer.Handle) *cells {
	if u.space == backends.SpaceHost {
		u.device = backends.HostDevice
	}
	if a.cells == nil {
		return w.newCells(h.Memory(), a.kind())
	}
	at := a.indices()
	i := -1
	if a.array.IsCached() {
		i = slices.IndexFunc(a.cells.keeps, func(k *keep) bool {
			return k.user == u && k.address == a.array.Address() && slices.Equal(k.at, at)
		})
	}
	for _, k := range a.cells.keeps {
		if k.temporary.memory == h.Memory() {
			w.logf("    it is kept: %s", k.temporary.name)
			return k.temporary
		}
	}
	if i >= 0 && !w.options.faults && w.options.single == nil && w.options.Memory == 0 {
		w.t.Errorf("copied again: nothing has changed since %s", a.cells.keeps[i].temporary.name)
	}
	c := w.newCells(h.Memory(), a.kind())
	for i, v := range a.values() {
		c.values[i] = v
	}
	if h.Kept() && len(at) > 0 {
		w.logf("    it is to be kept: %s", c.name)
		if i >= 0 {
			a.cells.keeps = slices.Delete(a.cells.keeps, i, i+1)
		}
		a.cells.keeps = append(a.cells.keeps, &keep{a.array.Address(), at, u, c})
	}
	return c
}
