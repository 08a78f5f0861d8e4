package bridge

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/store"
)

// Threads that finish one object at the same time do that once.
func TestABuilderIsTakenOnce(t *testing.T) {
	for range 300 {
		o := &storeObject{}
		o.builder.Store(new(store.Builder))
		token := storeObjects.keep(o)
		var ready, taken atomic.Int64
		var threads sync.WaitGroup
		for range 2 {
			threads.Go(func() {
				for ready.Add(1); ready.Load() < 2; { // both begin at once
				}
				if _, _, err := takeBuilder(token); err == nil {
					taken.Add(1)
				}
			})
		}
		threads.Wait()
		require.EqualValues(t, 1, taken.Load())
		_, _ = storeObjects.take(token)
	}
}
