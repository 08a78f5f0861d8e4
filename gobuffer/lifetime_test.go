package gobuffer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

func TestMemoryIsFreedWithItsLastReference(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a := w.array(p.options(w.mode), before)
		v := w.slice(a, 1, 4, 1)
		h, err := a.Access(backends.SpaceHost, -1)
		require.NoError(t, err)
		m := a.Memory().Retain()
		closeAll(t, a)
		w.assertHolds(v, numbers(2, 3, 4))
		closeAll(t, v)
		require.NoError(t, h.Release())
		assert.EqualValues(t, 1, w.statistics(p.allocator).Live)
		require.NoError(t, m.Release())
		assert.Zero(t, w.statistics(p.allocator).Live)
		assert.Panics(t, func() { _ = m.Release() })
		assert.Panics(t, func() { m.Retain() })
	})
}

func (w *world) statistics(a backends.Allocator) gobuffer.Statistics {
	for _, s := range w.runtime.Statistics() {
		if s.Allocator == a {
			return s
		}
	}
	return gobuffer.Statistics{Allocator: a}
}

func TestStatisticsCountBytes(t *testing.T) {
	for _, p := range places(1) {
		w := newWorld(t, 1, late)
		a, b := w.array(p.options(0), before), w.array(p.options(0), numbers())
		assert.Equal(t, gobuffer.Statistics{Allocator: p.allocator, Live: 2, Current: 24, Peak: 24, Made: 2},
			w.statistics(p.allocator))
		closeAll(t, a, b)
		closeAll(t, w.array(p.options(0), numbers(1)))
		assert.Equal(t, gobuffer.Statistics{Allocator: p.allocator, Peak: 24, Made: 3}, w.statistics(p.allocator))
		w.runtime.ResetPeaks()
		assert.Zero(t, w.statistics(p.allocator).Peak)
	}
}

func TestZeroSizeTakesNoMemory(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		for _, shape := range [][]int{{0}, {3, 0}, {0, 0, 2}} {
			a := w.array(p.options(w.mode), model{arrayiface.Float64, shape, nil})
			assert.Zero(t, a.Address())
			v := w.scalar(arrayiface.Float64, 1)
			require.NoError(t, a.Fill(v))
			require.NoError(t, a.Write(a))
			require.NoError(t, a.Append(a))
			require.NoError(t, a.Set(0, a, 0, 0))
			require.NoError(t, a.Synchronize())
			for _, s := range []backends.Space{backends.SpaceHost, backends.SpaceCUDA, backends.SpaceHIP} {
				h, err := a.Access(s, 0)
				require.NoError(t, err)
				assert.Zero(t, h.Address())
				require.NoError(t, h.Release())
			}
			closeAll(t, a, v)
		}
		calls := append(w.cuda.Calls(), w.hip.Calls()...)
		assert.False(t, slices.ContainsFunc(calls, func(c string) bool { return len(c) > 8 && c[:8] == "Allocate" }))
	})
}

func TestAClosedBufferRefusesEverything(t *testing.T) {
	w := newWorld(t, 1, late)
	a, b := w.array(place{backends.CUDA, 0}.options(0), before), w.scalar(arrayiface.Int32, 4)
	closeAll(t, a, a)
	_, sliceError := a.Slice(0, 0, 1, 1)
	_, indexError := a.Index(0, 0)
	_, copyError := a.Copy(a.Options(), a.Type())
	_, accessError := a.Access(backends.SpaceHost, -1)
	_, textError := a.Text(0)
	for i, err := range []error{sliceError, indexError, copyError, accessError, textError, a.Resize(1, nil),
		a.Reserve(1, nil),
		a.Append(b), b.Append(a), a.Assign(b), b.Assign(a), a.Set(0, b, 0, 1), b.Set(0, a, 0, 1), a.Write(b), b.Write(a),
		a.Fill(b), b.Fill(a), b.Resize(3, a), a.Move(backends.Malloc, 0), a.Free(), a.Synchronize(), a.Swap(b), b.Swap(a)} {
		assert.ErrorIs(t, err, gobuffer.ErrFreed, "%d", i)
	}
	w.assertHolds(b, model{arrayiface.Int32, []int{}, element(arrayiface.Int32, 4)})
	closeAll(t, b)
}

