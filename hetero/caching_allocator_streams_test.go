package hetero_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

func (w *world) stream(device int) backends.Stream {
	w.t.Helper()
	require.NoError(w.t, w.cuda.Probe())
	s, err := w.cuda.NewStream(device)
	require.NoError(w.t, err)
	return s
}

func (w *world) memory(a *hetero.CachingAllocator, s backends.Stream, size int) *gobuffer.Memory {
	w.t.Helper()
	m, err := a.Memory(s, size)
	require.NoError(w.t, err)
	assert.Equal(w.t, size, m.Size())
	return m
}

// Memory goes back at its last Release, after what its own stream holds and what hamr has done on others.
func TestMemoryThatGoesBackByItself(t *testing.T) {
	each(t, func(t *testing.T, w *world, a *hetero.CachingAllocator) {
		first, second := w.stream(0), w.stream(0)
		m := w.memory(a, first, 1000)
		at := m.Region().Address
		w.work(cuda0, first)
		require.NoError(t, m.Retain().Release())
		assert.Equal(t, 1, a.Stats().Live)
		require.NoError(t, m.Release())
		assert.Equal(t, 1, a.Stats().Cached)
		other, same := w.memory(a, second, 1000), w.memory(a, first, 600)
		assert.Equal(t, at, same.Region().Address)
		assert.NotEqual(t, at, other.Region().Address)

		// What was left on another stream is waited for by the stream that it goes back on.
		w.work(cuda0, second)
		require.NoError(t, same.Leave(second))
		waits := w.calls(func() { require.NoError(t, same.Release()) }, "Wait")
		assert.Equal(t, []string{"Wait"}, waits)
		require.NoError(t, other.Release())
		w.finish()
		require.NoError(t, errors.Join(w.scheduler.ForgetStream(first), w.scheduler.ForgetStream(second)))
		require.NoError(t, errors.Join(w.cuda.DestroyStream(0, first), w.cuda.DestroyStream(0, second)))
	})
}

// A stream that has ended with work to do is not the one whose handle is the same.
func TestAHandleOfTwoStreams(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		o := late
		o.ReuseHandles, o.Reuses = true, true
		w := newWorld(t, 1, o)
		a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA})
		s := w.stream(0)
		m := w.memory(a, s, 100)
		at := m.Region().Address
		w.work(cuda0, s)
		require.NoError(t, m.Release())
		if forgotten {
			require.NoError(t, w.scheduler.ForgetStream(s))
			require.NoError(t, w.cuda.DestroyStream(0, s))
			again := w.stream(0)
			require.Equal(t, s, again)
		}
		m = w.memory(a, s, 100)
		assert.Equal(t, !forgotten, m.Region().Address == at)
		require.NoError(t, m.Release())
		w.finish()
		require.NoError(t, errors.Join(a.Close(), w.cuda.DestroyStream(0, s)))
	}
}

func TestStreamsThatAnAllocatorServes(t *testing.T) {
	w := newWorld(t, 2, late)
	device := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA, Device: 1})
	pinned := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDAHost})
	for number := range 2 {
		s := w.stream(number)
		b, err := device.AllocateOn(s, 1)
		if number == 1 {
			require.NoError(t, errors.Join(err, b.Free()))
		} else {
			var mismatch *hetero.DeviceMismatchError
			require.ErrorAs(t, err, &mismatch)
			assert.Equal(t, cuda0, mismatch.Want)
		}
		m := w.memory(pinned, s, 1)
		require.NoError(t, errors.Join(m.Release(), w.scheduler.ForgetStream(s), w.cuda.DestroyStream(number, s)))
	}
	for _, a := range []*hetero.CachingAllocator{device, pinned} {
		require.NoError(t, w.memory(a, 0, 1).Release(), "the default stream")
		_, err := a.AllocateOn(0, 0)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad)
		w.cuda.FailAt("Resolve", 1, errInjected)
		_, err = a.AllocateOn(0, 1)
		require.ErrorIs(t, err, errInjected)
	}
	_, err := (*hetero.CachingAllocator)(nil).Memory(0, 1)
	require.ErrorIs(t, err, gobuffer.ErrZero)
	require.ErrorIs(t, (*hetero.Block)(nil).Free(), gobuffer.ErrZero)
	require.ErrorIs(t, new(hetero.Block).Free(), gobuffer.ErrZero)
	w.finish()
	require.NoError(t, errors.Join(device.Close(), pinned.Close()))
}

