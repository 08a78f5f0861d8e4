package gobuffer_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
)

func statisticsOf(r *gobuffer.Runtime, a backends.Allocator) gobuffer.Statistics {
	for _, s := range r.Statistics() {
		if s.Allocator == a {
			return s
		}
	}
	return gobuffer.Statistics{Allocator: a}
}

func TestStatisticsAgreeWithAModel(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	want := gobuffer.Statistics{Allocator: backends.Malloc}
	var held []*gobuffer.Memory
	for step := range 3000 {
		switch n := random.IntN(20); {
		case n == 0:
			r.ResetPeaks()
			want.Peak = want.Current
		case n < 10 || len(held) == 0:
			size := random.IntN(1000)
			m, err := r.Allocate(backends.Malloc, backends.HostDevice, size, 0, false)
			require.NoError(t, err)
			held = append(held, m)
			want.Live, want.Made, want.Current = want.Live+1, want.Made+1, want.Current+int64(size)
			want.Peak = max(want.Peak, want.Current)
		default:
			i := random.IntN(len(held))
			m := held[i]
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			want.Live, want.Current = want.Live-1, want.Current-int64(m.Size())
			// Whatever goroutine lets go of it.
			done := make(chan error)
			go func() { done <- m.Release() }()
			require.NoError(t, <-done)
		}
		if step > 0 {
			require.Equal(t, want, statisticsOf(r, backends.Malloc), "seed %d, step %d", seed, step)
		}
	}
	for _, m := range held {
		require.NoError(t, m.Release())
	}
}

// A peak that is set back while memory is made is not below what there is then.
func TestResettingPeaksLosesNoAllocation(t *testing.T) {
	// build_support/go_tests.py has their names.
	for name, rounds := range map[string]int{"few": 5_000, "many": 95_000} {
		t.Run(name, func(t *testing.T) { resetPeaksMeanwhile(t, rounds) })
	}
}

func resetPeaksMeanwhile(t *testing.T, rounds int) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			r.ResetPeaks()
		}
	}()
	take := func(size int) *gobuffer.Memory {
		m, err := r.Allocate(backends.Malloc, backends.HostDevice, size, 0, false)
		require.NoError(t, err)
		return m
	}
	lost := 0
	for range rounds {
		require.NoError(t, take(100).Release())
		m := take(10)
		if s := statisticsOf(r, backends.Malloc); s.Peak < 10 {
			lost++
		}
		require.NoError(t, m.Release())
	}
	over.Store(true)
	<-done
	assert.Zero(t, lost, "times the peak was below what there was")
}

func TestStatisticsOfManyGoroutinesAddUp(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	const each, workers = 500, 8
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			var held []*gobuffer.Memory
			for i := range each {
				m, err := r.Allocate(backends.Malloc, backends.HostDevice, 100+i%7, 0, false)
				assert.NoError(t, err)
				if held = append(held, m); len(held) > 10 {
					assert.NoError(t, held[0].Release())
					held = held[1:]
				}
				s := statisticsOf(r, backends.Malloc)
				assert.LessOrEqual(t, int64(0), s.Current)
				assert.LessOrEqual(t, s.Current, s.Peak)
				assert.LessOrEqual(t, int64(0), s.Live)
			}
			for _, m := range held {
				assert.NoError(t, m.Release())
			}
		})
	}
	group.Wait()
	s := statisticsOf(r, backends.Malloc)
	assert.LessOrEqual(t, s.Peak, int64(workers*11*106))
	s.Peak = 0
	assert.Equal(t, gobuffer.Statistics{Allocator: backends.Malloc, Made: each * workers}, s)
}