func TestBadArgumentsAreNamed(t *testing.T) {
	w := newWorld(t, 2, late)
	a := w.array(place{backends.CUDA, 0}.options(0), before)
	value := w.scalar(arrayiface.Int32, 4)
	_, device := w.runtime.NewArray(arrayiface.Int8, []int{1}, gobuffer.Options{Allocator: backends.CUDA, Device: 2})
	_, unknown := w.runtime.NewArray(arrayiface.Int8, []int{1}, gobuffer.Options{Allocator: 99})
	_, none := w.runtime.NewArray(arrayiface.Int8, []int{1}, gobuffer.Options{Allocator: backends.None})
	_, count := w.runtime.NewElements(arrayiface.Int64, math.MaxInt64/4, gobuffer.Options{Allocator: backends.Malloc},
		gobuffer.Value{})
	_, null := w.runtime.Adopt(backends.Region{Allocator: backends.Malloc}, 8, 0,
		func() { t.Error("nothing was adopted") })
	_, space := a.Access(backends.Space(9), 0)
	var fault *gobuffer.ArgumentError
	for i, err := range []error{device, unknown, none, count, null, space, a.Reserve(-1, nil),
		a.Reserve(math.MaxInt64/4, nil),
		a.Append(nil), a.Assign(nil), a.Fill(nil), a.Fill(a), a.Resize(9, a), a.Move(backends.CUDA, 5), a.Swap(nil)} {
		assert.ErrorAs(t, err, &fault, "%d", i)
	}
	for _, n := range []int{-1, math.MaxInt64, math.MaxInt64 / 4, math.MaxInt64 / 5} {
		assert.Error(t, a.Resize(n, nil))
	}
	assert.Error(t, a.ResizeShape([]int{math.MaxInt32, math.MaxInt32, 4}, nil))
	bad := w.scalar(arrayiface.Float64, 4)
	small := w.array(place{backends.CUDA, 0}.options(0), counting(arrayiface.Uint8, 3))
	large := w.array(place{backends.Malloc, 0}.options(0), model{arrayiface.Int16, []int{}, []byte{0, 1}})
	assert.Error(t, small.Fill(large), "256 does not fit")
	w.assertHolds(small, counting(arrayiface.Uint8, 3))
	w.assertHolds(a, before)
	closeAll(t, a, value, bad, small, large)
}

func TestAdoptedMemoryIsNeverGrownInto(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, p := range places(1) {
		base := w.array(p.options(0), before)
		told := 0
		m, err := w.runtime.Adopt(base.Memory().Region(), base.Memory().Size(), 0, func() { told++ })
		require.NoError(t, err)
		assert.EqualValues(t, 1, w.statistics(p.allocator).Adopted)
		layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{3}, nil)
		require.NoError(t, err)
		a := gobuffer.View(m, base.Address(), layout, 6, false, p.options(gobuffer.SyncHost))
		require.NoError(t, a.Append(a))
		assert.Equal(t, 1, told)
		w.assertHolds(a, numbers(1, 2, 3, 1, 2, 3))
		w.assertHolds(base, before)
		closeAll(t, a, base)
	}
}

func TestTakenOverMemoryIsFreedHere(t *testing.T) {
	w := newWorld(t, 1, late)
	require.NoError(t, w.cuda.Probe())
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		at, err := w.cuda.Allocate(backends.Request{Allocator: a, Size: 24})
		require.NoError(t, err)
		w.cuda.FailAt("Resolve", 1, errInjected)
		_, err = w.runtime.TakeOver(backends.Region{Address: at, Allocator: a}, 24, 2)
		require.Error(t, err)
		m, err := w.runtime.TakeOver(backends.Region{Address: at, Allocator: a}, 24, 2)
		require.NoError(t, err)
		assert.True(t, m.Owned())
		require.NoError(t, m.Release())
		calls := w.cuda.Calls()
		assert.Contains(t, calls[len(calls)-1], ", 0 bytes,", "who allocated it may have asked for another size")
	}
}

func TestTakenOverMemoryOfNoElementsIsFreedToo(t *testing.T) {
	w := newWorld(t, 1, late)
	require.NoError(t, w.cuda.Probe())
	at, err := w.cuda.Allocate(backends.Request{Allocator: backends.CUDA, Size: 1})
	require.NoError(t, err)
	m, err := w.runtime.TakeOver(backends.Region{Address: at, Allocator: backends.CUDA}, 0, 0)
	require.NoError(t, err)
	require.NoError(t, m.Release())
}

func TestSwapExchangesEverything(t *testing.T) {
	w := newWorld(t, 1, late)
	a, b := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before),
		w.array(place{backends.Malloc, -1}.options(0), counting(arrayiface.Int8, 2, 2))
	require.NoError(t, a.Swap(b))
	w.assertHolds(a, counting(arrayiface.Int8, 2, 2))
	w.assertHolds(b, before)
	assert.Equal(t, gobuffer.Sync, b.Transfer())
	require.NoError(t, a.Swap(a))
	closeAll(t, a, b)
}

