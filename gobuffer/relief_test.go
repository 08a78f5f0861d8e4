package gobuffer_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// TestWhoeverRunsOutWaitsForTheCallbacksOfAnother has another goroutine run out while a callback runs.
func TestWhoeverRunsOutWaitsForTheCallbacksOfAnother(t *testing.T) {
	w := newWorld(t, 1, late)
	allocate := func() {
		m, err := w.runtime.Allocate(backends.CUDA, 0, 512, 0, false)
		if assert.NoError(t, err) {
			assert.NoError(t, m.Release())
		}
	}
	entered, over := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	w.runtime.OnOutOfMemory(func(int, int) bool {
		if calls.Add(1) > 1 {
			return false
		}
		before := w.cuda.CallCount("Allocate")
		close(entered)
		for w.cuda.CallCount("Allocate") == before {
			runtime.Gosched()
		}
		w.cuda.StopFailing()
		return true
	})
	w.cuda.FailAt("Allocate", 0, full(backends.CUDA))
	go func() {
		defer close(over)
		<-entered
		allocate()
	}()
	allocate()
	<-over
	assert.Equal(t, int64(1), calls.Load(), "what the first was given back was enough for both")
}

// TestManyRunOutTogether has all memory kept by whoever gives it back when it is asked for.
func TestManyRunOutTogether(t *testing.T) {
	const threads, rounds, size = 16, 60, 512
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA, Memory: threads * size})
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	var mutex sync.Mutex
	var kept []*gobuffer.Memory
	giveBack := func(int, int) bool {
		mutex.Lock()
		list := kept
		kept = nil
		mutex.Unlock()
		for _, m := range list {
			assert.NoError(t, m.Release())
		}
		return len(list) > 0
	}
	r.OnOutOfMemory(giveBack)
	for range rounds {
		var ready, over sync.WaitGroup
		ready.Add(threads)
		for range threads {
			over.Go(func() {
				ready.Done()
				ready.Wait()
				m, err := r.Allocate(backends.CUDA, 0, size, 0, false)
				if assert.NoError(t, err) {
					mutex.Lock()
					kept = append(kept, m)
					mutex.Unlock()
				}
			})
		}
		over.Wait()
	}
	giveBack(0, 0)
}
