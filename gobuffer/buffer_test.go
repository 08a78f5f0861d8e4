package gobuffer_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// useFakes makes fakes the process's backends for the length of a test.
func useFakes(t *testing.T) {
	t.Helper()
	cuda := backendtest.NewFake(late)
	require.NoError(t, gobuffer.Use(host.New(), cuda))
	r, err := gobuffer.Default()
	require.NoError(t, err)
	t.Cleanup(func() {
		cuda.AssertClean(t)
		(&world{t: t, runtime: r}).assertNothingLive()
		require.NoError(t, gobuffer.Use(all.New()...))
	})
}

func roundTrip[T gobuffer.Element](t *testing.T, values ...T) {
	for _, a := range []backends.Allocator{backends.Malloc, backends.CPP, backends.CUDA, backends.CUDAAsync,
		backends.CUDAUnified, backends.CUDAHost} {
		b, err := gobuffer.From(a, values)
		require.NoError(t, err)
		got := make([]T, len(values))
		require.NoError(t, b.Get(0, got))
		assert.Equal(t, values, got, "%T on %s", values, a)
		require.NoError(t, b.AppendValues(values...))
		require.NoError(t, b.ResizeValue(2*len(values)+1, values[0]))
		want := append(append(slices.Clone(values), values...), values[0])
		h, err := b.HostAccessible(context.Background())
		require.NoError(t, err)
		assert.Equal(t, want, h.Slice())
		require.NoError(t, h.Release())
		assert.Nil(t, h.Slice(), "after Release")
		require.NoError(t, b.FillValue(values[1]))
		require.NoError(t, b.Put(1, values[:1]))
		require.NoError(t, b.Get(1, got[:2]))
		assert.Equal(t, values[:2], got[:2])
		assert.Error(t, b.Put(b.Size(), values))
		assert.Error(t, b.Get(-1, got))
		require.NoError(t, b.Close())
		assert.ErrorIs(t, b.Put(0, nil), gobuffer.ErrFreed)
	}
}

func TestBufferOfEveryGoType(t *testing.T) {
	useFakes(t)
	roundTrip(t, true, false, true)
	roundTrip[int8](t, -1, 2, 3)
	roundTrip[int16](t, -1, 2, 3)
	roundTrip[int32](t, -1, 2, 3)
	roundTrip[int64](t, -1, 2, 3)
	roundTrip[uint8](t, 1, 2, 3)
	roundTrip[uint16](t, 1, 2, 3)
	roundTrip[uint32](t, 1, 2, 3)
	roundTrip[uint64](t, 1, 2, 3)
	roundTrip[float32](t, 1.5, 2, 3)
	roundTrip[float64](t, 1.5, 2, 3)
	roundTrip[complex64](t, 1i, 2, 3)
	roundTrip[complex128](t, 1i, 2, 3)
}

func TestTypedRefusesAnotherType(t *testing.T) {
	useFakes(t)
	a, err := gobuffer.NewOn[float32](0, backends.CUDA, 3)
	require.NoError(t, err)
	b, err := gobuffer.From(backends.Malloc, []int32{1, 2})
	require.NoError(t, err)
	_, err = gobuffer.Typed[int32](a.Array)
	assert.Error(t, err)
	same, err := gobuffer.Typed[int32](b.Array)
	require.NoError(t, err)
	require.NoError(t, a.Swap(same.Array))
	_, err = a.HostAccessible(context.Background())
	assert.Error(t, err, "a holds int32 now")
	closeAll(t, a.Array, b.Array)
}

func TestHostAccessibleHeedsItsContext(t *testing.T) {
	useFakes(t)
	b, err := gobuffer.New[int8](backends.CUDA, 3)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = b.HostAccessible(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, b.Close())
}

func TestAStridedBufferHasNoSlice(t *testing.T) {
	useFakes(t)
	b, err := gobuffer.From(backends.Malloc, []int16{1, 2, 3, 4})
	require.NoError(t, err)
	v, err := b.Array.Slice(0, 0, 4, 2)
	require.NoError(t, err)
	typed, err := gobuffer.Typed[int16](v)
	require.NoError(t, err)
	h, err := typed.HostAccessible(context.Background())
	require.NoError(t, err)
	assert.Nil(t, h.Slice())
	require.NoError(t, h.Release())
	closeAll(t, v, b.Array)
}
