package gobuffer_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// put makes an array one of w's.
func (w *modelWorld) put(at **held, name string, array *gobuffer.Array, list []value) *held {
	h := &held{name: name, array: array}
	h.hold(w.newCells(array.Memory(), array.Type()))
	h.store(list)
	*at = h
	w.seen(h)
	return h
}

// makeArray makes an array in one of three ways.
func (w *modelWorld) makeArray() {
	at := w.slot()
	w.close(at)
	p, kind, n := w.place(), w.elementType(), 1+w.random.IntN(12)
	o := p.options(gobuffer.Transfer(w.random.IntN(3)))
	w.give(&o)
	name := w.name("a")
	var array *gobuffer.Array
	switch w.random.IntN(5) {
	case 0:
		w.zeroed(at, name, kind, n, o)
		return
	case 1, 2:
		v := w.fresh(1)[0]
		w.logf("%s = new %s %s[%d] of %d on stream %#x, %s", name, p, kind, n, v.number, uintptr(o.Stream), o.Transfer)
		if w.call(func() (err error) {
			array, err = w.runtime.NewFilledArray(kind, []int{n}, o, pointerTo(&v.number))
			return err
		}) != nil {
			return
		}
		list := make([]value, n)
		for i := range list {
			list[i] = v
		}
		w.put(at, name, array, list)
		return
	}
	list := w.fresh(n)
	w.logf("%s = new %s %s[%d] from %d on, on stream %#x, %s", name, p, kind, n, list[0].number, uintptr(o.Stream),
		o.Transfer)
	from := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), model{kind, []int{n}, image(kind, list)})
	defer from.Close()
	if w.call(func() (err error) { array, err = from.Copy(o, kind); return err }) == nil {
		w.put(at, name, array, list)
	}
}

// zeroed makes an array over memory that was taken on another stream.
func (w *modelWorld) zeroed(at **held, name string, kind arrayiface.ElementType, n int, o gobuffer.Options) {
	w.logf("%s = %s:%d %s[%d] of zeros, taken on stream %#x, used on the default one", name, o.Allocator, o.Device, kind,
		n, uintptr(o.Stream))
	var m *gobuffer.Memory
	if w.call(func() (err error) {
		m, err = w.runtime.Allocate(o.Allocator, o.Device, n*kind.Size(), o.Stream, true)
		return err
	}) != nil {
		return
	}
	layout, err := arrayiface.NewLayout(kind, []int{n}, nil)
	require.NoError(w.t, err)
	o.Stream = 0
	list := make([]value, n)
	for i := range list {
		list[i].known = true
	}
	w.put(at, name, gobuffer.View(m, m.Region().Address, layout, n, false, o), list)
}

// copyArray copies an array to another place.
func (w *modelWorld) copyArray() {
	at, b := w.slot(), w.some()
	if b == nil || b == *at {
		return
	}
	w.close(at)
	p, kind := w.place(), b.kind()
	if w.random.IntN(3) == 0 {
		kind = w.elementType()
	}
	o := p.options(gobuffer.Transfer(w.random.IntN(3)))
	w.give(&o)
	if w.random.IntN(2) == 0 {
		o.Stream, o.StreamOf = b.array.Stream(), b.array.Options().StreamOf
	}
	name := w.name("a")
	w.logf("%s = %s.Copy(%s, %s, stream %#x, %s)", name, b.name, p, kind, uintptr(o.Stream), o.Transfer)
	w.order(b, b.indices(), false)
	var array *gobuffer.Array
	if w.call(func() (err error) { array, err = b.array.Copy(o, kind); return err }) == nil {
		w.put(at, name, array, b.values())
	}
}

// view makes an array of some elements of another one.
func (w *modelWorld) view() {
	at, b := w.slot(), w.some()
	if b == nil || b == *at || b.cells == nil {
		return
	}
	w.close(at)
	size := b.array.Size()
	start, stop, step := w.random.IntN(size+1), size, 1+w.random.IntN(3)
	if w.random.IntN(3) == 0 && size > 0 {
		start, stop, step = size-1, -1, -step
	} else {
		stop = start + w.random.IntN(size-start+1)
	}
	array, err := b.array.Slice(0, start, stop, step)
	require.NoError(w.t, err)
	h := &held{name: w.name("a"), array: array}
	h.hold(b.cells)
	w.inherit(h, b)
	w.logf("%s = %s%v", h.name, b.name, h.indices())
	*at = h
}

// adopt takes memory of another library's that writes it on a stream just then.
func (w *modelWorld) adopt() {
	at := w.slot()
	w.close(at)
	f := w.devices[w.random.IntN(2)]
	choice := slices.DeleteFunc(allocatorsOf(f), func(a backends.Allocator) bool { return a.Kind() == backends.Pinned })
	allocator, device, kind, n := choice[w.random.IntN(len(choice))], w.random.IntN(2), w.elementType(),
		1+w.random.IntN(12)
	producer, own := w.streamOf(f, device), w.streamOf(f, device)
	region := backends.Region{Allocator: allocator, Device: device}
	var err error
	if region.Address, err = f.Allocate(backends.Request{Allocator: allocator, Device: device, Size: n * kind.Size(),
		Stream: producer}); err != nil {
		return // for want of memory
	}
	size, name := n*kind.Size(), w.name("a")
	w.logf("%s = adopted %s:%d %s[%d], written on %s, own stream %#x", name, allocator, device, kind, n,
		w.streamName(streamID{f, device, producer}), uintptr(own))
	m, err := w.runtime.Adopt(region, size, 0, func() {
		f.Poke(region.Address, make([]byte, size))
		err := f.Free(region, size, 0)
		for again := (*backends.NotFreedError)(nil); errors.As(err, &again); {
			err = f.Free(region, size, 0)
		}
		if err != nil {
			w.logf("    the owner cannot free it")
		}
	})
	require.NoError(w.t, err)
	layout, err := arrayiface.NewLayout(kind, []int{n}, nil)
	require.NoError(w.t, err)
	o := place{allocator, device}.options(gobuffer.Transfer(w.random.IntN(3)))
	h := w.put(at, name, gobuffer.View(m, region.Address, layout, n, false, o), make([]value, n))
	h.cells.adopted = true
	if w.call(func() error { return h.array.SetStream(own, o.Transfer) }) != nil {
		w.logf("    on the default stream")
	}
	k := w.launch(h, device, producer, overwrites)
	w.logf("    %s", fmt.Sprintf("%s.After(%s)", name, w.streamName(k.stream)))
	if w.call(func() error { return m.After(h.array.Stream(), producer) }) == nil {
		w.told(h.cells, k.stream)
	}
}

func (w *modelWorld) elementType() arrayiface.ElementType {
	return [...]arrayiface.ElementType{arrayiface.Int32, arrayiface.Int32, arrayiface.Int32, arrayiface.Int64,
		arrayiface.Float64}[w.random.IntN(5)]
}
