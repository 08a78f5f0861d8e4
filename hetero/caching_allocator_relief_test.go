package hetero_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/hetero"
)

// TestManyRunOutTogether asks for blocks of sizes that are not those that are kept.
func TestManyRunOutTogether(t *testing.T) {
	const threads, rounds = 16, 60
	w := newWorld(t, 1, backendtest.FakeOptions{Synchronous: true, Memory: threads << 10})
	a := w.allocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA, Limit: backends.NoLimit})
	for round := range rounds {
		var ready, taken, over sync.WaitGroup
		ready.Add(threads)
		taken.Add(threads)
		for range threads {
			over.Go(func() {
				ready.Done()
				ready.Wait()
				b, err := a.AllocateOn(0, 1024>>(round%2))
				taken.Done()
				taken.Wait()
				if assert.NoError(t, err) {
					assert.NoError(t, b.Free())
				}
			})
		}
		over.Wait()
	}
	require.NoError(t, a.Close())
}
