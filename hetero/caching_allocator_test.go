package hetero_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

func (w *world) allocator(o hetero.CachingAllocatorOptions) *hetero.CachingAllocator {
	w.t.Helper()
	a, err := w.scheduler.NewCachingAllocator(o)
	require.NoError(w.t, err)
	return a
}

func (w *world) block(a *hetero.CachingAllocator, ctx *hetero.Context, size int) *hetero.Block {
	w.t.Helper()
	b, err := a.Allocate(ctx, size)
	require.NoError(w.t, err)
	assert.Equal(w.t, size, b.Size())
	return b
}

// each is for the kinds of memory that CMSSW's allocators are for, and what is taken in a stream's order.
func each(t *testing.T, test func(t *testing.T, w *world, a *hetero.CachingAllocator)) {
	for _, kind := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		t.Run(kind.String(), func(t *testing.T) {
			o := late
			o.LateMemory, o.Reuses = true, true
			w := newWorld(t, 2, o)
			a := w.allocator(hetero.CachingAllocatorOptions{Allocator: kind})
			test(t, w, a)
			w.finish()
			require.NoError(t, a.Close())
			assert.Equal(t, hetero.AllocatorStatistics{Limit: a.Stats().Limit, Hits: a.Stats().Hits, Misses: a.Stats().Misses},
				a.Stats())
			w.assertNeverBlocked()
		})
	}
}

func TestBlocksAreReusedAtOnceOnTheSameStreamAndLaterOnOthers(t *testing.T) {
	each(t, func(t *testing.T, w *world, a *hetero.CachingAllocator) {
		first, second := w.begin(cuda0), w.begin(cuda0)
		b := w.block(a, first, 1000)
		at := b.Region().Address
		w.work(cuda0, first.Stream())
		require.NoError(t, b.Free())

		other := w.block(a, second, 1000)
		assert.NotEqual(t, at, other.Region().Address, "the first stream's work is pending")
		same := w.block(a, first, 513)
		assert.Equal(t, at, same.Region().Address, "the same stream, another size of the same bin")
		require.NoError(t, same.Free())
		w.finish()
		later := w.block(a, second, 1024)
		assert.Equal(t, at, later.Region().Address)

		stats := a.Stats()
		assert.Equal(t, 2, stats.Live)
		assert.Equal(t, int64(2048), stats.LiveBytes)
		assert.Equal(t, int64(2024), stats.RequestedBytes)
		assert.Equal(t, [2]int64{2, 2}, [2]int64{stats.Hits, stats.Misses})
		require.NoError(t, errors.Join(other.Free(), later.Free(), first.End(), second.End()))
		require.ErrorIs(t, later.Free(), hetero.ErrReleased)
		assert.Equal(t, [2]int{0, 2}, [2]int{a.Stats().Live, a.Stats().Cached})
		assert.Equal(t, int64(2048), a.Stats().CachedBytes)
	})
}

// A consumer on another stream is named when a block is given back that it has used.
func TestABlockWaitsForAllItsUsers(t *testing.T) {
	each(t, func(t *testing.T, w *world, a *hetero.CachingAllocator) {
		first, second := w.begin(cuda0), w.begin(cuda0)
		b := w.block(a, first, 256)
		at := b.Region().Address
		w.work(cuda0, second.Stream())
		require.NoError(t, b.Free(first, second))
		for _, ctx := range []*hetero.Context{first, second} {
			other := w.block(a, ctx, 256)
			assert.NotEqual(t, at, other.Region().Address)
			require.NoError(t, other.Free())
		}
		w.finish()
		again := w.block(a, first, 256)
		seen := []backends.Address{again.Region().Address}
		more := w.block(a, first, 256)
		seen = append(seen, more.Region().Address)
		assert.Contains(t, seen, at)
		require.NoError(t, errors.Join(again.Free(), more.Free(), first.End(), second.End()))
	})
}

