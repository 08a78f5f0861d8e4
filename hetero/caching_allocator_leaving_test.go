package hetero_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/hetero"
)

// forgetful is a backend whose streams may all have ended but the default one.
type forgetful struct{ *backendtest.Fake }

func (forgetful) Kept(s backends.Stream) bool           { return s == 0 }
func (forgetful) KeepStream(int, backends.Stream) error { return nil }
func (forgetful) DropStream(int, backends.Stream) error { return nil }

func (forgetful) Collect(int, ...backends.Stream) (backends.Stream, error) { return 0, nil }

// TestMemoryThatIsGivenBackGivesBackOther while a stream ends, for which releases are waited for.
func TestMemoryThatIsGivenBackGivesBackOther(t *testing.T) {
	const size = 16 << 10 // more than may be left for somebody else to wait for
	fake := backendtest.NewFake(backendtest.FakeOptions{Synchronous: true, Reuses: true, Memory: 4 * size})
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), forgetful{fake})
	require.NoError(t, err)
	scheduler := hetero.New(r)
	a, err := scheduler.NewCachingAllocator(hetero.CachingAllocatorOptions{Allocator: backends.CUDA, Limit: 1})
	require.NoError(t, err)
	s, err := fake.NewStream(0)
	require.NoError(t, err)
	block := func(size int) *hetero.Block {
		b, err := a.AllocateOn(s, size)
		require.NoError(t, err)
		return b
	}
	large, small := block(size), block(256)
	forgotten, freed := make(chan error, 1), make(chan error, 1)
	aside, err := r.AdoptInOrder(small.Region(), small.Size(), 0, func(backends.Stream) error {
		go func() { forgotten <- scheduler.ForgetStream(s) }()
		time.Sleep(20 * time.Millisecond) // until it waits for this
		return small.Free()
	})
	require.NoError(t, err)
	require.NoError(t, aside.Leave(backends.EveryStream))
	require.NoError(t, aside.Release())
	assert.Empty(t, forgotten, "it is left for somebody else")
	go func() { freed <- large.Free() }()
	for _, over := range []chan error{freed, forgotten} {
		select {
		case err := <-over:
			assert.NoError(t, err)
		case <-time.After(5 * time.Second):
			t.Fatal("each waits for the other")
		}
	}
	require.NoError(t, r.ReleasePostponed())
	require.NoError(t, a.Close())
	require.NoError(t, scheduler.Trim())
	require.NoError(t, fake.DestroyStream(0, s))
	fake.AssertClean(t)
}
