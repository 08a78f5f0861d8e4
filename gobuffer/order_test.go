package gobuffer_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

func TestWorkFollowsAProducersStream(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		producer := w.stream(w.cuda, 0)
		a := w.array(place{allocator, 0}.options(gobuffer.SyncHost), before)
		w.kernel(w.cuda, 0, producer, a, after)
		require.NoError(t, a.Memory().After(a.Stream(), producer))
		w.assertHolds(a, after, "%s", allocator)
		closeAll(t, a)
	}
}

func TestWorkOnAStreamIsNotForgottenForAProducers(t *testing.T) {
	w := newWorld(t, 1, late)
	first, second, producer := w.stream(w.cuda, 0), w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = first
	a, b := w.array(o, before), w.array(o, after)
	require.NoError(t, a.Assign(b))
	require.NoError(t, a.SetStream(second, gobuffer.Async))
	require.NoError(t, a.Memory().After(second, producer))
	w.assertHolds(a, after, "what the first stream wrote is missing")
	closeAll(t, a, b)
}

func TestTheCoveringStreamCoversWhatOthersHold(t *testing.T) {
	w := newWorld(t, 1, late)
	first, second := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = first
	a, b := w.array(o, before), w.array(o, after)
	// Each question lets the stream do one thing.
	for range 3 {
		require.NoError(t, w.cuda.Launch(0, first, func(func(backends.Address, int) []byte) {}))
	}
	require.NoError(t, a.Assign(b))
	require.NoError(t, a.SetStream(second, gobuffer.Async))
	covering, busy, err := a.Covering()
	require.NoError(t, err)
	assert.True(t, busy)
	assert.Equal(t, second, covering)
	var seen []byte
	require.NoError(t, w.cuda.Launch(0, covering, func(memory func(backends.Address, int) []byte) {
		seen = bytes.Clone(memory(a.Address(), len(after.data)))
	}))
	require.NoError(t, w.cuda.Synchronize(0, covering))
	assert.Equal(t, after.data, seen)
	_, busy, err = a.Covering()
	require.NoError(t, err)
	assert.False(t, busy)
	closeAll(t, a, b)
}

func TestWorkFollowsAProducersEvent(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		producer := w.stream(w.cuda, 0)
		a := w.array(place{allocator, 0}.options(gobuffer.SyncHost), before)
		w.kernel(w.cuda, 0, producer, a, after)
		event, release, err := w.cuda.VendorEvent(0, producer)
		require.NoError(t, err)
		require.NoError(t, a.Memory().AfterEvent(event))
		release()
		w.assertHolds(a, after, "%s", allocator)
		closeAll(t, a)
	}
	host := w.array(place{backends.Malloc, backends.HostDevice}.options(gobuffer.SyncHost), before)
	assert.ErrorIs(t, host.Memory().AfterEvent(1), errors.ErrUnsupported)
	closeAll(t, host)
}
