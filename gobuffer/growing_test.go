package gobuffer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// growing is late memory that grows where it is, up to some size.
func growing(to int) backendtest.FakeOptions {
	o := late
	o.Grows = to
	return o
}

var grows = place{backends.CUDAVMM, 0}

func followed(m, by model) model {
	return model{m.kind, []int{m.count() + by.count()}, slices.Concat(m.data, by.data)}
}

func TestGrowingMemoryStaysWhereItIs(t *testing.T) {
	w := newWorld(t, 1, growing(1<<16))
	piece := counting(arrayiface.Int32, 50)
	more := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), piece)
	a, want := w.array(grows.options(gobuffer.Async), piece), piece
	at, memory := a.Address(), a.Memory()
	view, err := a.Slice(0, 10, 20, 1)
	require.NoError(t, err)
	copies, growths := w.cuda.CallCount("Copy"), 0
	for i := range 100 {
		before := w.cuda.CallCount("Grow")
		require.NoError(t, a.Append(more))
		want = followed(want, piece)
		assert.Equal(t, at, a.Address())
		assert.Same(t, memory, a.Memory())
		growths += w.cuda.CallCount("Grow") - before
		assert.Equal(t, copies+i+1, w.cuda.CallCount("Copy"), "only what is appended is copied")
	}
	assert.Less(t, growths, 60, "the driver is asked each time")
	assert.Equal(t, memory.Size(), a.Capacity()*4)
	assert.Zero(t, w.cuda.CallCount("Synchronize")+w.cuda.CallCount("SynchronizeDevice"), "nothing is waited for")
	for _, s := range w.runtime.Statistics() {
		if s.Allocator == backends.CUDAVMM {
			assert.Equal(t, gobuffer.Statistics{Allocator: backends.CUDAVMM, Live: 1, Made: 1,
				Current: int64(memory.Size()), Peak: int64(memory.Size())}, s)
		}
	}
	w.assertHolds(a, want)
	w.setSeven(view)
	copy(want.data[40:], slices.Repeat(element(arrayiface.Int32, 7), 10))
	w.assertHolds(a, want, "the view is of the same elements still")
	require.NoError(t, a.Resize(5, nil))
	assert.Equal(t, 5, a.Capacity(), "the view has what lies behind")
	w.assertHolds(view, model{arrayiface.Int32, []int{10}, want.data[40:80]})
	closeAll(t, a, view, more)
}

func TestEachWayToGrow(t *testing.T) {
	for name, grow := range map[string]func(a, seven *gobuffer.Array) error{
		"append":  func(a, _ *gobuffer.Array) error { return a.Append(a) },
		"resize":  func(a, seven *gobuffer.Array) error { return a.Resize(60, seven) },
		"reserve": func(a, seven *gobuffer.Array) error { return a.Reserve(60, seven) },
	} {
		w := newWorld(t, 1, growing(1<<12))
		a, seven := w.array(grows.options(gobuffer.Async), counting(arrayiface.Int64, 30)), w.scalar(arrayiface.Int64, 7)
		at := a.Address()
		require.NoError(t, grow(a, seven), name)
		assert.Equal(t, at, a.Address(), name)
		size := a.Size()
		require.NoError(t, a.Resize(60, nil))
		want := followed(counting(arrayiface.Int64, 30),
			model{arrayiface.Int64, []int{30}, slices.Repeat(element(arrayiface.Int64, 7), 30)})
		if name == "append" {
			want = followed(counting(arrayiface.Int64, 30), counting(arrayiface.Int64, 30))
		}
		assert.Equal(t, map[string]int{"append": 60, "resize": 60, "reserve": 30}[name], size)
		w.assertHolds(a, want, "%s", name)
		closeAll(t, a, seven)
	}
}

// Views keep the elements that they had.
func TestAssigningMoreThanThereWasTakesNewMemory(t *testing.T) {
	w := newWorld(t, 1, growing(1<<12))
	first, second := counting(arrayiface.Int64, 3), counting(arrayiface.Int64, 5, 8)
	a, b := w.array(grows.options(gobuffer.Async), first), w.array(grows.options(gobuffer.Async), second)
	view, err := a.Slice(0, 0, 3, 1)
	require.NoError(t, err)
	require.NoError(t, a.Assign(b))
	w.assertHolds(a, second)
	w.assertHolds(view, first)
	closeAll(t, a, b, view)
}

// What a view grows by is its own.
func TestViewsGrowElsewhere(t *testing.T) {
	w := newWorld(t, 1, growing(1<<12))
	whole, more := counting(arrayiface.Int32, 16), w.scalar(arrayiface.Int32, 99)
	a := w.array(grows.options(gobuffer.Async), whole)
	view, err := a.Slice(0, 0, 16, 1)
	require.NoError(t, err)
	copied := gobuffer.View(a.Memory().Retain(), a.Address(), a.Layout(), a.Capacity(), false, a.Options())
	for _, other := range []*gobuffer.Array{view, copied} {
		assert.False(t, other.Grows())
		require.NoError(t, other.Append(more))
		assert.NotEqual(t, a.Address(), other.Address())
		assert.Equal(t, 64, a.Memory().Size())
		closeAll(t, other)
	}
	assert.True(t, a.Grows())
	w.assertHolds(a, whole)
	closeAll(t, a, more)
}