func TestBuffersOfDifferentRuntimesMix(t *testing.T) {
	w, other := newWorld(t, 1, late), newWorld(t, 1, late)
	for _, p := range places(1) {
		a, b := w.array(p.options(gobuffer.Async), before),
			other.array(p.options(gobuffer.Async), numbers(7, 8, 9, 10, 11, 12, 13))
		require.NoError(t, a.Assign(b), "%s", p)
		assert.Same(t, w.runtime, a.Memory().Runtime())
		require.NoError(t, a.Append(b))
		closeAll(t, b)
		w.assertHolds(a, numbers(7, 8, 9, 10, 11, 12, 13, 7, 8, 9, 10, 11, 12, 13))
		closeAll(t, a)
	}
}

func TestTraceNamesEveryAllocationCopyHandleAndFree(t *testing.T) {
	w := newWorld(t, 1, late)
	var lines []string
	w.runtime.SetTrace(func(line string) { lines = append(lines, line) })
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before)
	h, err := a.Access(backends.SpaceHost, -1)
	require.NoError(t, err)
	in, err := a.Access(backends.SpaceCUDA, 0)
	require.NoError(t, err)
	at, temporary := a.Address(), h.Address()
	require.NoError(t, h.Release())
	require.NoError(t, in.Release())
	closeAll(t, a)
	assert.Equal(t, []string{
		fmt.Sprintf("allocate cuda device 0 size 24 at %#x", at),
		fmt.Sprintf("allocate malloc device -1 size 24 at %#x", temporary),
		fmt.Sprintf("copy 24 bytes cuda device 0 at %#x to malloc device -1 at %#x", at, temporary),
		fmt.Sprintf("handle for host in a temporary at %#x of 24 bytes", temporary),
		fmt.Sprintf("handle for cuda in place at %#x", at),
		fmt.Sprintf("free malloc device -1 size 24 at %#x", temporary),
		fmt.Sprintf("free cuda device 0 size 24 at %#x", at),
	}, lines)
	w.runtime.SetTrace(nil)
	closeAll(t, w.array(place{backends.Malloc, -1}.options(0), before))
	assert.Len(t, lines, 7)
}

// TestManyGoroutinesShareOneMemory has readers, each with a view of its own, and
// the closing of all of them, run at the same time.
func TestManyGoroutinesShareOneMemory(t *testing.T) {
	for _, p := range places(2) {
		w := newWorld(t, 2, backendtest.FakeOptions{Strict: true})
		shared := w.array(p.options(gobuffer.Async), before)
		var told atomic.Int64
		foreign, err := w.runtime.Adopt(shared.Memory().Region(), shared.Memory().Size(), 0, func() { told.Add(1) })
		require.NoError(t, err)
		var group sync.WaitGroup
		for i := range 8 {
			v, source := w.slice(shared, i%3, 6, 1), foreign.Retain()
			group.Go(func() {
				for range 20 {
					to := places(2)[rand.IntN(len(places(2)))]
					b, err := v.Copy(to.options(gobuffer.Transfer(rand.IntN(3))), arrayiface.Int32)
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, b.Append(v))
					h, err := b.Access(backends.SpaceHost, -1)
					if assert.NoError(t, err) {
						want := before.data[4*(i%3):]
						assert.Equal(t, append(slices.Clone(want), want...), hostBytes(h.Address(), 2*len(want)))
						assert.NoError(t, h.Release())
					}
					assert.NoError(t, b.Close())
					assert.NoError(t, source.Retain().Release())
				}
				assert.NoError(t, v.Close())
				assert.NoError(t, source.Release())
			})
		}
		group.Wait()
		require.NoError(t, foreign.Release())
		assert.EqualValues(t, 1, told.Load())
		closeAll(t, shared)
	}
}

func TestARuntimeKnowsEachBackendOnce(t *testing.T) {
	_, err := gobuffer.NewRuntime(host.New(), host.New())
	assert.Error(t, err)
	w := newWorld(t, 1, late)
	assert.Len(t, w.runtime.Backends(), 3)
	assert.Equal(t, backends.CUDAHost, w.runtime.HostAllocator())
	assert.Equal(t, backends.CUDAAsync, w.runtime.DeviceAllocator())
}

func TestTransferModesHaveNames(t *testing.T) {
	for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
		parsed, err := gobuffer.ParseTransfer(mode.String())
		require.NoError(t, err)
		assert.Equal(t, mode, parsed)
	}
	_, err := gobuffer.ParseTransfer("sometimes")
	assert.ErrorContains(t, err, "async, sync_host, sync")
}
