package gobuffer_test

import (
	"errors"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// copyBlocks writes some elements of arrays from some of others by one call. The indices may be repeated, below zero or
// out of range, and may be on their way to a device.
func (w *modelWorld) copyBlocks() {
	var to, from []*held
	n, least := w.random.IntN(6), [2]int{100, 100}
	for range 1 + w.random.IntN(2) {
		a, b := w.some(), w.some()
		if a == nil || b == nil || a.array.Size() == 0 || b.array.Size() == 0 {
			return
		}
		to, from = append(to, a), append(from, b)
		least[0], least[1] = min(least[0], a.array.Size()), min(least[1], b.array.Size())
	}
	di, si := w.blockNumbers(n, least[0]), w.blockNumbers(n, least[1])
	wrong := n > 0 && w.random.IntN(12) == 0
	if wrong {
		si[w.random.IntN(n)] = 1000
	}
	first, second := w.indexArray(di), w.indexArray(si)
	var destinations, sources []*gobuffer.Array
	for i := range to {
		w.logf("    %s[%v] from %s[%v]", to[i].name, di, from[i].name, si)
		w.order(from[i], from[i].indices(), false)
		w.order(to[i], to[i].indices(), true)
		destinations, sources = append(destinations, to[i].array), append(sources, from[i].array)
	}
	w.logf("CopyBlocks of these, by indices at %s and %s", first.Allocator(), second.Allocator())
	err := w.call(func() error {
		err := gobuffer.CopyBlocks(destinations, first, sources, second)
		if wrong {
			err = w.outOfRange(err, to)
		}
		return err
	})
	closeAll(w.t, first, second)
	switch {
	case err != nil:
		for _, h := range to {
			h.changes(h.all())
			for _, i := range h.indices() {
				h.cells.values[i].known = false
			}
		}
		return
	case wrong:
		return
	}
	for i, h := range to {
		list, of := h.values(), from[i].values()
		for k := range di {
			list[(di[k]+len(list))%len(list)] = of[(si[k]+len(of))%len(of)]
		}
		h.store(list)
	}
	for _, h := range to {
		w.seen(h)
	}
}

// outOfRange expects the error of the call, or of the first wait for what it was to write.
func (w *modelWorld) outOfRange(err error, to []*held) error {
	for _, h := range to {
		if err == nil {
			err = h.array.Synchronize()
		}
	}
	if err == nil {
		w.t.Errorf("nobody is told of an index out of range")
		return nil
	}
	var bad *gobuffer.ArgumentError
	if !errors.As(err, &bad) || bad.Fault != gobuffer.BadIndex || bad.Value != "1000" {
		return err // of a device
	}
	return nil
}

func (w *modelWorld) blockNumbers(n, extent int) (list []int) {
	for range n {
		list = append(list, w.random.IntN(2*extent)-extent)
	}
	return list
}

// indexArray holds numbers on the host, or a device, perhaps later.
func (w *modelWorld) indexArray(list []int) *gobuffer.Array {
	kind := []arrayiface.ElementType{arrayiface.Int32, arrayiface.Int64}[w.random.IntN(2)]
	host := w.indices(place{backends.Malloc, backends.HostDevice}, kind, list)
	if len(list) == 0 || w.random.IntN(3) == 0 {
		return host
	}
	p := w.place()
	o := p.options(gobuffer.Async)
	w.give(&o)
	there, err := w.runtime.NewArray(kind, []int{len(list)}, o)
	if err != nil {
		return host // there is no room
	}
	require.NoError(w.t, there.Write(host))
	require.NoError(w.t, host.Close())
	return there
}
