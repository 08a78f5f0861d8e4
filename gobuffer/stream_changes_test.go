package gobuffer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func TestMemoryIsFreedAfterEveryStreamThatWasSet(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before)
	first, second := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	require.NoError(t, a.SetStream(first, gobuffer.Async))
	w.kernel(w.cuda, 0, first, a, after)
	require.NoError(t, a.SetStream(second, gobuffer.Async))
	closeAll(t, a)
	require.NoError(t, w.cuda.Synchronize(0, 0), "frees it")
}

func TestAHandleNamesTheStreamOfItsMemory(t *testing.T) {
	w := newWorld(t, 2, late)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	a := w.array(o, before)
	for device, want := range []backends.Stream{o.Stream, 0} {
		h, err := a.Access(backends.SpaceCUDA, device)
		require.NoError(t, err)
		assert.Equal(t, want, h.Stream(), "device %d", device)
		require.NoError(t, h.Release())
	}
	closeAll(t, a)
}

func TestAccessRefusesDevicesThatDoNotExist(t *testing.T) {
	for _, p := range places(2) {
		w := newWorld(t, 2, late)
		a := w.array(p.options(gobuffer.Async), before)
		_, err := a.Access(backends.SpaceCUDA, 2)
		assert.Error(t, err, "%s", p)
		closeAll(t, a)
	}
}

// A goroutine that saw the first state and stopped must not take the second one for it.
func TestMarksNeverComeBack(t *testing.T) {
	w := newWorld(t, 1, late)
	a, v := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before), w.scalar(arrayiface.Int32, 4)
	seen := map[uint64]bool{}
	for range 10 {
		require.NoError(t, a.Fill(v))
		marks := a.Memory().Marks().Load()
		assert.NotZero(t, uint32(marks))
		assert.False(t, seen[marks])
		seen[marks] = true
		require.NoError(t, a.Synchronize())
		assert.Zero(t, uint32(a.Memory().Marks().Load()))
	}
	closeAll(t, a, v)
}

func TestOnlyMemoryThatNeedsAStreamForgetsIt(t *testing.T) {
	w := newWorld(t, 1, late)
	first, second := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	o := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
	o.Stream = first
	a, b := w.array(o, before), w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after)
	host := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	require.NoError(t, a.SetStream(second, gobuffer.Async))
	require.NoError(t, a.Assign(b))
	assert.True(t, a.Memory().Uses(first), "its release is ordered on it")
	assert.True(t, a.Memory().Uses(second), "it is written there")
	assert.True(t, b.Memory().Uses(second), "it is read there")
	assert.False(t, b.Memory().Uses(first))
	assert.False(t, host.Memory().Uses(first))
	for _, m := range []*gobuffer.Memory{a.Memory(), b.Memory()} {
		for _, s := range []backends.Stream{first, second} {
			require.NoError(t, m.Forget(s))
			assert.False(t, m.Uses(s))
		}
	}
	closeAll(t, a, b, host)
}

func TestTheCoveringStreamIsOneOfTheMemorysDevice(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		w := newWorld(t, 2, late)
		a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
		b := w.array(place{backends.CUDA, 1}.options(gobuffer.Async), after)
		require.NoError(t, b.Assign(a))
		covering, busy, err := a.Covering()
		require.NoError(t, err)
		assert.True(t, busy, "device 1 reads it")
		w.kernel(w.cuda, 0, covering, a, numbers(9, 9, 9, 9, 9, 9))
		require.NoError(t, w.cuda.Synchronize(0, covering))
		w.assertHolds(b, before, "%s was overwritten before the other device had read it", allocator)
		closeAll(t, a, b)
	}
}

func TestAskingForTheCoveringStreamAgainEnqueuesNothing(t *testing.T) {
	w := newWorld(t, 1, late)
	first, second := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = first
	a, v := w.array(o, before), w.scalar(arrayiface.Int32, 4)
	require.NoError(t, a.Fill(v))
	require.NoError(t, a.SetStream(second, gobuffer.Async))
	for range 100 { // so that questions do not let the fill be done
		require.NoError(t, w.cuda.Launch(0, second, func(func(backends.Address, int) []byte) {}))
	}
	_, busy, err := a.Covering()
	require.NoError(t, err)
	require.True(t, busy)
	asked := len(recorded(w))
	for range 10 {
		_, _, err := a.Covering()
		require.NoError(t, err)
	}
	assert.Len(t, recorded(w), asked)
	require.NoError(t, a.Synchronize())
	closeAll(t, a, v)
}

func recorded(w *world) (calls []string) {
	for _, call := range w.cuda.Calls() {
		if strings.HasPrefix(call, "Record") {
			calls = append(calls, call)
		}
	}
	return calls
}
