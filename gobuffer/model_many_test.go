package gobuffer_test

import (
	"github.com/stretchr/testify/require"

	"hamr/gobuffer"
)

// copyMany writes to some parts of arrays what is in others, by one call: of any arrays, or piece
// by piece from one to another.
func (w *modelWorld) copyMany() {
	var to, from []*held
	defer func() {
		for _, h := range append(to, from...) {
			require.NoError(w.t, h.array.Close())
			h.drop()
		}
	}()
	if w.random.IntN(2) == 0 {
		to, from = w.piecesOfTwo()
	} else {
		to, from = w.partsOfAny()
	}
	w.copyParts(to, from)
}

func (w *modelWorld) piecesOfTwo() (to, from []*held) {
	a, b := w.some(), w.some()
	if a == nil || b == nil || a == b {
		return nil, nil
	}
	n := min(a.array.Size(), b.array.Size())
	length := 1 + w.random.IntN(3)
	for at := 0; at+length <= n; at += length {
		to, from = append(to, w.piece(a, at, length)), append(from, w.piece(b, at, length))
	}
	w.random.Shuffle(len(to), func(i, j int) { to[i], to[j], from[i], from[j] = to[j], to[i], from[j], from[i] })
	return to, from
}

func (w *modelWorld) partsOfAny() (to, from []*held) {
	for range w.random.IntN(6) {
		a, b := w.some(), w.some()
		if a == nil || b == nil || a.array.Size() == 0 || b.array.Size() == 0 {
			continue
		}
		n := 1 + w.random.IntN(min(a.array.Size(), b.array.Size()))
		to, from = append(to, w.piece(a, w.random.IntN(a.array.Size()-n+1), n)),
			append(from, w.piece(b, w.random.IntN(b.array.Size()-n+1), n))
	}
	return to, from
}

// piece is n elements of h's from one on, which the caller closes.
func (w *modelWorld) piece(h *held, start, n int) *held {
	array, err := h.array.Slice(0, start, start+n, 1)
	require.NoError(w.t, err)
	v := &held{name: h.name + "'", array: array.Lent()}
	v.hold(h.cells)
	w.inherit(v, h)
	return v
}

func (w *modelWorld) copyParts(to, from []*held) {
	var destinations, sources []*gobuffer.Array
	for i := range to {
		w.logf("    %s%v from %s%v", to[i].name, to[i].indices(), from[i].name, from[i].indices())
		w.order(from[i], from[i].indices(), false)
		w.order(to[i], to[i].indices(), true)
		destinations, sources = append(destinations, to[i].array), append(sources, from[i].array)
	}
	w.logf("CopyMany of these")
	if w.call(func() error { return gobuffer.CopyMany(destinations, sources) }) != nil {
		for _, h := range to {
			h.changes(h.all())
			for _, i := range h.indices() {
				h.cells.values[i].known = false
			}
		}
		return
	}
	for i, h := range to {
		h.store(from[i].values())
	}
	for _, h := range to {
		w.seen(h)
	}
}
