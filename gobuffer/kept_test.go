package gobuffer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// made is how many allocations there were so far.
func (w *world) made() (n int64) {
	for _, s := range w.runtime.Statistics() {
		n += s.Made
	}
	return n
}

func (w *world) keptBytes() (n int64) {
	for _, s := range w.runtime.Statistics() {
		n += s.Kept
	}
	return n
}

// sameTwice asks twice and reports whether that was one temporary.
func (w *world) sameTwice(a *gobuffer.Array, u user) bool {
	w.t.Helper()
	first := w.ask(a, u)
	at, before := first.Address(), w.made()
	require.NoError(w.t, first.Release())
	second := w.ask(a, u)
	defer func() { require.NoError(w.t, second.Release()) }()
	return second.Address() == at && w.made() == before
}

func (w *world) ask(a *gobuffer.Array, u user) *gobuffer.Handle {
	w.t.Helper()
	h, err := a.Access(u.space, u.device)
	require.NoError(w.t, err)
	return h
}

// holds compares the elements of a handle with what they should be, on its stream, which runs
// ahead of all others.
func (w *world) holds(h *gobuffer.Handle, u user, want model, about ...any) {
	w.t.Helper()
	size := h.Layout().NBytes()
	if u.space == backends.SpaceHost {
		assert.Equal(w.t, want.data, append([]byte{}, hostBytes(h.Address(), size)...), about...)
		return
	}
	f := w.deviceOf(h.Memory())
	require.NoError(w.t, f.Launch(u.device, h.Stream(), func(memory func(backends.Address, int) []byte) {
		assert.Equal(w.t, want.data, append([]byte{}, memory(h.Address(), size)...), about...)
	}))
	require.NoError(w.t, f.Synchronize(u.device, h.Stream()))
}

func TestACachedArrayIsCopiedOnce(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		a := cached(w.array(w.withStream(p), before))
		assert.True(t, a.IsCached())
		for _, u := range users {
			plain := w.slice(a, 0, 6, 1) // not cached
			temporary := func() bool {
				h := w.ask(plain, u)
				defer h.Release()
				return h.Temporary()
			}()
			h := w.ask(a, u)
			assert.Equal(t, temporary, h.Temporary() && h.Kept() && h.ReadOnly(), u)
			assert.True(t, w.sameTwice(a, u), u)
			again := w.ask(a, u)
			assert.Equal(t, h.Address(), again.Address(), u)
			w.holds(again, u, before, u)
			require.NoError(t, h.Release())
			require.NoError(t, again.Release())
			closeAll(t, plain)
		}
		closeAll(t, a)
		assert.Zero(t, w.keptBytes())
	})
}

func TestTemporariesAreCounted(t *testing.T) {
	w := newWorld(t, 2, late)
	a := cached(w.array(place{backends.Malloc, -1}.options(0), before))
	for device := range 2 {
		for range 3 {
			require.NoError(t, w.ask(a, user{backends.SpaceCUDA, device}).Release())
		}
	}
	s := w.statistics(backends.CUDAAsync)
	assert.EqualValues(t, []int64{2, 48, 4}, []int64{s.Made, s.Kept, s.Reused})
	require.NoError(t, a.Cached(false))
	assert.Zero(t, w.keptBytes())
	assert.False(t, a.IsCached())
	require.NoError(t, w.ask(a, user{backends.SpaceCUDA, 0}).Release())
	assert.Zero(t, w.keptBytes())
	closeAll(t, a)
}

var device0 = user{backends.SpaceCUDA, 0}

