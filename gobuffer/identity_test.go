package gobuffer_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

func TestTheSameDeviceInAnotherRuntime(t *testing.T) {
	one, two, three := backends.UUID{1}, backends.UUID{2}, backends.UUID{3}
	cuda := backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Identities: []backends.UUID{one, two}})
	hip := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceHIP, Devices: 3,
		Identities: []backends.UUID{three, two, one}})
	absent := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceOpenMP, Unavailable: "no runtime"})
	r, err := gobuffer.NewRuntime(host.New(), cuda, hip, absent)
	require.NoError(t, err)
	for device, want := range []int{2, 1} {
		number, found, err := r.SameDevice("cuda", device, "hip")
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, want, number)
		back, found, err := r.SameDevice("hip", number, "cuda")
		require.NoError(t, err)
		assert.True(t, found)
		assert.Equal(t, device, back)
	}
	_, found, err := r.SameDevice("hip", 0, "cuda")
	require.NoError(t, err)
	assert.False(t, found, "CUDA does not see it")
	_, found, err = r.SameDevice("cuda", 0, "host")
	require.NoError(t, err)
	assert.False(t, found, "the host has no devices")
	_, _, err = r.SameDevice("cuda", 2, "hip")
	assert.ErrorContains(t, err, "device is 2: accepted is 0 … 1 for cuda")
	_, _, err = r.SameDevice("cuda", 0, "abacus")
	assert.ErrorContains(t, err, "abacus")
	_, _, err = r.SameDevice("cuda", 0, "openmp")
	assert.ErrorIs(t, err, backends.ErrUnavailable)

	hip.FailAt("Identity", 1, errors.ErrUnsupported)
	_, found, err = r.SameDevice("hip", 1, "cuda")
	require.NoError(t, err)
	assert.False(t, found, "the runtime cannot tell")
	boom := errors.New("boom")
	cuda.FailAt("Identity", 1, boom)
	_, _, err = r.SameDevice("hip", 1, "cuda")
	assert.ErrorIs(t, err, boom)
}

func TestMemoryOfAnotherContext(t *testing.T) {
	w := newWorld(t, 2, late)
	require.NoError(t, w.cuda.Probe())
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAUnified} {
		at, err := w.cuda.Allocate(backends.Request{Allocator: a, Device: 1, Size: 8})
		require.NoError(t, err)
		for _, elsewhere := range []bool{false, true} {
			if elsewhere {
				w.cuda.MoveToAnotherContext(at)
			}
			found, err := w.runtime.Locate(at)
			require.NoError(t, err)
			before := w.cuda.Settled()
			require.NoError(t, w.runtime.SettleContext(found))
			assert.Equal(t, elsewhere && a == backends.CUDA, w.cuda.Settled() > before, "%s", a)
		}
		require.NoError(t, w.cuda.Free(backends.Region{Address: at, Allocator: a, Device: 1}, 8, 0))
	}
}
