package gobuffer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// user is code in a space on a device.
type user struct {
	space  backends.Space
	device int
}

var users = []user{{backends.SpaceHost, -1}, {backends.SpaceCUDA, 0}, {backends.SpaceCUDA, 1}, {backends.SpaceHIP, 1}}

func (u user) lend(t *testing.T, a *gobuffer.Array, mode gobuffer.Mode) *gobuffer.Handle {
	t.Helper()
	h, err := a.AccessMode(u.space, u.device, mode)
	require.NoError(t, err)
	return h
}

// set makes the elements of a handle v, v+1, …, late where that is a device's work.
func (w *world) set(u user, h *gobuffer.Handle, v int) {
	w.t.Helper()
	address, layout := h.Address(), h.Layout()
	write := func(memory func(backends.Address, int) []byte) {
		for i := range layout.Count() {
			copy(memory(address+backends.Address(elementOffset(layout, i)), 4), element(arrayiface.Int32, v+i))
		}
	}
	if u.space == backends.SpaceHost {
		write(hostBytes)
		return
	}
	// In place that is the memory's runtime, whose code another's may be.
	require.NoError(w.t, w.deviceOf(h.Memory()).Launch(u.device, h.Stream(), write))
}

// withStream is options of a place with a stream of its own: of its device, if it is on one.
func (w *world) withStream(p place) gobuffer.Options {
	o := p.options(w.mode)
	switch p.allocator.Backend() {
	case "cuda":
		o.Stream = w.stream(w.cuda, p.device)
	case "hip":
		o.Stream = w.stream(w.hip, p.device)
	default:
		o.Stream, o.StreamOf = w.stream(w.cuda, 0), backends.CUDA
	}
	return o
}

func TestWhatIsWrittenIsTheBuffersAfterACommit(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		for _, u := range users {
			for _, mode := range []gobuffer.Mode{gobuffer.Write, gobuffer.ReadWrite} {
				for own, o := range map[bool]gobuffer.Options{false: p.options(w.mode), true: w.withStream(p)} {
					about := fmt.Sprintf("%v %v %t", u, mode, own)
					a := w.array(o, before)
					h := u.lend(t, a, mode)
					w.set(u, h, 21)
					require.NoError(t, h.Commit())
					require.NoError(t, h.Release())
					w.assertHolds(a, after, about)
					closeAll(t, a)
				}
			}
		}
	})
}

func TestOnlyElementsAreWrittenBack(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for _, how := range arrangements {
			for _, u := range users[:2] {
				a := w.lay(p, w.withStream(p), before, how)
				h := u.lend(t, a, gobuffer.ReadWrite)
				w.set(u, h, 21)
				require.NoError(t, h.Commit())
				require.NoError(t, h.Release())
				w.assertHolds(a, after, "%s %v", how.name, u)
				assert.Zero(t, w.strays(a), "%s %v", how.name, u)
				closeAll(t, a)
			}
		}
	})
}

// What others have on the buffer's stream comes before a write-back, too.
func TestAWriteBackRunsAfterTheBuffersStream(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		if p.allocator.Backend() != "cuda" {
			return
		}
		for _, u := range users {
			a := w.array(w.withStream(p), before)
			h := u.lend(t, a, gobuffer.Write)
			if h.Temporary() {
				w.kernel(w.cuda, p.device, a.Stream(), a, numbers(0, 0, 0, 0, 0, 0))
			}
			w.set(u, h, 21)
			require.NoError(t, h.Commit())
			require.NoError(t, h.Release())
			w.assertHolds(a, after, "%v", u)
			closeAll(t, a)
		}
	})
}

// The handle's stays the one that it was.
func TestABuffersStreamMayChangeWhileItsElementsAreInUse(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		for _, u := range users {
			a := w.array(w.withStream(p), before)
			h := u.lend(t, a, gobuffer.ReadWrite)
			require.NoError(t, a.SetStream(0, w.mode))
			w.set(u, h, 21)
			require.NoError(t, h.Commit())
			require.NoError(t, h.Release())
			w.assertHolds(a, after, "%v", u)
			closeAll(t, a)
		}
	})
}

func TestAModeSaysWhatIsBroughtIn(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	for mode, copies := range map[gobuffer.Mode]int{gobuffer.Read: 1, gobuffer.Write: 0, gobuffer.ReadWrite: 1} {
		made := w.cuda.CallCount("Copy")
		h := users[0].lend(t, a, mode)
		assert.Equal(t, copies, w.cuda.CallCount("Copy")-made, mode)
		assert.Equal(t, mode == gobuffer.Read, h.ReadOnly(), mode)
		assert.True(t, h.Temporary())
		require.NoError(t, h.Release())
	}
	w.assertHolds(a, before, "nothing was committed")
	closeAll(t, a)
}

