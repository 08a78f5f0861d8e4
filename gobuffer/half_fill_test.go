package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// halfFilling enqueues a fill and says that it has failed, as of several copies the last one may.
type halfFilling struct{ *backendtest.Fake }

func (f halfFilling) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	if err := f.Fake.Fill(dst, pattern, count, s); err != nil {
		return err
	}
	return errInjected
}

func TestWhatAFailedFillHasEnqueuedIsWaitedFor(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceCUDA, Devices: 1, Manual: true, Strict: true})
	r, err := gobuffer.NewRuntime(host.New(), halfFilling{fake})
	require.NoError(t, err)
	require.NoError(t, fake.Probe())
	s, err := fake.NewStream(0)
	require.NoError(t, err)
	a, err := r.NewArray(arrayiface.Int32, []int{6},
		gobuffer.Options{Allocator: backends.CUDA, Stream: s, Transfer: gobuffer.Async})
	require.NoError(t, err)
	view, err := a.Slice(0, 0, 6, 1)
	require.NoError(t, err)
	five, err := r.NewArray(arrayiface.Int32, []int{1}, gobuffer.Options{Allocator: backends.Malloc})
	require.NoError(t, err)
	assert.ErrorIs(t, view.Fill(five), errInjected)
	_, pending := a.Memory().Busy()
	assert.True(t, pending, "nobody would wait for it")
	closeAll(t, a, view, five)
	require.NoError(t, fake.DestroyStream(0, s))
	fake.AssertClean(t)
}