// changesOfElements are all operations after which the elements may be others than they were, or
// elsewhere, of a, which is on the host; same is a view of it, other an array of other memory.
var changesOfElements = []struct {
	name string
	run  func(w *world, a, same, other *gobuffer.Array) error
}{
	{"Fill", func(w *world, a, _, _ *gobuffer.Array) error { w.setSeven(a); return nil }},
	{"Set", func(w *world, a, _, other *gobuffer.Array) error { return a.Set(1, other, 0, 1) }},
	{"Write", func(w *world, a, _, other *gobuffer.Array) error { return a.Write(other) }},
	{"Assign", func(w *world, a, _, other *gobuffer.Array) error { return a.Assign(other) }},
	{"Assign of fewer", func(w *world, a, _, other *gobuffer.Array) error {
		few := w.slice(other, 0, 2, 1)
		defer few.Close()
		return a.Assign(few)
	}},
	{"Assign of more", func(w *world, a, _, other *gobuffer.Array) error {
		more := w.array(place{backends.Malloc, -1}.options(0), counting(arrayiface.Int32, 9))
		defer more.Close()
		return a.Assign(more)
	}},
	{"Append", func(w *world, a, _, other *gobuffer.Array) error { return a.Append(other) }},
	{"Append where there is room", func(w *world, a, _, other *gobuffer.Array) error {
		if err := a.Reserve(20, nil); err != nil {
			return err
		}
		require.NoError(w.t, w.ask(a, device0).Release())
		return a.Append(other)
	}},
	{"Resize", func(w *world, a, _, _ *gobuffer.Array) error { return a.Resize(3, nil) }},
	{"Reserve", func(w *world, a, _, _ *gobuffer.Array) error { return a.Reserve(20, nil) }},
	{"Move", func(w *world, a, _, _ *gobuffer.Array) error { return a.Move(backends.CPP, -1) }},
	{"Swap", func(w *world, a, _, other *gobuffer.Array) error { return a.Swap(other) }},
	{"Swap, the other way round", func(w *world, a, _, other *gobuffer.Array) error { return other.Swap(a) }},
	{"Free", func(w *world, a, _, _ *gobuffer.Array) error { return a.Free() }},
	{"Close", func(w *world, a, _, _ *gobuffer.Array) error { return a.Close() }},
	{"Cached(false)", func(w *world, a, _, _ *gobuffer.Array) error { return a.Cached(false) }},
	{"Changed", func(w *world, a, _, _ *gobuffer.Array) error { return a.Changed() }},
	{"Changed of a view", func(w *world, _, same, _ *gobuffer.Array) error { return same.Changed() }},
	{"Fill of a view", func(w *world, _, same, _ *gobuffer.Array) error { w.setSeven(same); return nil }},
	{"Write to a view", func(w *world, _, same, other *gobuffer.Array) error { return same.Write(other) }},
	{"Fill of strided elements", func(w *world, a, _, _ *gobuffer.Array) error {
		v := w.slice(a, 0, 6, 2)
		defer v.Close()
		w.setSeven(v)
		return nil
	}},
	{"Resize of a longer buffer of the same memory", func(w *world, a, _, _ *gobuffer.Array) error {
		few, err := arrayiface.NewLayout(arrayiface.Int32, []int{2}, nil)
		require.NoError(w.t, err)
		b := gobuffer.View(a.Memory().Retain(), a.Address(), few, 6, false, a.Options())
		defer b.Close()
		one := w.scalar(arrayiface.Int32, 1)
		defer one.Close()
		return b.Resize(6, one)
	}},
	{"another Memory of the same bytes", func(w *world, a, _, _ *gobuffer.Array) error {
		require.NoError(w.t, a.Synchronize()) // that one knows nothing of the copy that reads them
		m, err := w.runtime.Adopt(a.Memory().Region(), 24, 0, nil)
		require.NoError(w.t, err)
		b := gobuffer.View(m, a.Address(), a.Layout(), 6, false, a.Options())
		defer b.Close()
		w.setSeven(b)
		return nil
	}},
	{"Memory.Read into the elements", func(w *world, a, _, _ *gobuffer.Array) error {
		require.NoError(w.t, a.Synchronize())
		on := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), after)
		defer on.Close()
		return on.Memory().Read(a.Address(), on.Address(), 24, 0)
	}},
	{"OnHost in place", func(w *world, a, _, _ *gobuffer.Array) error {
		b, err := gobuffer.Typed[int32](a)
		require.NoError(w.t, err)
		return b.OnHost(context.Background(), gobuffer.ReadWrite, func(v []int32) error { v[0] = 99; return nil })
	}},
	{"On a device, written back", func(w *world, _, same, _ *gobuffer.Array) error {
		return same.On(context.Background(), backends.SpaceHIP, 0, gobuffer.Write, func(h *gobuffer.Handle) error {
			w.set(user{backends.SpaceHIP, 0}, h, 21)
			return nil
		})
	}},
	{"AccessMode without a write-back", func(w *world, _, same, _ *gobuffer.Array) error {
		h, err := same.AccessMode(backends.SpaceHost, -1, gobuffer.Write)
		require.NoError(w.t, err)
		*int32At(h, 0) = 99
		return h.Release()
	}},
	{"DropKept", func(w *world, _, _, _ *gobuffer.Array) error { w.runtime.DropKept(); return nil }},
}

