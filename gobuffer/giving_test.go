package gobuffer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// TestAnOwnerReleasesMemoryWhileOthersAreWaitedFor has an owner, who is given memory back after a wait for its
// device, release memory that is waited for itself, as a caching allocator does over its limit.
func TestAnOwnerReleasesMemoryWhileOthersAreWaitedFor(t *testing.T) {
	w := newWorld(t, 1, late)
	own := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before).Memory()
	waited := make(chan error, 1)
	m, err := w.runtime.AdoptInOrder(own.Region(), own.Size(), 0, func(backends.Stream) error {
		go func() { waited <- w.runtime.ReleasePostponed() }()
		time.Sleep(20 * time.Millisecond) // until it waits for this
		return own.Release()
	})
	require.NoError(t, err)
	require.NoError(t, m.Leave(backends.EveryStream))
	require.NoError(t, own.Leave(backends.EveryStream))
	released := make(chan error, 1)
	go func() { released <- m.Release() }()
	for _, over := range []chan error{released, waited} {
		select {
		case err := <-over:
			assert.NoError(t, err)
		case <-time.After(5 * time.Second):
			t.Fatal("each waits for the other")
		}
	}
}
