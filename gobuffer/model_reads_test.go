package gobuffer_test

import (
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func (w *modelWorld) readArray() {
	if a := w.some(); a != nil {
		w.read(a)
	}
}

func (w *modelWorld) read(a *held) {
	w.logf("the host reads %s", a.name)
	w.orderForHost(a, false)
	var h *gobuffer.Handle
	if w.call(func() (err error) { h, err = a.array.Access(backends.SpaceHost, -1); return err }) != nil {
		return
	}
	if h.Temporary() && a.cells != nil {
		w.temporaryOf(a, user{backends.SpaceHost, -1}, h)
	}
	var got []int64
	for i := range h.Layout().Count() {
		got = append(got, number(a.kind(),
			hostBytes(h.Address()+backends.Address(elementOffset(h.Layout(), i)), a.kind().Size())))
	}
	w.compare("the host in "+a.name, a.values(), got)
	_ = w.call(h.Release)
}

func (w *modelWorld) text() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Text(0)", a.name)
	w.order(a, a.indices(), false)
	for _, v := range a.values() {
		if !v.known {
			return
		}
	}
	plain := w.array(place{backends.Malloc, -1}.options(0),
		model{a.kind(), []int{a.array.Size()}, image(a.kind(), a.values())})
	defer plain.Close()
	want, err := plain.Text(0)
	require.NoError(w.t, err)
	var got string
	if w.call(func() (err error) { got, err = a.array.Text(0); return err }) == nil && got != want {
		w.t.Errorf("wrong value seen by Text: %s, not %s", got, want)
	}
}

// readMemory asks for the elements where they lie in order.
func (w *modelWorld) readMemory() {
	a := w.some()
	if a == nil || a.cells == nil || a.array.Size() == 0 || !a.array.Layout().ContiguousC() ||
		a.array.Accessible(backends.SpaceHost) {
		return
	}
	w.logf("%s's memory is read", a.name)
	w.order(a, a.indices(), false)
	size := a.array.Layout().NBytes()
	target := w.array(place{backends.Malloc, -1}.options(0), model{arrayiface.Uint8, []int{size}, make([]byte, size)})
	if w.call(func() error {
		return a.cells.memory.Read(target.Address(), a.array.Address(), size,
			a.array.Stream())
	}) != nil {
		clear(hostBytes(target.Address(), size))
		w.abandoned = append(w.abandoned, target)
		return
	}
	defer target.Close()
	w.compare("Memory.Read in "+a.name, a.values(), numbersIn(a.kind(), hostBytes(target.Address(), size)))
}

func numbersIn(kind arrayiface.ElementType, data []byte) (list []int64) {
	for ; len(data) > 0; data = data[kind.Size():] {
		list = append(list, number(kind, data))
	}
	return list
}

// truth compares what is in memory now.
func (w *modelWorld) truth(what string, h *held) {
	if h.cells == nil || len(h.indices()) == 0 {
		return
	}
	all := w.peek(h.cells.memory)
	var got []int64
	for _, i := range h.indices() {
		got = append(got, number(h.kind(), all[i*h.kind().Size():]))
	}
	w.compare(what+" in "+h.name, h.values(), got)
}

// seen looks at ordinary host memory, which is read without asking anybody.
func (w *modelWorld) seen(h *held) {
	if h.cells != nil && h.cells.memory.Region().Allocator.Kind() == backends.Pageable {
		w.truth("who asked nobody", h)
	}
}

func (w *modelWorld) synchronize() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Synchronize()", a.name)
	w.order(a, a.indices(), false)
	if w.call(a.array.Synchronize) == nil {
		w.truth("who synchronised", a)
	}
}

func (w *modelWorld) hostWrite() {
	a := w.some()
	if a == nil || !(a.array.Accessible(backends.SpaceHost) || w.mappable(a)) {
		return
	}
	list := w.fresh(a.array.Size())
	w.logf("the host writes to %s", a.name)
	w.orderForHost(a, true)
	var h *gobuffer.Handle
	if w.call(func() (err error) { h, err = a.array.Access(backends.SpaceHost, -1); return err }) != nil {
		return
	}
	for i, v := range list {
		at := h.Address() + backends.Address(elementOffset(h.Layout(), i))
		copy(hostBytes(at, a.kind().Size()), element(a.kind(), int(v.number)))
	}
	a.store(list)
	a.changes(a.all()) // perhaps in another address space
	require.NoError(w.t, a.array.Changed())
	_ = w.call(h.Release)
}
