package gobuffer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// onEveryPlace runs f for each place of a world of late devices.
func onEveryPlace(t *testing.T, devices int, f func(t *testing.T, w *world, p place)) {
	for _, p := range places(devices) {
		for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
			t.Run(fmt.Sprintf("%s %s", p, mode), func(t *testing.T) {
				w := newWorld(t, devices, late)
				w.mode = mode
				f(t, w, p)
			})
		}
	}
}

func (w *world) slice(a *gobuffer.Array, start, stop, step int) *gobuffer.Array {
	w.t.Helper()
	v, err := a.Slice(0, start, stop, step)
	require.NoError(w.t, err)
	return v
}

// numbers is a one-dimensional model of the given values.
func numbers(values ...int) model {
	m := model{arrayiface.Int32, []int{len(values)}, []byte{}}
	for _, v := range values {
		m.data = append(m.data, element(arrayiface.Int32, v)...)
	}
	return m
}

func TestWritingFromAnOverlappingView(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for name, c := range map[string]struct {
			to, from [3]int
			want     []int
		}{
			"up":               {[3]int{2, 7, 1}, [3]int{0, 5, 1}, []int{1, 2, 1, 2, 3, 4, 5, 8}},
			"down":             {[3]int{0, 5, 1}, [3]int{2, 7, 1}, []int{3, 4, 5, 6, 7, 6, 7, 8}},
			"reversed":         {[3]int{0, 8, 1}, [3]int{7, -1, -1}, []int{8, 7, 6, 5, 4, 3, 2, 1}},
			"every second":     {[3]int{0, 8, 2}, [3]int{0, 4, 1}, []int{1, 2, 2, 4, 3, 6, 4, 8}},
			"from every other": {[3]int{4, 8, 1}, [3]int{0, 8, 2}, []int{1, 2, 3, 4, 1, 3, 5, 7}},
			"onto itself":      {[3]int{1, 6, 1}, [3]int{1, 6, 1}, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		} {
			for operation, f := range map[string]func(to, from *gobuffer.Array) error{
				"write":  func(to, from *gobuffer.Array) error { return to.Write(from) },
				"assign": func(to, from *gobuffer.Array) error { return to.Assign(from) },
				"set":    func(to, from *gobuffer.Array) error { return to.Set(0, from, 0, from.Size()) },
			} {
				a := w.array(p.options(w.mode), numbers(1, 2, 3, 4, 5, 6, 7, 8))
				to, from := w.slice(a, c.to[0], c.to[1], c.to[2]), w.slice(a, c.from[0], c.from[1], c.from[2])
				require.NoError(t, f(to, from), "%s %s", operation, name)
				w.assertHolds(a, numbers(c.want...), "%s %s", operation, name)
				closeAll(t, a, to, from)
			}
		}
	})
}

func TestSettingABufferFromItself(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), numbers(1, 2, 3, 4, 5, 6, 7, 8))
		require.NoError(t, a.Set(3, a, 1, 4))
		w.assertHolds(a, numbers(1, 2, 3, 2, 3, 4, 5, 8))
		closeAll(t, a)
	})
}

func TestAppendingWhatLiesBehindTheEnd(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), numbers(1, 2, 3, 4, 5, 6, 7, 8))
		view := w.slice(a, 1, 6, 1)
		require.NoError(t, a.Resize(3, nil))
		require.NoError(t, a.Append(view))
		w.assertHolds(a, numbers(1, 2, 3, 2, 3, 4, 5, 6), "5 of the 8 places are also read")
		closeAll(t, a, view)
	})
}

func TestAssigningAViewOfItself(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), numbers(1, 2, 3, 4, 5, 6, 7, 8))
		view := w.slice(a, 7, 0, -2)
		require.NoError(t, a.Assign(view))
		w.assertHolds(a, numbers(8, 6, 4, 2))
		closeAll(t, a, view)
	})
}