func TestWithoutACommitNothingIsWrittenBack(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		for _, u := range users {
			a := w.array(w.withStream(p), before)
			h := u.lend(t, a, gobuffer.ReadWrite)
			w.set(u, h, 21)
			require.NoError(t, h.Release())
			require.NoError(t, h.Release())
			assert.ErrorIs(t, h.Commit(), gobuffer.ErrFreed)
			if h.Temporary() {
				w.assertHolds(a, before, "%v", u)
			} else {
				w.assertHolds(a, after, "%v", u)
			}
			closeAll(t, a)
		}
	})
}

func TestABufferMayEndWhileItsElementsAreInUse(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for _, u := range users[:2] {
			for _, end := range []func(*gobuffer.Array) error{(*gobuffer.Array).Close, (*gobuffer.Array).Free} {
				a := w.array(w.withStream(p), before)
				view := w.slice(a, 0, 6, 1)
				require.NoError(t, view.SetStream(0, w.mode))
				h := u.lend(t, a, gobuffer.ReadWrite)
				require.NoError(t, end(a))
				w.set(u, h, 21)
				require.NoError(t, h.Commit())
				require.NoError(t, h.Release())
				w.assertHolds(view, after, "%v", u)
				closeAll(t, a, view)
			}
		}
	})
}

func TestReadOnlyElementsAreNotLentForWriting(t *testing.T) {
	w := newWorld(t, 1, late)
	own := w.array(place{backends.CUDA, 0}.options(0), before)
	a := gobuffer.View(own.Memory().Retain(), own.Address(), own.Layout(), 6, true, own.Options())
	for _, u := range users[:2] {
		for _, mode := range []gobuffer.Mode{gobuffer.Write, gobuffer.ReadWrite, gobuffer.Mode(7)} {
			_, err := a.AccessMode(u.space, u.device, mode)
			var wrong *gobuffer.ArgumentError
			assert.ErrorAs(t, err, &wrong)
		}
		require.NoError(t, u.lend(t, a, gobuffer.Read).Release())
	}
	closeAll(t, a, own)
}

func TestElementsThatLieOnEachOtherAreNotLentForWriting(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		own := w.array(p.options(w.mode), before)
		view := func(shape, strides []int) *gobuffer.Array {
			layout, err := arrayiface.NewLayout(arrayiface.Int32, shape, strides)
			require.NoError(t, err)
			return gobuffer.View(own.Memory().Retain(), own.Address(), layout, layout.Count(), false, own.Options())
		}
		windows, repeated, apart := view([]int{4, 3}, []int{4, 4}), view([]int{3, 2}, []int{0, 4}),
			view([]int{2, 2}, []int{8, 4})
		for _, u := range users {
			for _, mode := range []gobuffer.Mode{gobuffer.Write, gobuffer.ReadWrite} {
				for _, a := range []*gobuffer.Array{windows, repeated} {
					_, err := a.AccessMode(u.space, u.device, mode)
					var wrong *gobuffer.ArgumentError
					require.ErrorAs(t, err, &wrong)
					assert.Contains(t, err.Error(), "lie on each other")
				}
				h := u.lend(t, apart, mode)
				require.NoError(t, h.Release(), "elements that lie apart are lent, and nothing refused is in use")
			}
			require.NoError(t, u.lend(t, windows, gobuffer.Read).Release())
		}
		closeAll(t, windows, repeated, apart, own)
	})
}

func TestATraceTellsOfWritesThatAreLost(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	var lines []string
	w.runtime.SetTrace(func(line string) { lines = append(lines, line) })
	defer w.runtime.SetTrace(nil)
	count := func(text string) (n int) {
		for _, line := range lines {
			if strings.Contains(line, text) {
				n++
			}
		}
		return n
	}
	h := hostHandle(t, a)
	require.NoError(t, h.Release())
	assert.Zero(t, count("is dropped"), "it was only read")
	h = hostHandle(t, a)
	*int32At(h, 2) = 9
	require.NoError(t, h.Release())
	assert.Equal(t, 1, count("is dropped: on_host"))
	h = users[0].lend(t, a, gobuffer.ReadWrite)
	*int32At(h, 2) = 9
	require.NoError(t, h.Release())
	assert.Equal(t, 1, count("is not written back"))
	h = users[0].lend(t, a, gobuffer.ReadWrite)
	*int32At(h, 2) = 9
	require.NoError(t, errors.Join(h.Commit(), h.Release()))
	assert.Equal(t, 1, count("write back from"))
	assert.Equal(t, 1, count("is dropped"))
	closeAll(t, a)
}

