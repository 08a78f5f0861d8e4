package gobuffer_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func TestElementsInUseForWritingAreNobodyElses(t *testing.T) {
	modes := []gobuffer.Mode{gobuffer.Read, gobuffer.Write, gobuffer.ReadWrite}
	for _, p := range places(1) {
		w := newWorld(t, 1, late)
		a := w.array(p.options(gobuffer.Async), before)
		part, rest, twin := w.slice(a, 3, 6, 1), w.slice(a, 0, 3, 1), w.slice(a, 2, 6, 1)
		for _, u := range users[:2] {
			for _, first := range modes {
				h := users[0].lend(t, part, first)
				for _, second := range modes {
					refused := first.Writes() || second.Writes()
					for _, same := range []*gobuffer.Array{a, part, twin} {
						other, err := same.AccessMode(u.space, u.device, second)
						if refused {
							assert.ErrorIs(t, err, gobuffer.ErrInUse, "%s, %s, %s", p, first, second)
							continue
						}
						require.NoError(t, err)
						require.NoError(t, other.Release())
					}
					other := u.lend(t, rest, second)
					require.NoError(t, other.Release())
				}
				require.NoError(t, h.Release())
			}
		}
		closeAll(t, a, part, rest, twin)
	}
}

// Inside an access its elements are used as those of any array are, by way of another one.
func TestAccessesInsideAnAccess(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for _, outer := range users[:2] {
			for _, inner := range users[:2] {
				a := w.array(w.withStream(p), before)
				h := outer.lend(t, a, gobuffer.ReadWrite)
				own, err := h.Array()
				require.NoError(t, err)
				part := w.slice(own, 0, 6, 1)
				next := inner.lend(t, part, gobuffer.ReadWrite)
				assert.NotEqual(t, h.Holder(), next.Holder())
				_, err = a.AccessMode(backends.SpaceHost, -1, gobuffer.Read)
				require.ErrorIs(t, err, gobuffer.ErrInUse)
				_, err = own.AccessMode(backends.SpaceHost, -1, gobuffer.Read)
				require.ErrorIs(t, err, gobuffer.ErrInUse)
				nested, err := next.Array()
				require.NoError(t, err)
				require.NoError(t, nested.Fill(w.seven(t)))
				if !next.Temporary() {
					require.NoError(t, part.HeldBy(next.Holder()).Fill(w.seven(t)))
				}
				w.set(inner, next, 20)
				require.NoError(t, errors.Join(next.Commit(), nested.Close(), next.Release()))
				if outer.space == backends.SpaceHost {
					require.NoError(t, own.Synchronize())
				}
				require.NoError(t, own.Fill(w.seven(t)))
				require.NoError(t, own.Synchronize())
				w.set(outer, h, 21)
				require.NoError(t, errors.Join(h.Commit(), own.Close(), part.Close(), h.Release()))
				_, err = h.Array()
				require.ErrorIs(t, err, gobuffer.ErrFreed)
				w.assertHolds(a, after, "%v in %v", inner, outer)
				closeAll(t, a)
			}
		}
	})
}

// seven is a scalar that the test's end closes.
func (w *world) seven(t *testing.T) *gobuffer.Array {
	v := w.scalar(arrayiface.Int32, 7)
	t.Cleanup(func() { closeAll(t, v) })
	return v
}

// Another Memory of the same bytes may come from the access itself, unless they are not there.
func TestElementsOfMemoryThatWasAdoptedTwice(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.Malloc, -1}.options(0), before)
	m, err := w.runtime.Adopt(a.Memory().Region(), a.Memory().Size(), 0, func() {})
	require.NoError(t, err)
	again := gobuffer.View(m, a.Address(), a.Layout(), 6, false, a.Options())
	h := users[1].lend(t, a, gobuffer.ReadWrite)
	_, err = again.AccessMode(backends.SpaceCUDA, 0, gobuffer.ReadWrite)
	require.ErrorIs(t, err, gobuffer.ErrInUse)
	require.NoError(t, h.Release())
	h = users[0].lend(t, a, gobuffer.ReadWrite)
	inside := users[1].lend(t, again, gobuffer.ReadWrite)
	w.set(users[1], inside, 21)
	require.NoError(t, errors.Join(inside.Commit(), inside.Release(), h.Commit(), h.Release()))
	w.assertHolds(a, after)
	closeAll(t, again, a)
}

func TestElementsInUseForWritingAreNotChanged(t *testing.T) {
	for _, p := range places(1) {
		for _, u := range users[:2] {
			w := newWorld(t, 1, late)
			a := w.array(p.options(gobuffer.Async), before)
			v, other := w.scalar(arrayiface.Int32, 7), w.array(p.options(gobuffer.Async), numbers(8))
			to := place{backends.CPP, -1}
			if p.allocator == backends.CPP {
				to.allocator = backends.Malloc
			}
			changes := map[string]func(*gobuffer.Array) error{
				"Fill":    func(a *gobuffer.Array) error { return a.Fill(v) },
				"Write":   func(a *gobuffer.Array) error { return a.Write(v) },
				"Set":     func(a *gobuffer.Array) error { return a.Set(1, other, 0, 1) },
				"Assign":  func(a *gobuffer.Array) error { return a.Assign(other) },
				"Append":  func(a *gobuffer.Array) error { return a.Append(other) },
				"Resize":  func(a *gobuffer.Array) error { return a.Resize(9, nil) },
				"Reserve": func(a *gobuffer.Array) error { return a.Reserve(99, nil) },
				"Move":    func(a *gobuffer.Array) error { return a.Move(to.allocator, to.device) },
			}
			for name, change := range changes {
				h := u.lend(t, a, gobuffer.ReadWrite)
				part, rest := w.slice(a, 2, 4, 1), w.slice(a, 0, 0, 1)
				assert.ErrorIs(t, change(a), gobuffer.ErrInUse, "%s %s", p, name)
				if name != "Set" {
					assert.ErrorIs(t, change(part), gobuffer.ErrInUse, "%s %s", p, name)
					require.NoError(t, change(rest), "%s %s", p, name)
				}
				require.NoError(t, h.Release())
				w.assertHolds(a, before, "%s %s", p, name)
				h = u.lend(t, a, gobuffer.Read)
				own, err := a.Copy(a.Options(), a.Type())
				require.NoError(t, err)
				require.NoError(t, change(own), "%s %s", p, name)
				require.NoError(t, h.Release())
				closeAll(t, part, rest, own)
			}
			h := u.lend(t, a, gobuffer.Read)
			require.NoError(t, a.Fill(v), "%s: what is read may change", p)
			require.NoError(t, h.Release())
			closeAll(t, a, v, other)
		}
	}
}
