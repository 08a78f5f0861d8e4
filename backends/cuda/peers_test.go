package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// reaches reports whether a device writes to memory; the emulator takes it for a misuse where it may not.
func (r *rig) reaches(t *testing.T, device int, at backends.Region) bool {
	t.Helper()
	err := r.writes(t, device, at)
	if err != nil {
		require.Contains(t, r.violations()[0], "does not reach")
		dl.Call(r.c.Reset)
	}
	return err == nil
}

// peerMemory is memory of device 0 of each kind whose access ends with the last Disable. A pool's never does.
func (r *rig) peerMemory(t *testing.T) []backends.Region {
	t.Helper()
	list := []backends.Region{r.reserve(t, backends.CUDA, 0, unit, 0).Region, r.grown(t)}
	require.NoError(t, r.Synchronize(0, 0))
	t.Cleanup(func() { require.NoError(t, r.Free(list[1], 2*unit, 0)) })
	return list
}

// The emulator takes it for a misuse when the access to a pool changes while its memory is in use.
func TestAPoolIsOpenToAllDevicesThatCanReachItFromTheStart(t *testing.T) {
	r := emulate(t, withDevices(3))
	at := r.reserve(t, backends.CUDAAsync, 1, unit, 0).Region
	require.NoError(t, r.Synchronize(1, 0))
	before := r.calls("cuMemPoolSetAccess")
	assert.Equal(t, 2, before)
	for range 2 {
		for _, device := range []int{0, 2} {
			require.NoError(t, r.Enable(device, 1))
			assert.True(t, r.reaches(t, device, at))
			require.NoError(t, r.SynchronizeDevice(device))
			require.NoError(t, r.Disable(device, 1))
			assert.True(t, r.reaches(t, device, at), "the rights never change")
			require.NoError(t, r.SynchronizeDevice(device))
		}
	}
	assert.Equal(t, before, r.calls("cuMemPoolSetAccess"))
}

func TestAPoolThatCannotBeOpenedIsNotMade(t *testing.T) {
	r := emulate(t, withDevices(2))
	r.fail("cuMemPoolSetAccess", 1, outOfMemory)
	_, err := r.Allocate(backends.Request{Allocator: backends.CUDAAsync, Device: 0, Size: unit})
	require.Error(t, err)
	assert.Equal(t, r.calls("cuMemPoolCreate"), r.calls("cuMemPoolDestroy"))
	r.reserve(t, backends.CUDAAsync, 0, unit, 0)
}

func TestPeersAreSeparatedWithTheLastDisable(t *testing.T) {
	r := emulate(t, withDevices(2))
	require.NoError(t, r.Disable(1, 0), "nobody has asked")
	assert.Zero(t, r.calls("cuCtxDisablePeerAccess"))
	list := r.peerMemory(t)
	for range 2 {
		require.NoError(t, r.Enable(1, 0))
		require.NoError(t, r.Enable(1, 0))
		require.NoError(t, r.Disable(1, 0))
		for _, at := range list {
			assert.True(t, r.reaches(t, 1, at), "%s: one is left", at.Allocator)
		}
		require.NoError(t, r.Disable(1, 0))
		require.NoError(t, r.Disable(1, 0))
		for _, at := range list {
			assert.False(t, r.reaches(t, 1, at), at.Allocator)
		}
	}
	assert.ErrorContains(t, r.Disable(1, 2), "no device 2")
}

func TestOthersKeepTheAccessThatTheyEnabled(t *testing.T) {
	r := emulate(t, withDevices(2))
	r.fail("cuCtxEnablePeerAccess", 1, peerAlreadyAllowed)
	require.NoError(t, r.Enable(1, 0))
	require.NoError(t, r.Disable(1, 0))
	assert.Zero(t, r.calls("cuCtxDisablePeerAccess"))

	require.NoError(t, r.Enable(1, 0))
	r.fail("cuCtxDisablePeerAccess", 1, peerNotAllowed)
	require.NoError(t, r.Disable(1, 0), "others have taken it back")
}

func TestCopiesKeepTheirAccess(t *testing.T) {
	r := emulate(t, withDevices(2))
	list := r.peerMemory(t)
	far := r.reserve(t, backends.CUDA, 1, unit, 0)
	require.NoError(t, copied(r.Copy(far.Region, list[0], unit, 0)))
	require.NoError(t, r.Enable(1, 0))
	for range 2 {
		require.NoError(t, r.Disable(1, 0))
	}
	// What one Disable too many took back, the next copy brings again.
	require.NoError(t, copied(r.Copy(far.Region, list[0], unit, 0)))
	require.NoError(t, r.SynchronizeDevice(1))
	for _, at := range list {
		assert.True(t, r.reaches(t, 1, at), at.Allocator)
	}
}

// The emulator takes it for a misuse when it runs the fill after the access has ended.
func TestPeersAreSeparatedAfterTheirWork(t *testing.T) {
	r := emulate(t, withDevices(2))
	at := r.peerMemory(t)[0]
	require.NoError(t, r.Enable(1, 0))
	before := r.calls("cuCtxSynchronize")
	require.NoError(t, r.writes(t, 1, at))
	require.NoError(t, r.Disable(1, 0))
	assert.Equal(t, 2, r.calls("cuCtxSynchronize")-before)
	assert.Empty(t, r.violations())
}
