package gobuffer_test

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/gobuffer/internal/elements"
)

var shapes = [][]int{{}, {0}, {1}, {7}, {3, 4}, {2, 0, 3}, {2, 3, 2}}

// everyArray calls f with an Array of each place, shape and arrangement that
// holds want, in each transfer mode.
func everyArray(t *testing.T, kind arrayiface.ElementType, f func(w *world, a *gobuffer.Array, want model)) {
	for _, p := range places(2) {
		t.Run(p.String(), func(t *testing.T) {
			w := newWorld(t, 2, late)
			for _, how := range arrangements {
				for i, shape := range shapes {
					m := counting(kind, shape...)
					a := w.lay(p, p.options(gobuffer.Transfer(i%3)), m, how)
					f(w, a, m)
					closeAll(t, a)
					if t.Failed() {
						t.Fatalf("%s, shape %v", how.name, shape)
					}
				}
			}
		})
	}
}

func TestCopyReachesEveryPlaceInCOrder(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		for _, to := range places(2) {
			c, err := a.Copy(to.options(gobuffer.Async), a.Type())
			require.NoError(w.t, err, "to %s", to)
			w.assertHolds(c, want, "to %s", to)
			assert.True(w.t, c.Layout().ContiguousC())
			assert.Equal(w.t, to.allocator, c.Allocator())
			assert.Equal(w.t, to.device, c.Owner())
			closeAll(w.t, c)
		}
		w.assertHolds(a, want)
	})
}

func TestCopyConvertsEveryPairOfTypes(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, from := range arrayiface.Types() {
		for _, to := range arrayiface.Types() {
			want := model{to, []int{5}, make([]byte, 5*to.Size())}
			source := counting(from, 5)
			require.NoError(t, elements.Convert(unsafe.Pointer(&want.data[0]), to, unsafe.Pointer(&source.data[0]), from, 5))
			for _, p := range places(1) {
				a := w.array(p.options(gobuffer.SyncHost), source)
				c, err := a.Copy(gobuffer.Options{Allocator: backends.Same, Device: backends.HostDevice}, to)
				require.NoError(t, err)
				require.True(t, w.assertHolds(c, want), "%s to %s on %s", from, to, p)
				require.Equal(t, p.allocator, c.Allocator())
				closeAll(t, a, c)
			}
		}
	}
}

func TestFillKeepsWhatLiesBetween(t *testing.T) {
	for _, kind := range arrayiface.Types() {
		t.Run(kind.String(), func(t *testing.T) {
			everyArray(t, kind, func(w *world, a *gobuffer.Array, want model) {
				value := w.scalar(kind, 9)
				require.NoError(w.t, a.Fill(value))
				closeAll(w.t, value)
				want.data = bytes.Repeat(element(kind, 9), want.count())
				w.assertHolds(a, want)
				assert.Zero(w.t, w.strays(a))
			})
		})
	}
}

func TestWriteBroadcasts(t *testing.T) {
	everyArray(t, arrayiface.Int16, func(w *world, a *gobuffer.Array, want model) {
		shape := a.Layout().Shape
		for _, from := range places(2) {
			for lead := range len(shape) + 1 {
				source := counting(arrayiface.Int16, shape[lead:]...)
				b := w.array(from.options(gobuffer.Async), source)
				require.NoError(w.t, a.Write(b), "%v from %s", shape[lead:], from)
				want.data = bytes.Repeat(source.data, count(shape[:lead]))
				w.assertHolds(a, want, "%v from %s", shape[lead:], from)
				assert.Zero(w.t, w.strays(a))
				closeAll(w.t, b)
			}
		}
		bad := w.array(place{backends.Malloc, -1}.options(0), counting(arrayiface.Int16, 5, 5, 5, 5))
		assert.Error(w.t, a.Write(bad))
		closeAll(w.t, bad)
	})
}

func TestSetWritesARunInCOrder(t *testing.T) {
	everyArray(t, arrayiface.Uint16, func(w *world, a *gobuffer.Array, want model) {
		source := model{arrayiface.Uint16, []int{20}, nil}
		for i := range 20 {
			source.data = append(source.data, element(arrayiface.Uint16, 50+i)...)
		}
		for _, from := range places(2) {
			for _, how := range []arrangement{arrangements[0], arrangements[3]} {
				b := w.lay(from, from.options(gobuffer.Async), source, how)
				at, n := want.count()/3, want.count()/2
				require.NoError(w.t, a.Set(at, b, 4, n))
				want.data = slices.Clone(want.data)
				copy(want.data[at*2:(at+n)*2], source.data[8:])
				w.assertHolds(a, want, "from %s", from)
				assert.Zero(w.t, w.strays(a))
				closeAll(w.t, b)
			}
		}
	})
}