func TestElementsOfMappedMemoryAreLentInPlace(t *testing.T) {
	w := mappedWorld(t)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	h := users[0].lend(t, a, gobuffer.ReadWrite)
	assert.True(t, h.Memory().Mapped())
	view := gobuffer.View(h.Memory().Retain(), h.Address(), h.Layout(), 6, false,
		gobuffer.Options{Allocator: backends.Malloc, Device: -1})
	_, err := view.AccessMode(backends.SpaceHost, -1, gobuffer.ReadWrite)
	require.ErrorIs(t, err, gobuffer.ErrInUse, "the same bytes at another address")
	_, err = a.AccessMode(backends.SpaceCUDA, 0, gobuffer.Read)
	require.ErrorIs(t, err, gobuffer.ErrInUse)
	closeAll(t, view)
	w.set(users[0], h, 21)
	require.NoError(t, h.Commit())
	require.NoError(t, h.Release())
	w.assertHolds(a, after)
	h = user{backends.SpaceHIP, 1}.lend(t, a, gobuffer.ReadWrite)
	assert.True(t, h.Temporary())
	w.set(user{backends.SpaceHIP, 1}, h, 1)
	require.NoError(t, h.Commit())
	require.NoError(t, h.Release())
	w.assertHolds(a, before)
	closeAll(t, a)
}

func TestOnHost(t *testing.T) {
	ctx := context.Background()
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for _, how := range arrangements {
			b, err := gobuffer.Typed[int32](w.lay(p, w.withStream(p), before, how))
			require.NoError(t, err)
			require.NoError(t, b.OnHost(ctx, gobuffer.ReadWrite, func(values []int32) error {
				require.Len(t, values, 6)
				for i := range values {
					values[i] += 20
				}
				assert.ErrorIs(t, b.Put(0, []int32{1}), gobuffer.ErrInUse)
				return nil
			}))
			w.assertHolds(b.Array, after, how.name)
			require.NoError(t, b.Array.On(ctx, backends.SpaceCUDA, 0, gobuffer.Write, func(h *gobuffer.Handle) error {
				w.set(users[1], h, 1)
				return nil
			}))
			w.assertHolds(b.Array, before, how.name)
			closeAll(t, b.Array)
		}
	})
}

func TestOnHostAfterAnErrorOrAPanic(t *testing.T) {
	w := newWorld(t, 1, late)
	b, err := gobuffer.Typed[int32](w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	failed := errors.New("failed")
	write := func(values []int32) { values[0] = 99 }
	assert.ErrorIs(t, b.OnHost(ctx, gobuffer.ReadWrite, func(v []int32) error { write(v); return failed }), failed)
	assert.PanicsWithValue(t, "oh", func() {
		_ = b.OnHost(ctx, gobuffer.ReadWrite, func(v []int32) error { write(v); panic("oh") })
	})
	w.assertHolds(b.Array, before)
	cancel()
	assert.ErrorIs(t, b.OnHost(ctx, gobuffer.ReadWrite, func(v []int32) error { write(v); return nil }), context.Canceled)
	w.assertHolds(b.Array, before)
	closeAll(t, b.Array)
	assert.ErrorIs(t, b.Array.OnHost(context.Background(), gobuffer.Read, func(*gobuffer.Handle) error { return nil }),
		gobuffer.ErrFreed)
}

func TestElementsThatCouldNotBeLentAreFree(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	w.cuda.FailAt("Copy", 1, errInjected)
	_, err := a.AccessMode(backends.SpaceHost, -1, gobuffer.ReadWrite)
	require.ErrorIs(t, err, error(errInjected))
	h := users[0].lend(t, a, gobuffer.ReadWrite)
	w.set(users[0], h, 21)
	w.cuda.FailAt("Copy", 1, errInjected)
	require.ErrorIs(t, h.Commit(), error(errInjected))
	w.cuda.StopFailing()
	require.NoError(t, h.Commit(), "it may be tried again")
	require.NoError(t, h.Release())
	w.assertHolds(a, after)
	closeAll(t, a)
}

func TestElementsThatAreNoneAreLent(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, p := range places(1) {
		a := w.array(p.options(gobuffer.Async), numbers())
		for _, u := range users[:2] {
			first, second := u.lend(t, a, gobuffer.ReadWrite), u.lend(t, a, gobuffer.Write)
			require.NoError(t, errors.Join(first.Commit(), second.Commit(), second.Release(), first.Release()))
		}
		require.NoError(t, a.Free())
		h := users[1].lend(t, a, gobuffer.ReadWrite)
		require.NoError(t, errors.Join(h.Commit(), h.Release()))
		closeAll(t, a)
	}
}

func TestModes(t *testing.T) {
	for _, m := range []gobuffer.Mode{gobuffer.Read, gobuffer.Write, gobuffer.ReadWrite} {
		parsed, err := gobuffer.ParseMode(m.String())
		require.NoError(t, err)
		assert.Equal(t, m, parsed)
	}
	_, err := gobuffer.ParseMode("a")
	assert.EqualError(t, err, `mode is "a": accepted is r, w, rw`)
	assert.Equal(t, "Mode(7)", gobuffer.Mode(7).String())
}
