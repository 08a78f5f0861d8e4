package gobuffer_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

const muchKept = 1 << 20

// worldToCheck is a Runtime with a device whose memory is reused in the order of streams, and of which nothing is left.
func worldToCheck(t *testing.T) (*gobuffer.Runtime, *backendtest.Fake) {
	t.Helper()
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Space: backends.SpaceCUDA, Reuses: true})
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	t.Cleanup(func() {
		allocations, _ := fake.Live()
		_, events := fake.LiveHandles()
		assert.Equal(t, []int{0, 0}, []int{allocations, events}, "allocations and events")
		assert.Empty(t, fake.Violations())
	})
	return r, fake
}

// checkedWorld is such a world with a Checker.
func checkedWorld(t *testing.T, most int64) (*gobuffer.Runtime, *backendtest.Fake, *gobuffer.Checker) {
	t.Helper()
	r, fake := worldToCheck(t)
	var number atomic.Int64
	c, err := r.Check(most, func() int64 { return number.Add(1) })
	require.NoError(t, err)
	t.Cleanup(func() { c.Stop() })
	return r, fake, c
}

// stale is what whoever did not let go of an address has.
func stale(at backends.Address, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
}

func release(t *testing.T, m *gobuffer.Memory) backends.Region {
	t.Helper()
	at := m.Region()
	require.NoError(t, m.Release())
	return at
}

func TestAWriteToFreedMemoryOfTheHostIsFound(t *testing.T) {
	r, _, c := checkedWorld(t, muchKept)
	for _, a := range []backends.Allocator{backends.Malloc, backends.CPP} {
		m, err := r.Allocate(a, backends.HostDevice, 100, 0, false)
		require.NoError(t, err)
		freed := release(t, m)
		elements := stale(freed.Address, 100)
		assert.Equal(t, byte(gobuffer.Poison), elements[99])
		elements[40], elements[41] = 3, 4
		found, more := c.Look()
		require.Len(t, found, 1)
		assert.Zero(t, more)
		one := found[0]
		assert.Equal(t, gobuffer.Misuse{Library: gobuffer.LibraryHamr, Region: freed, Size: 100, Offset: 40, Bytes: 2,
			Value:     3,
			Allocated: one.Allocated, Freed: one.Freed}, one)
		assert.Less(t, one.Allocated.Stack, one.Freed.Stack)
		assert.LessOrEqual(t, one.Allocated.Time, one.Freed.Time)
		assert.NotZero(t, one.Allocated.Thread)
	}
	found, _ := c.Look()
	assert.Empty(t, found, "each is told once")
}

func TestAKernelThatIsLateIsFound(t *testing.T) {
	r, fake, c := checkedWorld(t, muchKept)
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		one, err := fake.NewStream(1)
		require.NoError(t, err)
		other, err := fake.NewStream(1)
		require.NoError(t, err)
		m, err := r.Allocate(a, 1, 3<<20/4, one, false)
		require.NoError(t, err)
		at := m.Region().Address
		write := func(memory func(backends.Address, int) []byte) { memory(at+7, 1)[0] = 9 }
		require.NoError(t, fake.Launch(1, one, write), "on the memory's own stream it is in time")
		freed := release(t, m)
		require.NoError(t, fake.Synchronize(1, one))
		require.NoError(t, fake.Launch(1, other, write))
		require.NoError(t, fake.Synchronize(1, other))
		// The stream may end: the memory was freed before.
		require.NoError(t, fake.DestroyStream(1, one))
		found, _ := c.Look()
		require.Len(t, found, 1, "%s", a)
		assert.Equal(t, []any{freed, 7, 1, byte(9), one},
			[]any{found[0].Region, found[0].Offset, found[0].Bytes, found[0].Value, found[0].Stream})
		require.NoError(t, fake.DestroyStream(1, other))
	}
}

func TestALibrarysWriteToWhatItFreedIsFound(t *testing.T) {
	r, fake, c := checkedWorld(t, muchKept)
	at, err := r.Grant(gobuffer.LibraryTorch, 0, 4096, 0, backends.NoTag)
	require.NoError(t, err)
	require.True(t, r.FreeFor(at))
	r.SettleGrants()
	require.NoError(t, fake.Launch(0, 0, func(memory func(backends.Address, int) []byte) { memory(at+4095, 1)[0] = 1 }))
	found, _ := c.Look()
	require.Len(t, found, 1)
	assert.Equal(t, []any{gobuffer.LibraryTorch, 4095}, []any{found[0].Library, found[0].Offset})
}