func TestBinsArePowersOfTwo(t *testing.T) {
	each(t, func(t *testing.T, w *world, a *hetero.CachingAllocator) {
		ctx := w.begin(cuda0)
		for _, c := range []struct {
			size int
			room int64
		}{{1, 256}, {256, 256}, {257, 512}, {1 << 20, 1 << 20}, {1<<20 + 1, 1 << 21}} {
			b := w.block(a, ctx, c.size)
			assert.Equal(t, c.room, a.Stats().LiveBytes, "%d bytes", c.size)
			require.NoError(t, b.Free())
		}
		for _, size := range []int{0, -1} {
			_, err := a.Allocate(ctx, size)
			var bad *gobuffer.ArgumentError
			require.ErrorAs(t, err, &bad)
		}
		require.NoError(t, ctx.End())
	})
}

// unbacked has memory of no bytes, however many are asked for.
type unbacked struct {
	*backendtest.Fake
	live map[backends.Address]int
}

func (u *unbacked) Allocate(r backends.Request) (backends.Address, error) {
	at := backends.Address(1+len(u.live)) << 40
	u.live[at] = r.Size
	return at, nil
}

func (u *unbacked) Free(at backends.Region, _ int, _ backends.Stream) error {
	delete(u.live, at.Address)
	return nil
}

// What is larger than the largest bin is given back to the runtime, when its work is over.
func TestLargeBlocksAreNotKept(t *testing.T) {
	fake := &unbacked{backendtest.NewFake(late), map[backends.Address]int{}}
	r, err := gobuffer.NewRuntime(fake)
	require.NoError(t, err)
	w := &world{t: t, runtime: r, scheduler: hetero.New(r), cuda: fake.Fake}
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDAAsync, Limit: backends.NoLimit})
	ctx := w.begin(cuda0)
	for size, kept := range map[int]int{1<<30 + 1: 0, 1 << 30: 1} {
		b := w.block(a, ctx, size)
		assert.Equal(t, int64(size), a.Stats().LiveBytes)
		w.work(cuda0, ctx.Stream())
		require.NoError(t, b.Free())
		assert.Equal(t, kept, a.Stats().Cached)
		assert.Len(t, fake.live, 1, "its work is pending")
		fake.Finish()
		require.NoError(t, a.Trim())
		assert.Empty(t, fake.live)
	}
	require.NoError(t, a.Close())
	_, err = a.Allocate(ctx, 1)
	require.ErrorIs(t, err, hetero.ErrReleased)
	require.NoError(t, ctx.End())
	assert.Zero(t, fake.CallCount("Synchronize")+fake.CallCount("SynchronizeEvent")+fake.CallCount("SynchronizeDevice"))
}

// CMSSW's rule: 0.8 of the free memory of the device that has least.
func TestWhatIsKeptIsLimited(t *testing.T) {
	o := late
	o.Memory, o.Reuses = 10<<10, true
	w := newWorld(t, 4, o)
	taken, err := w.runtime.Allocate(backends.CUDA, 3, 5<<10, 0, false)
	require.NoError(t, err)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA})
	assert.Equal(t, int64(4<<10), a.Stats().Limit)
	require.NoError(t, taken.Release())
	ctx := w.begin(cuda0)
	var blocks []*hetero.Block
	for range 5 {
		blocks = append(blocks, w.block(a, ctx, 1<<10))
	}
	w.work(cuda0, ctx.Stream())
	for _, b := range blocks {
		require.NoError(t, b.Free())
	}
	assert.Equal(t, int64(4<<10), a.Stats().CachedBytes)
	_, bytes := w.cuda.Live()
	assert.Equal(t, 5<<10, bytes, "work on what is too much is pending")
	w.finish()
	require.NoError(t, w.block(a, ctx, 1<<10).Free())
	_, bytes = w.cuda.Live()
	assert.Equal(t, 4<<10, bytes)

	// Where memory has run out, what is kept makes room.
	w.finish()
	large := w.block(a, ctx, 8<<10)
	assert.Zero(t, a.Stats().Cached)
	_, err = a.Allocate(ctx, 4<<10)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	require.NoError(t, large.Free())
	require.NoError(t, ctx.End())
	w.finish()
	require.NoError(t, a.Close())
	w.assertNeverBlocked()
}