// Each is to drop what is kept at once, not only to be right the next time.
func TestEachChangeDropsWhatIsKept(t *testing.T) {
	for _, c := range changesOfElements {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1, late)
			a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
			other := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), after)
			same := w.slice(a, 0, 6, 1)
			h := w.ask(a, device0)
			require.EqualValues(t, 24, w.keptBytes())
			require.NoError(t, c.run(w, a, same, other))
			assert.Zero(t, w.keptBytes())
			w.holds(h, device0, before, "a handle keeps what it has")
			if c.name != "Close" && a.Size() > 0 {
				now := w.ask(a, device0)
				assert.NotEqual(t, h.Address(), now.Address())
				w.holds(now, device0, w.read(a))
				require.NoError(t, now.Release())
			}
			require.NoError(t, h.Release())
			closeAll(t, a, same, other)
		})
	}
}

func TestWhatChangesNothingDropsNothing(t *testing.T) {
	w := newWorld(t, 1, late)
	whole := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), counting(arrayiface.Int32, 12))
	a, beside := cached(w.slice(whole, 0, 6, 1)), w.slice(whole, 6, 12, 1)
	h := w.ask(a, device0)
	w.setSeven(beside)
	require.NoError(t, beside.Changed())
	closeAll(t, beside, whole)
	require.NoError(t, a.Reserve(3, nil))
	require.NoError(t, a.Move(backends.Malloc, -1))
	require.NoError(t, a.Resize(6, nil))
	b := cached(w.slice(a, 0, 6, 1))
	w.read(a)
	require.NoError(t, a.Swap(b), "both are cached, and have the same memory")
	now := w.ask(a, device0)
	assert.Equal(t, h.Address(), now.Address())
	r, err := b.AccessMode(backends.SpaceCUDA, 0, gobuffer.Read)
	require.NoError(t, err)
	assert.Equal(t, h.Address(), r.Address(), "and for reading")
	assert.False(t, r.ReadOnly(), "as most libraries for devices want it")
	require.NoError(t, r.Release())
	require.NoError(t, now.Release())
	require.NoError(t, h.Release())
	closeAll(t, a, b)
}

// While an access writes elements in place, nobody sees that they change.
func TestNothingIsKeptWhileAnAccessWrites(t *testing.T) {
	w := newWorld(t, 1, late)
	a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
	require.NoError(t, w.ask(a, device0).Release())
	h := users[0].lend(t, a, gobuffer.ReadWrite)
	for v := range 3 {
		w.set(users[0], h, 10*v)
		now := w.ask(a, device0)
		assert.False(t, now.Kept())
		w.holds(now, device0, w.read(a), v)
		require.NoError(t, now.Release())
	}
	require.NoError(t, h.Release())
	assert.True(t, w.sameTwice(a, device0))
	closeAll(t, a)
}

func TestATemporaryThatHamrWritesIsNotHandedOutAgain(t *testing.T) {
	w := newWorld(t, 1, late)
	a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
	h, err := a.AccessMode(backends.SpaceCUDA, 0, gobuffer.Read)
	require.NoError(t, err)
	b, err := h.Array()
	require.NoError(t, err)
	w.setSeven(b)
	closeAll(t, b)
	require.NoError(t, h.Release())
	now := w.ask(a, device0)
	w.holds(now, device0, before)
	require.NoError(t, now.Release())
	closeAll(t, a)
}