func TestALibrarysSecondReleaseIsFound(t *testing.T) {
	r, _, c := checkedWorld(t, muchKept)
	at, err := r.Grant(gobuffer.LibraryCuPy, 1, 4096, 0, backends.NoTag)
	require.NoError(t, err)
	require.True(t, r.FreeFor(at))
	assert.False(t, r.FreeFor(at), "before anything was waited for")
	r.SettleGrants()
	assert.False(t, r.FreeFor(at), "while it is kept")
	found, _ := c.Look()
	require.Len(t, found, 2)
	for _, one := range found {
		assert.Equal(t, []any{gobuffer.LibraryCuPy, 4096, 0, 1}, []any{one.Library, one.Size, one.Bytes, one.Region.Device})
		assert.Equal(t, at, one.Region.Address)
		assert.Less(t, one.Allocated.Stack, one.Freed.Stack)
		assert.Less(t, one.Freed.Stack, one.Again.Stack)
	}
	assert.False(t, r.FreeFor(at), "when it was given back")
	found, _ = c.Look()
	require.Len(t, found, 1)
	assert.Equal(t, []any{gobuffer.AnyLibrary, 0}, []any{found[0].Library, found[0].Size})
	assert.NotZero(t, found[0].Again.Time)

	again, err := r.Grant(gobuffer.LibraryTorch, 1, 4096, 0, backends.NoTag)
	require.NoError(t, err)
	require.True(t, r.FreeFor(again))
	found, _ = c.Stop()
	assert.Empty(t, found)
	assert.False(t, r.FreeFor(at), "nobody looks")
}

func TestFreedMemoryIsHandedOutLast(t *testing.T) {
	r, fake, c := checkedWorld(t, muchKept)
	for range 3 {
		m, err := r.Allocate(backends.CUDA, 0, 1<<18, 0, false)
		require.NoError(t, err)
		release(t, m)
	}
	allocations, _ := fake.Live()
	assert.Equal(t, 3, allocations, "none was reused")
	c.Look()
	allocations, _ = fake.Live()
	assert.Zero(t, allocations)
}

func TestWhatIsKeptIsGivenBackBeforeMemoryRunsOut(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceCUDA, Memory: 1 << 20, Reuses: true})
	r, err := gobuffer.NewRuntime(fake)
	require.NoError(t, err)
	c, err := r.Check(1<<30, nil)
	require.NoError(t, err)
	for range 10 {
		m, err := r.Allocate(backends.CUDA, 0, 600<<10, 0, false)
		require.NoError(t, err)
		release(t, m)
	}
	found, _ := c.Stop()
	assert.Empty(t, found)
	allocations, _ := fake.Live()
	assert.Zero(t, allocations)
}

func TestOneCheckerAtATime(t *testing.T) {
	r, _, c := checkedWorld(t, muchKept)
	_, err := r.Check(1, nil)
	require.EqualError(t, err, "memory is being checked already")
	c.Stop()
	c.Stop()
	_, err = r.Check(-1, nil)
	require.ErrorContains(t, err, "most")
	again, err := r.Check(0, nil)
	require.NoError(t, err)
	m, err := r.Allocate(backends.CUDA, 0, 100, 0, false)
	require.NoError(t, err)
	release(t, m)
	found, more := again.Stop()
	assert.Empty(t, found)
	assert.Zero(t, more)
}

// A walk without a fault, on several threads, tells of none; with planted ones it tells of these alone.
func TestRandomWalksOfCheckedMemory(t *testing.T) {
	for range 5 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		r, fake, c := checkedWorld(t, int64(1)<<(10+random.IntN(12)))
		var group sync.WaitGroup
		for range 3 {
			walker := rand.New(rand.NewPCG(random.Uint64(), 0))
			group.Go(func() { walkChecked(t, r, fake, walker) })
		}
		group.Go(func() {
			for range 20 {
				found, _ := c.Look()
				assert.Empty(t, found, "seed %d", seed)
			}
		})
		group.Wait()
		found, _ := c.Look()
		assert.Empty(t, found, "seed %d", seed)
	}
}

