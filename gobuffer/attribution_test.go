package gobuffer_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

func TestAllocationsAreWhatStatisticsCount(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	libraries := []gobuffer.Library{gobuffer.LibraryHamr, gobuffer.LibraryCuPy, gobuffer.LibraryTorch,
		gobuffer.LibraryNumba}
	var group sync.WaitGroup
	held := make(chan *gobuffer.Memory, 1000)
	for range 4 {
		chosen := rand.New(rand.NewPCG(random.Uint64(), 0))
		group.Go(func() {
			for range 500 {
				m, err := r.AllocateFor(libraries[chosen.IntN(4)], backends.Malloc, backends.HostDevice, chosen.IntN(1000), 0)
				assert.NoError(t, err)
				held <- m
				if chosen.IntN(3) > 0 {
					assert.NoError(t, (<-held).Release())
				}
			}
		})
	}
	group.Go(func() {
		for range 100 {
			r.Allocations() // while they come and go
		}
	})
	group.Wait()
	close(held)
	total, count := int64(0), int64(0)
	for _, a := range r.Allocations() {
		total, count = total+int64(a.Size), count+1
	}
	s := statisticsOf(r, backends.Malloc)
	assert.Equal(t, []int64{s.Current, s.Live}, []int64{total, count}, "seed %d", seed)
	for m := range held {
		require.NoError(t, m.Release())
	}
	assert.Empty(t, r.Allocations())
}

func TestLimitsOfLibraries(t *testing.T) {
	r, err := gobuffer.NewRuntime(backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Space: backends.SpaceCUDA}))
	require.NoError(t, err)
	take := func(l gobuffer.Library, device, size int) (*gobuffer.Memory, error) {
		return r.AllocateFor(l, backends.CUDA, device, size, 0)
	}
	before, err := take(gobuffer.LibraryTorch, 0, 60)
	require.NoError(t, err)
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryTorch, "cuda", 0, 100))
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryTorch, "", 0, 150))
	_, err = take(gobuffer.LibraryTorch, 0, 41)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.True(t, full.Limited)
	assert.Contains(t, err.Error(), "the limit is 100 bytes for torch, of which 60 are in use")
	fits, err := take(gobuffer.LibraryTorch, 0, 40)
	require.NoError(t, err)
	_, err = take(gobuffer.LibraryTorch, 1, 51)
	require.ErrorContains(t, err, "150 bytes for torch in all, of which 100 are in use")
	other, err := take(gobuffer.LibraryCuPy, 0, 1000)
	require.NoError(t, err)
	require.NoError(t, before.Release())
	again, err := take(gobuffer.LibraryTorch, 0, 60)
	require.NoError(t, err)
	limits := r.LibraryLimits()
	require.Len(t, limits, 2)
	for _, l := range limits {
		assert.EqualValues(t, 100, l.Current)
	}
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryTorch, "cuda", 0, backends.NoLimit))
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryTorch, "", 0, backends.NoLimit))
	assert.Empty(t, r.LibraryLimits())
	for _, m := range []*gobuffer.Memory{fits, other, again} {
		require.NoError(t, m.Release())
	}
	require.Error(t, r.LimitLibrary(gobuffer.LibraryTorch, "cuda", 2, 1))
	require.Error(t, r.LimitLibrary(gobuffer.LibraryTorch, "nobody", 0, 1))
	require.Error(t, r.LimitLibrary(gobuffer.LibraryTorch, "cuda", 0, -2))
	require.Error(t, r.LimitLibrary(gobuffer.AnyLibrary, "", 0, 1))
	_, err = take(gobuffer.AnyLibrary, 0, 1)
	require.Error(t, err)
	_, err = gobuffer.LibraryNamed("jax")
	require.Error(t, err)
}

func TestLimitsOfTheHost(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New(),
		backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA}))
	require.NoError(t, err)
	take := func(a backends.Allocator, size int) (*gobuffer.Memory, error) {
		return r.AllocateFor(gobuffer.LibraryHamr, a, 0, size, 0)
	}
	before, err := take(backends.Malloc, 60)
	require.NoError(t, err)
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, gobuffer.OfHost, backends.HostDevice, 100))
	_, err = take(backends.CPP, 41)
	require.ErrorContains(t, err, "the limit is 100 bytes for hamr on the host, of which 60 are in use")
	onDevice, err := take(backends.CUDA, 1000)
	require.NoError(t, err)
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, gobuffer.OfHost, backends.HostDevice, backends.NoLimit))
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, "", 0, 1100))
	_, err = take(backends.Malloc, 41)
	require.ErrorContains(t, err, "the limit is 1100 bytes for hamr in all, of which 1060 are in use")
	fits, err := take(backends.Malloc, 40)
	require.NoError(t, err)
	for _, m := range []*gobuffer.Memory{before, onDevice, fits} {
		require.NoError(t, m.Release())
	}
	assert.Zero(t, r.LibraryLimits()[0].Current)
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, "", 0, backends.NoLimit))
}