func TestWhereTheAddressesEnd(t *testing.T) {
	for name, test := range map[string]struct {
		hold   func(w *world, a *gobuffer.Array) *gobuffer.Array
		copies bool
	}{
		"nobody else has the memory": {func(*world, *gobuffer.Array) *gobuffer.Array { return nil }, false},
		"a view has it": {func(w *world, a *gobuffer.Array) *gobuffer.Array {
			view, err := a.Slice(0, 0, 10, 1)
			require.NoError(w.t, err)
			return view
		}, true},
		"lent by its only user": {func(w *world, a *gobuffer.Array) *gobuffer.Array {
			holder := gobuffer.View(a.Memory().Retain(), a.Address(), a.Layout(), a.Capacity(), false, a.Options())
			a.Lent().Growing(true, true)
			return holder
		}, false},
		"lent by one of its users": {func(w *world, a *gobuffer.Array) *gobuffer.Array {
			holder := gobuffer.View(a.Memory().Retain(), a.Address(), a.Layout(), a.Capacity(), false, a.Options())
			a.Lent().Growing(true, false)
			return holder
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, growing(256))
			first := counting(arrayiface.Int32, 60)
			a, more := w.array(grows.options(gobuffer.Async), first),
				w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), first)
			require.NoError(t, w.cuda.Synchronize(0, 0))
			at := a.Address()
			other := test.hold(w, a)
			copies := w.cuda.CallCount("Copy")
			require.NoError(t, a.Append(more))
			assert.NotEqual(t, at, a.Address())
			assert.Equal(t, test.copies, w.cuda.CallCount("Copy")-copies > 1, "elements are copied")
			assert.Equal(t, !test.copies, w.cuda.CallCount("Relocate") == 1)
			assert.True(t, a.Grows())
			w.assertHolds(a, followed(first, first))
			if other != nil {
				closeAll(t, other)
			}
			require.NoError(t, a.Resize(500, nil))
			require.NoError(t, a.Resize(120, nil))
			w.assertHolds(a, followed(first, first), "after it has grown again")
			closeAll(t, a, more)
		})
	}
}

// At the new addresses, too, everybody runs after what was under way at the old ones: where
// the device cannot be waited for, these stay as well.
func TestWorkIsKnownAtTheNewAddresses(t *testing.T) {
	o := growing(len(before.data))
	o.FreeWaits = true
	w := newWorld(t, 1, o)
	a := w.array(grows.options(gobuffer.Async), before)
	s := w.stream(w.cuda, 0)
	w.kernel(w.cuda, 0, s, a, after)
	require.NoError(t, a.Memory().Leave(s))
	w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
	require.NoError(t, a.Reserve(1000, nil))
	w.cuda.StopFailing()
	require.Equal(t, 1, w.cuda.CallCount("Relocate"))
	assert.Equal(t, 2, w.kept())
	w.assertHolds(a, after)
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, 1, w.kept())
	require.NoError(t, w.cuda.DestroyStream(0, s))
	closeAll(t, a)
}

func TestGrowthThatFailsLosesNothing(t *testing.T) {
	for _, call := range []string{"Grow", "Relocate", "Fill", "Copy"} {
		for _, injected := range []error{errInjected, &backends.OutOfMemoryError{Allocator: backends.CUDAVMM, Size: 1}} {
			to := 1 << 12
			if call == "Relocate" {
				to = 240
			}
			w := newWorld(t, 1, growing(to))
			first := counting(arrayiface.Int32, 60)
			a, seven := w.array(grows.options(gobuffer.Async), first), w.scalar(arrayiface.Int32, 7)
			at := a.Address()
			for name, grow := range map[string]func() error{
				"resize": func() error { return a.Resize(100, seven) },
				"append": func() error { return a.Append(seven) },
			} {
				if (call == "Fill" && name == "append") || (call == "Copy" && name == "resize") {
					continue
				}
				w.cuda.FailAt(call, 0, injected)
				require.ErrorIs(t, grow(), injected, "%s of %s", call, name)
				w.cuda.StopFailing()
				assert.Equal(t, at, a.Address())
				w.assertHolds(a, first)
				assert.True(t, a.Grows())
			}
			require.NoError(t, a.Resize(61, seven), "%s: the next attempt", call)
			w.assertHolds(a, followed(first, model{arrayiface.Int32, []int{1}, element(arrayiface.Int32, 7)}))
			closeAll(t, a, seven)
		}
	}
}

func TestWhereMemoryRunsOutItGrowsByNoMoreThanIsNeeded(t *testing.T) {
	o := growing(1 << 12)
	o.Memory = 1024 + 64
	w := newWorld(t, 1, o)
	first, one := counting(arrayiface.Int32, 256), w.scalar(arrayiface.Int32, 5)
	a := w.array(grows.options(gobuffer.Async), first)
	require.NoError(t, a.Append(one))
	assert.Equal(t, 272, a.Capacity())
	w.assertHolds(a, followed(first, model{arrayiface.Int32, []int{1}, element(arrayiface.Int32, 5)}))
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, a.Resize(273, nil), &full)
	assert.Equal(t, 273*4, full.Size)
	closeAll(t, a, one)
}

// What its users have on any stream may be a kernel under which the driver would unmap it.
func TestGrowingMemoryIsFreedWhenTheDeviceIsAtRest(t *testing.T) {
	w := newWorld(t, 1, growing(1<<12))
	a := w.sharedFrom(backends.CUDAVMM, 0)
	require.NoError(t, a.Resize(100, nil))
	w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
	require.ErrorIs(t, a.Close(), error(errInjected))
	assert.Equal(t, 1, w.kept(), "as while a stream is captured")
	w.cuda.StopFailing()
	closeAll(t, w.sharedFrom(backends.CUDAVMM, 0))
	assert.Zero(t, w.kept())
}