func walkChecked(t *testing.T, r *gobuffer.Runtime, fake *backendtest.Fake, random *rand.Rand) {
	s, err := fake.NewStream(0)
	assert.NoError(t, err)
	type held struct {
		memory *gobuffer.Memory
		value  byte
	}
	var mine []held
	drop := func(i int) {
		h := mine[i]
		mine = append(mine[:i], mine[i+1:]...)
		at, size := h.memory.Region().Address, h.memory.Size()
		if h.memory.Region().Device >= 0 {
			assert.NoError(t, fake.Launch(0, s, func(memory func(backends.Address, int) []byte) {
				assert.Equal(t, h.value, memory(at, size)[size-1])
			}))
		}
		assert.NoError(t, h.memory.Release())
	}
	for step := range 200 {
		if len(mine) > 8 || len(mine) > 0 && random.IntN(2) == 0 {
			drop(random.IntN(len(mine)))
			continue
		}
		a := []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.Malloc}[random.IntN(3)]
		device := 0
		if a == backends.Malloc {
			device = backends.HostDevice
		}
		size := 1 + random.IntN(5000)
		m, err := r.Allocate(a, device, size, map[bool]backends.Stream{true: 0, false: s}[device < 0], false)
		if !assert.NoError(t, err) {
			return
		}
		at, value := m.Region().Address, byte(step)
		if device >= 0 {
			assert.NoError(t, fake.Launch(0, s, func(memory func(backends.Address, int) []byte) {
				for i := range memory(at, size) {
					memory(at, size)[i] = value
				}
			}))
		}
		mine = append(mine, held{m, value})
	}
	for len(mine) > 0 {
		drop(0)
	}
	assert.NoError(t, fake.Synchronize(0, s))
	assert.NoError(t, fake.DestroyStream(0, s))
}

// Stop comes between a release's asking for the Checker and its keeping the memory.
func TestStoppingBesideReleases(t *testing.T) {
	r, _ := worldToCheck(t)
	var over atomic.Bool
	var releasing sync.WaitGroup
	for range 3 {
		releasing.Go(func() {
			for !over.Load() {
				m, err := r.Allocate(backends.CUDA, 0, 64, 0, false)
				if assert.NoError(t, err) {
					assert.NoError(t, m.Release())
				}
			}
		})
	}
	for range 300 {
		c, err := r.Check(muchKept, nil)
		require.NoError(t, err)
		found, more := c.Stop()
		assert.Empty(t, found)
		assert.Zero(t, more)
	}
	over.Store(true)
	releasing.Wait()
}

// TestThePatternComesBehindWhatTheReleaseWaitsFor has others' work on memory whose release waits for the device, on a
// stream that nobody has named.
func TestThePatternComesBehindWhatTheReleaseWaitsFor(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Space: backends.SpaceCUDA, FreeWaits: true})
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	c, err := r.Check(muchKept, nil)
	require.NoError(t, err)
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAUnified} {
		one, err := fake.NewStream(1)
		require.NoError(t, err)
		other, err := fake.NewStream(1)
		require.NoError(t, err)
		m, err := r.Allocate(a, 1, 100, one, false)
		require.NoError(t, err)
		at, saw := m.Region().Address, byte(0)
		fake.Poke(at, []byte{3})
		require.NoError(t, fake.Launch(1, other, func(memory func(backends.Address, int) []byte) { saw = memory(at, 1)[0] }))
		release(t, m)
		require.NoError(t, fake.Synchronize(1, one))
		require.NoError(t, fake.Synchronize(1, other))
		assert.Equal(t, byte(3), saw, "%s", a)
		found, _ := c.Look()
		assert.Empty(t, found)
		require.NoError(t, fake.DestroyStream(1, one))
		require.NoError(t, fake.DestroyStream(1, other))
	}
	c.Stop()
}

// TestNotMuchMoreIsKeptThanMayBe has nobody look meanwhile.
func TestNotMuchMoreIsKeptThanMayBe(t *testing.T) {
	r, _, c := checkedWorld(t, muchKept)
	looks := gobuffer.HoldLooking(c)
	for range 100 {
		m, err := r.Allocate(backends.Malloc, backends.HostDevice, muchKept, 0, false)
		require.NoError(t, err)
		release(t, m)
	}
	assert.LessOrEqual(t, gobuffer.KeptBytes(c), int64(66*muchKept))
	assert.Greater(t, gobuffer.KeptBytes(c), int64(60*muchKept))
	looks()
	found, _ := c.Look()
	assert.Empty(t, found)
	assert.Zero(t, gobuffer.KeptBytes(c))
}