// What is pending when an allocator is closed, or in use, goes back by itself, and nobody waits.
func TestTheEndOfAnAllocatorInUse(t *testing.T) {
	for _, kind := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		o := late
		o.Reuses = true
		w := newWorld(t, 1, o)
		a := w.allocator(hetero.CachingAllocatorOptions{Allocator: kind})
		ctx := w.begin(cuda0)
		pending, used := w.block(a, ctx, 1), w.block(a, ctx, 1)
		w.work(cuda0, ctx.Stream())
		require.NoError(t, errors.Join(pending.Free(), a.Close()))
		require.NoError(t, errors.Join(used.Free(), ctx.End()))
		allocations, _ := w.cuda.Live()
		assert.Equal(t, 2, allocations, "their work is pending")
		w.finish()
		require.Eventually(t, func() bool { n, _ := w.cuda.Live(); return n == 0 }, patience, time.Millisecond)
		require.Eventually(t, func() bool { return w.scheduler.CacheStatistics()[0].Streams.Out == 0 }, patience,
			time.Millisecond)
		w.assertNeverBlocked()
	}
}

// A context that has ended may have used a block on a stream that is somebody else's by now.
func TestABlockOfAContextThatHasEnded(t *testing.T) {
	o := late
	o.Reuses = true
	w := newWorld(t, 1, o)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDAAsync})
	owner, user := w.begin(cuda0), w.begin(cuda0)
	b := w.block(a, owner, 1)
	at := b.Region().Address
	require.NoError(t, w.cuda.Launch(0, user.Stream(),
		func(memory func(backends.Address, int) []byte) { memory(at, 1)[0] = 1 }))
	require.NoError(t, user.End())
	require.ErrorIs(t, b.Free(user), hetero.ErrEnded)
	assert.Zero(t, a.Stats().Cached)
	require.NoError(t, w.cuda.Synchronize(0, owner.Stream()))
	require.NoError(t, errors.Join(owner.End(), a.Close()))
	assert.Zero(t, w.cuda.CallCount("SynchronizeDevice"), "it is aside")
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, 1, w.cuda.CallCount("SynchronizeDevice"), "whose work is over nobody can tell")
}

// Memory of anybody's that has run out is made room for.
func TestWhatIsKeptMakesRoomForOthers(t *testing.T) {
	o := late
	o.Memory, o.Reuses = 10<<10, true
	w := newWorld(t, 1, o)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA, Limit: backends.NoLimit})
	ctx := w.begin(cuda0)
	require.NoError(t, w.block(a, ctx, 8<<10).Free())
	w.finish()
	m, err := w.runtime.Allocate(backends.CUDA, 0, 4<<10, 0, false)
	require.NoError(t, err)
	assert.Zero(t, a.Stats().Cached)
	require.NoError(t, errors.Join(m.Release(), ctx.End(), a.Close()))
	w.finish()
	require.NoError(t, w.scheduler.TrimAllocators())
}

func TestThePreferredAllocator(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{})
	for kind, want := range map[backends.MemoryKind]backends.Allocator{backends.DeviceOnly: backends.CUDAAsync,
		backends.Pinned: backends.CUDAHost} {
		a, err := w.scheduler.Preferred(cuda0, kind)
		require.NoError(t, err)
		assert.Equal(t, want, a)
	}
	_, err := w.scheduler.Preferred(cuda0, backends.Pageable)
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, err, &bad)
	_, err = w.scheduler.Preferred(hetero.Place{Backend: "cuda", Device: 1}, backends.Pinned)
	require.ErrorAs(t, err, &bad)
}