// Nothing is done before somebody waits, so that each missing order shows.
func TestWhoGetsItNextComesAfterTheCopy(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		for _, u := range users[1:3] {
			a := cached(w.array(p.options(gobuffer.Async), before))
			require.NoError(t, w.ask(a, u).Release())
			// To the handle on a stream of its own nobody says what is pending on the other one.
			if p.allocator.Backend() != "hip" && (p.device == u.device || p.device < 0) {
				require.NoError(t, a.SetStream(w.stream(w.cuda, u.device), gobuffer.Async))
			}
			h := w.ask(a, u)
			w.holds(h, u, before, u)
			require.NoError(t, h.Release())
			closeAll(t, a)
		}
	})
}

func TestAKeptTemporaryDoesWithoutAStreamThatEnds(t *testing.T) {
	for _, ended := range []string{"by SetStream", "by LeaveKept"} {
		w := newWorld(t, 1, late)
		o := place{backends.Malloc, -1}.options(gobuffer.Async)
		o.Stream, o.StreamOf = w.stream(w.cuda, 0), backends.CUDA
		a := cached(w.array(o, before))
		b := w.slice(a, 0, 6, 1) // with the same elements, as Python's arrays are made for each call
		require.NoError(t, w.ask(a, device0).Release())
		if ended == "by SetStream" {
			require.NoError(t, a.SetStream(0, gobuffer.Async))
		} else {
			require.NoError(t, w.runtime.LeaveKept(o.Stream))
			a = cached(gobuffer.View(a.Memory(), a.Address(), a.Layout(), 6, false, place{backends.Malloc, -1}.options(0)))
		}
		require.NoError(t, b.SetStream(0, gobuffer.Async))
		require.NoError(t, b.Memory().Forget(o.Stream), "which reads it")
		require.NoError(t, w.cuda.DestroyStream(0, o.Stream))
		again := w.ask(a, device0)
		w.holds(again, device0, before, ended)
		require.NoError(t, again.Release())
		assert.EqualValues(t, 1, w.statistics(backends.CUDAAsync).Made, ended)
		closeAll(t, a, b)
	}
}

func TestATemporaryEndsWithItsMemory(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	one := cached(w.slice(a, 0, 6, 1)).Lent() // for one call, as Python's
	require.NoError(t, w.ask(one, device0).Release())
	closeAll(t, one)
	assert.EqualValues(t, 24, w.keptBytes(), "the next call finds it")
	closeAll(t, a)
	assert.Zero(t, w.keptBytes())
}

func TestKeptTemporariesMakeRoom(t *testing.T) {
	o := late
	o.Memory = 100
	w := newWorld(t, 1, o)
	a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), counting(arrayiface.Int32, 20)))
	require.NoError(t, w.ask(a, device0).Release())
	assert.EqualValues(t, 80, w.keptBytes())
	b, err := w.runtime.NewArray(arrayiface.Int32, []int{20}, place{backends.CUDA, 0}.options(gobuffer.Async))
	require.NoError(t, err)
	assert.Zero(t, w.keptBytes())
	closeAll(t, a, b)
}

func TestATemporaryThatCouldNotBeMadeIsNotKept(t *testing.T) {
	w := newWorld(t, 1, late)
	a := cached(w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before))
	w.cuda.FailAt("Copy", 1, errInjected)
	_, err := a.Access(backends.SpaceHost, -1)
	require.ErrorIs(t, err, error(errInjected))
	w.cuda.StopFailing()
	assert.Zero(t, w.keptBytes())
	w.assertHolds(a, before)
	closeAll(t, a)
}

// cached returns an array that keeps its temporaries from now on.
func cached(a *gobuffer.Array) *gobuffer.Array {
	if err := a.Cached(true); err != nil {
		panic(err)
	}
	return a
}
