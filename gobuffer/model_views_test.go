package gobuffer_test

import (
	"github.com/stretchr/testify/assert"

	"hamr/backends"
)

// mappable reports whether the host has to map a's memory, and can.
func (w *modelWorld) mappable(a *held) bool {
	if a.cells == nil || a.array.Size() == 0 {
		return false
	}
	mapper, ok := backends.As[backends.Mapper](a.cells.fakeIn(w))
	return ok && mapper.Maps(a.array.Allocator())
}

// orderForHost is order before the host has elements by Access: all of the memory where it
// maps that.
func (w *modelWorld) orderForHost(a *held, writes bool) {
	if w.mappable(a) {
		w.order(a, nil, true)
		return
	}
	w.order(a, a.indices(), writes)
}

func (w *modelWorld) viewOfSome() {
	if a := w.some(); a != nil {
		w.viewOnHost(&w.views[w.random.IntN(len(w.views))], a)
	}
}

// viewOnHost has the host map a's memory for as long as the view is held.
func (w *modelWorld) viewOnHost(at **held, a *held) {
	w.releaseView(at)
	if !w.mappable(a) {
		return
	}
	v := &held{name: w.name("v")}
	w.logf("%s = %s.Access(host)", v.name, a.name)
	w.orderForHost(a, true)
	if w.call(func() (err error) { v.handle, err = a.array.Access(backends.SpaceHost, -1); return err }) != nil {
		return
	}
	assert.False(w.t, v.handle.Temporary())
	assert.True(w.t, v.handle.Memory().Mapped())
	v.hold(a.cells)
	v.at = a.indices()
	*at = v
	w.compareView(v)
}

func (w *modelWorld) compareView(v *held) {
	var got []int64
	for i := range v.handle.Layout().Count() {
		at := v.handle.Address() + backends.Address(elementOffset(v.handle.Layout(), i))
		got = append(got, number(v.kind(), hostBytes(at, v.kind().Size())))
	}
	w.compare("the host in "+v.name, v.values(), got)
}

func (w *modelWorld) writeSomeView() { w.writeView(w.views[w.random.IntN(len(w.views))]) }

// writeView looks at what hamr has done meanwhile, and writes to the elements.
func (w *modelWorld) writeView(v *held) {
	if v == nil {
		return
	}
	w.logf("the host reads and writes %s", v.name)
	w.compareView(v)
	// Copies from it may not have read it yet: hamr is asked to wait.
	waited := false
	for _, a := range w.held {
		waited = waited || a != nil && a.cells == v.cells && w.call(a.array.Synchronize) == nil
	}
	if !waited {
		return
	}
	w.overwrite(v)
}

// overwrite is the host's.
func (w *modelWorld) overwrite(v *held) {
	list := w.fresh(v.handle.Layout().Count())
	for i, e := range list {
		at := v.handle.Address() + backends.Address(elementOffset(v.handle.Layout(), i))
		copy(hostBytes(at, v.kind().Size()), element(v.kind(), int(e.number)))
	}
	v.store(list)
	if v.at != nil {
		v.changes(v.all()) // they are in another address space, where hamr compares nothing
	}
	w.foreignWrite(v)
}

func (w *modelWorld) releaseSomeView() { w.releaseView(&w.views[w.random.IntN(len(w.views))]) }

func (w *modelWorld) releaseView(at **held) {
	v := *at
	if v == nil {
		return
	}
	w.logf("release %s", v.name)
	*at = nil
	_ = w.call(v.handle.Release)
	v.drop()
}

// unmap is what users do before a device may use memory.
func (w *modelWorld) unmap(c *cells) {
	for i, v := range w.views {
		if v != nil && v.cells == c {
			w.releaseView(&w.views[i])
		}
	}
}
