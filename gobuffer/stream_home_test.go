package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// onStream is a buffer of device 0 with a stream of its own.
func (w *world) onStream(allocator backends.Allocator) *gobuffer.Array {
	w.t.Helper()
	o := place{allocator, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	return w.array(o, before)
}

func (w *world) fill(a *gobuffer.Array) {
	w.t.Helper()
	w.setSeven(a)
	w.assertHolds(a, numbers(7, 7, 7, 7, 7, 7))
}

func TestAStreamDoesNotReachAnotherDeviceThroughTheHost(t *testing.T) {
	for _, by := range []backends.Allocator{backends.Malloc, backends.CUDAHost} {
		w := newWorld(t, 2, late)
		a := w.onStream(backends.CUDA)
		require.NoError(t, a.Move(by, backends.HostDevice))
		require.NoError(t, a.Move(backends.CUDA, 1))
		assert.Zero(t, a.Stream(), "by %s", by)
		w.fill(a)
		closeAll(t, a)
	}
}

func TestAStreamComesBackToItsDeviceThroughTheHost(t *testing.T) {
	w := newWorld(t, 2, late)
	a := w.onStream(backends.CUDA)
	own := a.Stream()
	require.NoError(t, a.Move(backends.Malloc, backends.HostDevice))
	require.NoError(t, a.Move(backends.CUDAAsync, 0))
	assert.Equal(t, own, a.Stream())
	w.fill(a)
	closeAll(t, a)
}

func TestAStreamDoesNotReachAnotherRuntime(t *testing.T) {
	for _, by := range []backends.Allocator{backends.Malloc, backends.CUDAHost} {
		w := newWorld(t, 2, late)
		a := w.onStream(backends.CUDA)
		require.NoError(t, a.Move(by, backends.HostDevice))
		h, err := a.Access(backends.SpaceHIP, 1)
		require.NoError(t, err)
		assert.Zero(t, h.Stream())
		require.NoError(t, h.Release())
		require.NoError(t, a.Move(backends.HIP, 0))
		assert.Zero(t, a.Stream(), "by %s", by)
		w.fill(a)
		closeAll(t, a)
	}
}

func TestATemporaryOnAnotherDeviceHasAStreamOfThat(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.Malloc, backends.CUDAHost, backends.CUDA,
		backends.CUDAUnified} {
		w := newWorld(t, 2, late)
		a := w.onStream(backends.CUDA)
		require.NoError(t, a.Move(allocator, 0))
		h, err := a.Access(backends.SpaceCUDA, 1)
		require.NoError(t, err)
		assert.Zero(t, h.Stream(), "%s", allocator)
		assert.Equal(t, before.data, w.seenBy(h, 1, h.Stream()))
		require.NoError(t, h.Release())
		closeAll(t, a)
	}
}

func TestAStreamOfAnotherDeviceIsRefused(t *testing.T) {
	w := newWorld(t, 2, late)
	other := w.stream(w.cuda, 1)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, a.SetStream(other, gobuffer.Async), &bad)
	assert.Equal(t, "stream", bad.Argument)
	assert.Zero(t, a.Stream())
	o := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
	o.Stream = other
	_, err := w.runtime.NewArray(before.kind, before.shape, o)
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "stream", bad.Argument)
	closeAll(t, a)
}

// Page-locked memory is of no device: it may be used on a stream of any.
func TestPageLockedMemoryIsUsedOnAnyDevicesStream(t *testing.T) {
	w := newWorld(t, 2, late)
	a := w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before)
	s := w.stream(w.cuda, 1)
	require.NoError(t, a.SetStream(s, gobuffer.Async))
	w.kernel(w.cuda, 1, s, a, after)
	w.assertHolds(a, after)
	b := w.array(place{backends.CUDA, 1}.options(gobuffer.Async), before)
	w.kernel(w.cuda, 1, s, a, before)
	require.NoError(t, b.Assign(a))
	w.assertHolds(b, before)
	closeAll(t, a, b)
}

func TestAPerThreadStreamIsResolvedWithoutMemory(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	require.NoError(t, a.Free())
	require.NoError(t, a.SetStream(perThread, gobuffer.Async))
	assert.NotEqual(t, perThread, a.Stream())
	require.NoError(t, a.Resize(6, nil))
	w.setSeven(a)
	w.assertHolds(a, numbers(7, 7, 7, 7, 7, 7))
	closeAll(t, a)
}

// An old device: there is memory of its own, but no pool of it.
func TestADeviceWithoutPoolsHasTemporaries(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.Malloc, backends.HostDevice}.options(gobuffer.Async), before)
	w.cuda.FailAt("Allocate", 1, &backends.UnavailableError{Backend: "cuda", Reason: "device 0 has no memory pools"})
	h, err := a.Access(backends.SpaceCUDA, 0)
	require.NoError(t, err)
	assert.True(t, h.Temporary())
	assert.Equal(t, backends.CUDA, h.Memory().Region().Allocator)
	assert.Equal(t, before.data, w.seenBy(h, 0, h.Stream()))
	require.NoError(t, h.Release())
	closeAll(t, a)
}