func TestGrowthOfAViewNeverTouchesNeighbours(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), numbers(1, 2, 3, 4, 5, 6, 7, 8))
		value := w.scalar(arrayiface.Int32, 9)
		for name, grow := range map[string]func(v *gobuffer.Array) error{
			"append":  func(v *gobuffer.Array) error { return v.Append(value) },
			"resize":  func(v *gobuffer.Array) error { return v.Resize(4, value) },
			"reserve": func(v *gobuffer.Array) error { return v.Reserve(4, value) },
			"assign":  func(v *gobuffer.Array) error { return v.Assign(a) },
		} {
			for _, step := range []int{1, 2} {
				v := w.slice(a, 2, 2+3*step, step)
				require.NoError(t, grow(v), name)
				assert.NotSame(t, a.Memory(), v.Memory(), name)
				w.assertHolds(a, numbers(1, 2, 3, 4, 5, 6, 7, 8), name)
				closeAll(t, v)
			}
		}
		closeAll(t, a, value)
	})
}

func TestReservingWhatIsThereKeepsTheMemory(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), before)
		v := w.slice(a, 0, 6, 2)
		require.NoError(t, v.Reserve(3, nil))
		require.NoError(t, v.Resize(3, nil))
		assert.Same(t, a.Memory(), v.Memory(), "a view is not torn from what it shows")
		closeAll(t, a, v)
	})
}

func TestBroadcastSourceIsReadAsIfItWereWhole(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), numbers(5))
		layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{2, 3}, []int{0, 0})
		require.NoError(t, err)
		b := gobuffer.View(a.Memory().Retain(), a.Address(), layout, 6, true, a.Options())
		c, err := b.Copy(a.Options(), arrayiface.Int32)
		require.NoError(t, err)
		w.assertHolds(c, model{arrayiface.Int32, []int{2, 3}, numbers(5, 5, 5, 5, 5, 5).data})
		require.NoError(t, b.Append(b))
		w.assertHolds(b, numbers(slices.Repeat([]int{5}, 12)...))
		closeAll(t, a, b, c)
	})
}

func TestReadOnlyContentsAreNeverWritten(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		source := w.array(p.options(w.mode), numbers(1, 2, 3, 4))
		layout := source.Layout()
		fixed := func() *gobuffer.Array {
			return gobuffer.View(source.Memory().Retain(), source.Address(), layout, 4, true, source.Options())
		}
		value := w.scalar(arrayiface.Int32, 9)
		for name, write := range map[string]func(a *gobuffer.Array) error{
			"fill":   func(a *gobuffer.Array) error { return a.Fill(value) },
			"write":  func(a *gobuffer.Array) error { return a.Write(value) },
			"set":    func(a *gobuffer.Array) error { return a.Set(0, value, 0, 1) },
			"assign": func(a *gobuffer.Array) error { return a.Assign(value) },
		} {
			a := fixed()
			var fault *gobuffer.ArgumentError
			assert.ErrorAs(t, write(a), &fault, name)
			assert.True(t, a.ReadOnly())
			closeAll(t, a)
		}
		for name, grow := range map[string]func(a *gobuffer.Array) error{
			"append": func(a *gobuffer.Array) error { return a.Append(value) },
			"shrink and append": func(a *gobuffer.Array) error {
				if err := a.Resize(2, nil); err != nil {
					return err
				}
				return a.Append(value)
			},
			"reserve":           func(a *gobuffer.Array) error { return a.Reserve(9, value) },
			"resize":            func(a *gobuffer.Array) error { return a.Resize(9, value) },
			"shrink and resize": func(a *gobuffer.Array) error { _ = a.Resize(1, nil); return a.Resize(3, value) },
		} {
			a := fixed()
			assert.NoError(t, grow(a), name)
			assert.False(t, a.ReadOnly(), "%s: the elements are a copy now", name)
			w.assertHolds(source, numbers(1, 2, 3, 4), name)
			closeAll(t, a)
		}
		a := fixed()
		h, err := a.Access(backends.SpaceHost, -1)
		require.NoError(t, err)
		assert.Equal(t, !h.Temporary(), h.ReadOnly())
		require.NoError(t, h.Release())
		v := w.slice(a, 0, 2, 1)
		assert.True(t, v.ReadOnly())
		closeAll(t, a, v, source, value)
	})
}