func TestSetChecksBounds(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(0), counting(arrayiface.Int8, 6))
	b := w.array(place{backends.Malloc, -1}.options(0), counting(arrayiface.Int8, 4))
	for _, bad := range [][3]int{{-1, 0, 1}, {7, 0, 0}, {3, 0, 4}, {0, -1, 1}, {0, 5, 0}, {0, 2, 3}, {0, 0, -1},
		{0, 0, 1 << 62}} {
		var fault *gobuffer.ArgumentError
		assert.ErrorAs(t, a.Set(bad[0], b, bad[1], bad[2]), &fault, "%v", bad)
	}
	assert.NoError(t, a.Set(6, b, 4, 0))
	w.assertHolds(a, counting(arrayiface.Int8, 6))
	closeAll(t, a, b)
}

func TestAssignTakesShapeAndKeepsPlace(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		options := a.Options()
		for _, from := range places(2) {
			for _, shape := range shapes {
				source := counting(arrayiface.Float64, shape...)
				b := w.lay(from, from.options(gobuffer.Async), source, arrangements[1])
				require.NoError(w.t, a.Assign(b))
				want := counting(arrayiface.Int32, shape...)
				w.assertHolds(a, want, "from %s shape %v", from, shape)
				assert.Equal(w.t, options, a.Options())
				closeAll(w.t, b)
			}
		}
	})
}

func TestResizeKeepsElementsInFront(t *testing.T) {
	everyArray(t, arrayiface.Int64, func(w *world, a *gobuffer.Array, want model) {
		value := w.scalar(arrayiface.Int8, 77)
		size := want.count()
		for _, n := range []int{size + 3, size / 2, size + 30, size, 0, size} {
			require.NoError(w.t, a.Resize(n, value))
			next := model{want.kind, []int{n}, slices.Clone(want.data[:min(n, want.count())*8])}
			for next.count()*8 > len(next.data) {
				next.data = append(next.data, element(arrayiface.Int64, 77)...)
			}
			want = next
			w.assertHolds(a, want, "to %d", n)
		}
		closeAll(w.t, value)
	})
}

func TestReserveFillsTheRoomThatItTakes(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		value := w.scalar(arrayiface.Int32, 7)
		size := want.count()
		require.NoError(w.t, a.Reserve(size, value))
		require.NoError(w.t, a.Reserve(size+5, value))
		assert.GreaterOrEqual(w.t, a.Capacity(), size+5)
		w.assertHolds(a, want)
		require.NoError(w.t, a.Resize(size+5, nil))
		want = model{want.kind, []int{size + 5},
			append(slices.Clone(want.data), bytes.Repeat(element(arrayiface.Int32, 7), 5)...)}
		w.assertHolds(a, want)
		closeAll(w.t, value)
	})
}

func TestAppendEverywhere(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		for _, from := range places(2) {
			b := w.lay(from, from.options(gobuffer.Async), counting(arrayiface.Int32, 3, 2), arrangements[1])
			require.NoError(w.t, a.Append(b))
			want = model{want.kind, []int{want.count() + 6},
				append(slices.Clone(want.data), counting(arrayiface.Int32, 6).data...)}
			closeAll(w.t, b)
		}
		require.NoError(w.t, a.Append(a))
		want = model{want.kind, []int{2 * want.count()}, append(slices.Clone(want.data), want.data...)}
		w.assertHolds(a, want)
	})
}

func TestAppendDoublesTheCapacityFromEight(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, p := range places(1) {
		a := w.array(p.options(gobuffer.SyncHost), model{arrayiface.Float64, []int{0}, nil})
		one := w.scalar(arrayiface.Float64, 1)
		var seen []int
		for range 40 {
			require.NoError(t, a.Append(one))
			if seen = append(seen, a.Capacity()); len(seen) > 1 && seen[len(seen)-1] == seen[len(seen)-2] {
				seen = seen[:len(seen)-1]
			}
		}
		assert.Equal(t, []int{8, 16, 32, 64}, seen, "%s", p)
		closeAll(t, a, one)
	}
}

func TestMoveBetweenAllPlaces(t *testing.T) {
	everyArray(t, arrayiface.Complex64, func(w *world, a *gobuffer.Array, want model) {
		for _, to := range places(2) {
			before := a.Memory()
			same := to.allocator == a.Allocator() && to.device == a.Owner()
			require.NoError(w.t, a.Move(to.allocator, to.device))
			assert.Equal(w.t, same, before == a.Memory(), "moving to %s", to)
			assert.Equal(w.t, to, place{a.Allocator(), a.Owner()})
			w.assertHolds(a, want, "in %s", to)
		}
	})
}

func TestText(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		text, err := a.Text(0)
		require.NoError(w.t, err)
		plain := "{}"
		if want.count() > 0 {
			l, err := arrayiface.NewLayout(want.kind, want.shape, nil)
			require.NoError(w.t, err)
			plain = elements.Text(unsafe.Pointer(&want.data[0]), l, 0)
		}
		assert.Equal(w.t, plain, text)
	})
}