func TestAnAllocatorServesItsDevice(t *testing.T) {
	w := newWorld(t, 2, late)
	device := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA, Device: 1})
	pinned := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDAHost})
	for _, c := range []struct {
		allocator *hetero.CachingAllocator
		place     string
		serves    bool
	}{
		{device, "cuda:1", true}, {device, "cuda:0", false}, {device, "hip:1", false},
		{pinned, "cuda:0", true}, {pinned, "cuda:1", true}, {pinned, "hip:0", false},
	} {
		ctx := w.begin(places(t, c.place)[0])
		b, err := c.allocator.Allocate(ctx, 1)
		if c.serves {
			require.NoError(t, err)
			require.NoError(t, b.Free())
		} else {
			var mismatch *hetero.DeviceMismatchError
			require.ErrorAs(t, err, &mismatch, c.place)
			assert.Equal(t, c.place, mismatch.Want.String())
		}
		require.NoError(t, ctx.End())
		_, err = c.allocator.Allocate(ctx, 1)
		require.ErrorIs(t, err, hetero.ErrEnded)
	}
	w.finish()
	require.NoError(t, errors.Join(device.Close(), pinned.Close()))
	for _, o := range []hetero.CachingAllocatorOptions{
		{Allocator: backends.Malloc}, {Allocator: backends.CUDA, Device: 2}, {Allocator: backends.CUDA, Limit: -2},
		{Allocator: 99},
	} {
		_, err := w.scheduler.NewCachingAllocator(o)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad, "%+v", o)
	}
	var none *hetero.CachingAllocator
	for _, a := range []*hetero.CachingAllocator{none, {}} {
		_, err := a.Allocate(nil, 1)
		require.ErrorIs(t, err, gobuffer.ErrZero)
		require.ErrorIs(t, a.Trim(), gobuffer.ErrZero)
		require.ErrorIs(t, a.Close(), gobuffer.ErrZero)
		assert.Zero(t, a.Stats())
	}
}

// The stream that memory was taken on may end before the memory.
func TestBlocksOutliveTheirStreams(t *testing.T) {
	o := late
	o.ReuseHandles = true
	w := newWorld(t, 1, o)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDAAsync})
	ctx := w.begin(cuda0)
	kept, live := w.block(a, ctx, 1), w.block(a, ctx, 1)
	require.NoError(t, errors.Join(kept.Free(), ctx.End()))
	other := w.begin(cuda0)
	moved := w.block(a, other, 1)
	require.NoError(t, errors.Join(live.Free(), moved.Free(), other.End()))
	w.finish()
	require.NoError(t, w.scheduler.Trim())
	streams, _ := w.cuda.LiveHandles()
	assert.Zero(t, streams)
	w.finish()
	require.NoError(t, a.Close())
}

// Where it cannot be recorded until when a block is in use, it is given back later, by who waits for it.
func TestABlockThatCannotBeMarkedIsWaitedFor(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA})
	ctx := w.begin(cuda0)
	b := w.block(a, ctx, 256)
	at := b.Region().Address
	require.NoError(t, w.cuda.Launch(0, ctx.Stream(),
		func(memory func(backends.Address, int) []byte) { memory(at, 1)[0] = 1 }))
	w.cuda.FailAt("Record", 1, errInjected)
	require.ErrorIs(t, b.Free(), errInjected)
	require.NoError(t, errors.Join(ctx.End(), a.Close()))
	allocations, _ := w.cuda.Live()
	assert.Zero(t, allocations)
}

func TestManyGoroutinesShareAnAllocator(t *testing.T) {
	w := newWorld(t, 1, lateWork)
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA})
	var users sync.WaitGroup
	for range 8 {
		ctx := w.begin(cuda0)
		users.Go(func() {
			for range 50 {
				b, err := a.Allocate(ctx, 300)
				assert.NoError(t, err)
				at := b.Region().Address
				written := make(chan byte, 2)
				for _, value := range []byte{1, 2} {
					assert.NoError(t, w.cuda.Launch(0, ctx.Stream(), func(memory func(backends.Address, int) []byte) {
						if value == 1 {
							memory(at, 1)[0] = value
						}
						written <- memory(at, 1)[0]
					}))
				}
				assert.NoError(t, b.Free())
				assert.Equal(t, []byte{1, 1}, []byte{receive(t, written), receive(t, written)})
			}
			assert.NoError(t, ctx.End())
		})
	}
	users.Wait()
	assert.Zero(t, a.Stats().Live)
	w.finish()
	require.NoError(t, a.Close())
}
