package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// ready is a backend that has memory at once, unless it is busy.
type ready struct {
	*backendtest.Fake
	busy bool
}

func (r *ready) AllocateAtOnce(q backends.Request) (backends.Address, bool) {
	if r.busy {
		return 0, false
	}
	at, err := r.Allocate(q)
	return at, err == nil
}

func (r *ready) FreeAtOnce(at backends.Region, size int, s backends.Stream) bool {
	return !r.busy && r.Free(at, size, s) == nil
}

func newReady(t *testing.T) (*ready, *gobuffer.Runtime) {
	t.Helper()
	b := &ready{Fake: backendtest.NewFake(backendtest.FakeOptions{Manual: true, Strict: true, Devices: 2, Reuses: true,
		Space: backends.SpaceCUDA})}
	r, err := gobuffer.NewRuntime(b)
	require.NoError(t, err)
	t.Cleanup(func() { b.AssertClean(t) })
	return b, r
}

func live(r *gobuffer.Runtime) (allocations int64) {
	for _, s := range r.Statistics() {
		allocations += s.Live
	}
	return allocations
}

func TestElementsAtOnce(t *testing.T) {
	b, r := newReady(t)
	o := gobuffer.Options{Allocator: backends.CUDA, Device: 1}
	m := r.NewElementsAtOnce(arrayiface.Float32, 256, o)
	require.NotNil(t, m)
	assert.Equal(t, 1024, m.Size())
	assert.Equal(t, 1, m.Region().Device)
	assert.EqualValues(t, 1, live(r))
	assert.NotZero(t, uint32(m.Marks().Load()), "other streams wait for the one that it was taken on")
	m.Retain()
	assert.True(t, m.ReleaseAtOnce(), "one reference of two")
	b.busy = true
	assert.False(t, m.ReleaseAtOnce())
	assert.Equal(t, 1024, m.Size(), "it is there still")
	assert.Nil(t, r.NewElementsAtOnce(arrayiface.Float32, 256, o))
	b.busy = false
	assert.True(t, m.ReleaseAtOnce())
	assert.Zero(t, live(r))
	assert.Panics(t, func() { m.Release() })
	assert.False(t, m.ReleaseAtOnce())
	require.NoError(t, b.Synchronize(1, 0))
}

func TestElementsThatAreNotThereAtOnce(t *testing.T) {
	_, r := newReady(t)
	for _, o := range []gobuffer.Options{
		{Allocator: backends.Allocator(99)}, {Allocator: -1}, {Allocator: backends.Malloc}, {Allocator: backends.CUDAUnified},
		{Allocator: backends.CUDA, Device: 7}, {Allocator: backends.CUDA, Stream: 5},
	} {
		assert.Nil(t, r.NewElementsAtOnce(arrayiface.Float32, 256, o), o)
	}
	for _, count := range []int{-1, 0, 1 << 62} {
		assert.Nil(t, r.NewElementsAtOnce(arrayiface.Float32, count, gobuffer.Options{Allocator: backends.CUDA}), count)
	}
	r.SetTrace(func(string) {})
	assert.Nil(t, r.NewElementsAtOnce(arrayiface.Float32, 1, gobuffer.Options{Allocator: backends.CUDA}),
		"which is to be told of")
	assert.Zero(t, live(r))
}

func TestMemoryThatIsNotReleasedAtOnce(t *testing.T) {
	b, r := newReady(t)
	require.NoError(t, b.Probe())
	other, err := b.NewStream(0)
	require.NoError(t, err)
	for name, use := range map[string]func(m *gobuffer.Memory) error{
		"another stream's work":      func(m *gobuffer.Memory) error { return m.After(other, other) },
		"work on streams that ended": func(m *gobuffer.Memory) error { return m.Leave(backends.EveryStream) },
		"tracing":                    func(*gobuffer.Memory) error { r.SetTrace(func(string) {}); return nil },
	} {
		m := r.NewElementsAtOnce(arrayiface.Uint8, 100, gobuffer.Options{Allocator: backends.CUDA})
		require.NotNil(t, m, name)
		require.NoError(t, use(m), name)
		assert.False(t, m.ReleaseAtOnce(), name)
		r.SetTrace(nil)
		require.NoError(t, m.Release(), name)
	}
	adopted, err := r.Adopt(backends.Region{Address: 16, Allocator: backends.CUDA}, 8, 0, func() {})
	require.NoError(t, err)
	assert.False(t, adopted.ReleaseAtOnce(), "another's")
	require.NoError(t, adopted.Release())
	require.NoError(t, r.ReleasePostponed())
	require.NoError(t, b.Synchronize(0, 0))
	require.NoError(t, b.DestroyStream(0, other))
	assert.Zero(t, live(r))
}

// It may have been taken while its stream was captured, and is a graph's then: the driver alone knows.
func TestMemoryOfAStreamThatHasEndedIsNotReleasedAtOnce(t *testing.T) {
	b, r := newReady(t)
	require.NoError(t, b.Probe())
	own, err := b.NewStream(0)
	require.NoError(t, err)
	o := gobuffer.Options{Allocator: backends.CUDAAsync, Stream: own}
	m, err := r.NewElements(arrayiface.Uint8, 100, o, gobuffer.Value{})
	require.NoError(t, err)
	require.NoError(t, m.Forget(own))
	require.NoError(t, b.DestroyStream(0, own))
	b.Finish()
	assert.False(t, m.ReleaseAtOnce())
	require.NoError(t, m.Release())
	require.NoError(t, b.Synchronize(0, 0))
	assert.Zero(t, live(r))
}