func TestKeptMemoryIsLimited(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	require.NoError(t, r.LimitKept(1<<20))
	assert.EqualValues(t, 1<<20, r.Pools()[0].Limit)
	require.NoError(t, r.LimitKept(backends.DefaultLimit))
	assert.ErrorContains(t, r.LimitKept(-3), "bytes is -3")
}

// Limits that come and go while memory does leave the sums right.
func TestLimitsThatComeAndGoMeanwhile(t *testing.T) {
	r, err := gobuffer.NewRuntime(backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA}))
	require.NoError(t, err)
	limit := func(bytes int64) {
		assert.NoError(t, r.LimitLibrary(gobuffer.LibraryTorch, "cuda", 0, bytes))
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 2000 {
				m, err := r.AllocateFor(gobuffer.LibraryTorch, backends.CUDA, 0, 100, 0)
				if err == nil {
					assert.NoError(t, m.Release())
				}
			}
		})
	}
	group.Go(func() {
		for range 500 {
			limit(150)
			limit(backends.NoLimit)
		}
	})
	group.Wait()
	limit(150)
	assert.Zero(t, r.LibraryLimits()[0].Current)
	m, err := r.AllocateFor(gobuffer.LibraryTorch, backends.CUDA, 0, 150, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 150, r.LibraryLimits()[0].Current)
	require.NoError(t, m.Release())
	assert.Zero(t, r.LibraryLimits()[0].Current)
}

func TestARecorderKeepsTheNewest(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	stacks := int64(0)
	recorder, err := r.Record(4, func() int64 { stacks++; return stacks })
	require.NoError(t, err)
	_, err = r.Record(4, nil)
	require.Error(t, err, "one at a time")
	_, err = r.Record(0, nil)
	require.Error(t, err)
	var held []*gobuffer.Memory
	for size := range 3 {
		m, err := r.Allocate(backends.Malloc, backends.HostDevice, size+1, 0, false)
		require.NoError(t, err)
		held = append(held, m)
	}
	for _, m := range held[1:] {
		require.NoError(t, m.Release())
	}
	events, dropped := recorder.Events()
	assert.EqualValues(t, 1, dropped)
	sizes := []int{}
	for _, e := range events {
		sizes = append(sizes, e.Size)
		assert.NotZero(t, e.Thread)
		assert.NotZero(t, e.Stack)
	}
	assert.Equal(t, []int{2, 3, 2, 3}, sizes)
	assert.True(t, slices.IsSortedFunc(events, func(a, b gobuffer.Event) int { return int(a.Time - b.Time) }))
	recorder.Stop()
	recorder.Stop()
	require.NoError(t, held[0].Release())
	after, _ := recorder.Events()
	assert.Len(t, after, 4)
	again, err := r.Record(4, nil)
	require.NoError(t, err)
	again.Stop()
}

// An allocation that another goroutine makes for the caller is the caller's.
func TestWhatADelegateAllocatesIsItsCallers(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	number := int64(7)
	recorder, err := r.Record(10, func() int64 { return number })
	require.NoError(t, err)
	defer recorder.Stop()
	begin := r.Delegate()
	number = 8
	done := make(chan error)
	go func() {
		defer begin()()
		m, err := r.Allocate(backends.Malloc, backends.HostDevice, 5, 0, false)
		if err == nil {
			err = m.Release()
		}
		done <- err
	}()
	require.NoError(t, <-done)
	events, _ := recorder.Events()
	require.Len(t, events, 2)
	assert.EqualValues(t, 7, events[0].Stack)
	assert.Equal(t, events[0].Thread, events[1].Thread)
}

func TestTrackers(t *testing.T) {
	r, err := gobuffer.NewRuntime(backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Space: backends.SpaceCUDA}),
		host.New())
	require.NoError(t, err)
	_, err = r.Track(gobuffer.Of{Library: gobuffer.AnyLibrary, Backend: "nobody"})
	require.Error(t, err)
	all, err := r.Track(gobuffer.All)
	require.NoError(t, err)
	second, err := r.Track(gobuffer.Of{Library: gobuffer.AnyLibrary, Backend: "cuda", Device: 1})
	require.NoError(t, err)
	a, err := r.Allocate(backends.CUDA, 1, 100, 0, false)
	require.NoError(t, err)
	b, err := r.Allocate(backends.Malloc, backends.HostDevice, 10, 0, false)
	require.NoError(t, err)
	require.NoError(t, a.Release())
	assert.Equal(t, gobuffer.Tracked{Allocated: 100, Allocations: 1, Freed: 100, Peak: 100}, second.Stop())
	require.NoError(t, b.Release())
	assert.Equal(t, gobuffer.Tracked{Allocated: 110, Allocations: 2, Freed: 110, Peak: 110}, all.Read())
	assert.Equal(t, all.Read(), all.Stop())
	assert.Equal(t, all.Read(), all.Stop())
}
