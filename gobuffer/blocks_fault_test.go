package gobuffer_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// elsewhere runs f on another thread than the calling goroutine's, which it locks to its own.
func elsewhere(t *testing.T, f func() error) (err error) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err = f()
	}()
	<-done
	return err
}

// badBlocks is arrays of a device, of which copies of blocks to the first have an index out of range.
type badBlocks struct {
	*world
	to, from, good, bad *gobuffer.Array
}

func newBadBlocks(t *testing.T) *badBlocks {
	w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true})
	p := place{backends.CUDA, 0}
	x := &badBlocks{world: w, good: w.indices(p, arrayiface.Int64, []int{0, 1}),
		bad: w.indices(p, arrayiface.Int64, []int{0, 77})}
	x.to = w.indices(p, arrayiface.Int64, []int{1, 2, 3, 4})
	x.from = w.indices(p, arrayiface.Int64, []int{5, 6, 7, 8})
	t.Cleanup(func() {
		closeAll(t, x.to, x.from, x.good, x.bad)
		gobuffer.SweepBlocks(w.runtime)
	})
	return x
}

func (x *badBlocks) copy(to, index *gobuffer.Array) error {
	return gobuffer.CopyBlocks([]*gobuffer.Array{to}, x.good, []*gobuffer.Array{x.from}, index)
}

// TestWhoWaitsIsToldOfAnIndex although other work was enqueued on the destination before.
func TestWhoWaitsIsToldOfAnIndex(t *testing.T) {
	writes := map[string]func(*badBlocks) error{
		"nothing":      func(*badBlocks) error { return nil },
		"a copy":       func(x *badBlocks) error { return x.to.Write(x.from) },
		"blocks":       func(x *badBlocks) error { return x.copy(x.to, x.good) },
		"many blocks":  func(x *badBlocks) error { return x.copies(300) },
		"a reader":     func(x *badBlocks) error { return x.from.Write(x.to) },
		"other blocks": func(x *badBlocks) error { return x.copy(x.from, x.good) },
	}
	for name, enqueue := range writes {
		t.Run(name, func(t *testing.T) {
			x := newBadBlocks(t)
			require.NoError(t, x.copy(x.to, x.bad))
			require.NoError(t, elsewhere(t, func() error { return enqueue(x) }))
			var bad *gobuffer.ArgumentError
			require.ErrorAs(t, elsewhere(t, x.to.Synchronize), &bad)
			assert.Equal(t, "77", bad.Value)
			require.NoError(t, elsewhere(t, x.to.Synchronize))
			require.NoError(t, x.to.Synchronize())
			require.NoError(t, x.copy(x.to, x.good), "it is told once")
		})
	}
}

func (x *badBlocks) copies(n int) error {
	for range n {
		if err := x.copy(x.to, x.good); err != nil {
			return err
		}
	}
	return nil
}

// TestWhatAThreadWasToldIsNotKept for the thread that enqueued it.
func TestWhatAThreadWasToldIsNotKept(t *testing.T) {
	x := newBadBlocks(t)
	for range 3 {
		require.NoError(t, elsewhere(t, func() error { return x.copy(x.to, x.bad) }))
		require.Error(t, x.to.Synchronize())
	}
	require.NoError(t, x.copy(x.to, x.good))
	assert.Equal(t, 1, gobuffer.BlockFaults(x.runtime))
}

// TestWhatAReleaseMetIsToldLater to the thread that enqueued it, as nobody could be told then.
func TestWhatAReleaseMetIsToldLater(t *testing.T) {
	x := newBadBlocks(t)
	require.NoError(t, x.runtime.TellLater(nil))
	require.Equal(t, io.EOF, x.runtime.TellLater(io.EOF))
	require.NoError(t, x.copy(x.to, x.bad))
	met := x.to.Synchronize()
	require.Error(t, met)
	assert.Equal(t, errors.Join(io.EOF), x.runtime.TellLater(errors.Join(met, io.EOF)))
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, x.copy(x.to, x.good), &bad)
	assert.Equal(t, "77", bad.Value)
	require.NoError(t, x.copy(x.to, x.good), "it is told once")
}

// TestBlocksAreFollowedOnTheirOwnStreamByWhatIsCapturedThere without an event, which could be no part of the graph.
func TestBlocksAreFollowedOnTheirOwnStreamByWhatIsCapturedThere(t *testing.T) {
	w := endingWorld(t, 1, reusesBlocks)
	gobuffer.WaitAtReleases(w.runtime)
	s := w.stream(w.cuda, 0)
	to := w.array(onStream(backends.CUDA, s), bytesOf(0, 4))
	from := w.array(onStream(backends.CUDA, s), bytesOf(7, 4))
	index := w.indices(place{backends.CUDA, 0}, arrayiface.Int64, []int{0, 1, 2, 3})
	require.NoError(t, index.Synchronize())
	lists := [][]*gobuffer.Array{{to}, {from}}
	require.NoError(t, gobuffer.CopyBlocks(lists[0], index, lists[1], index))
	w.e.captured[s] = true
	require.NoError(t, to.Write(from))
	w.e.captured[s] = false
	w.assertHolds(to, bytesOf(7, 4))
	closeAll(t, to, from, index)
	gobuffer.SweepBlocks(w.runtime)
	require.NoError(t, w.cuda.DestroyStream(0, s))
}

// TestOtherStreamsRunAfterBlocks whose indices a device has: page-locked memory has no stream that tells of them.
func TestOtherStreamsRunAfterBlocks(t *testing.T) {
	w := newWorld(t, 1, asCUDA)
	one, two := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	from := w.array(onStream(backends.CUDA, one), bytesOf(7, 4))
	to := w.array(onStream(backends.CUDAHost, 0), bytesOf(0, 4))
	last := w.array(onStream(backends.CUDA, two), bytesOf(0, 4))
	index := w.indices(place{backends.CUDA, 0}, arrayiface.Int64, []int{0, 1, 2, 3})
	require.NoError(t, gobuffer.CopyBlocks([]*gobuffer.Array{to}, index, []*gobuffer.Array{from}, index))
	require.NoError(t, last.Write(to))
	w.assertHolds(last, bytesOf(7, 4))
	closeAll(t, from, to, last, index)
	gobuffer.SweepBlocks(w.runtime)
	require.NoError(t, w.cuda.DestroyStream(0, one))
	require.NoError(t, w.cuda.DestroyStream(0, two))
}
