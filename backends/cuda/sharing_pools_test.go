package cuda

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// imported is an allocation of a device's pool, and the same once more, as another process has it:
// the emulator imports its own pools, too.
func (r *rig) imported(t *testing.T, device, size int) (made, foreign backends.Region, pool uintptr) {
	t.Helper()
	made = r.reserve(t, backends.CUDAAsync, device, size, 0).Region
	require.NoError(t, r.SynchronizeDevice(device))
	descriptor, err := r.SharedPool(backends.CUDAAsync, device)
	require.NoError(t, err)
	pool, err = r.ImportPool(descriptor, device)
	require.NoError(t, err)
	require.NoError(t, closeDescriptor(descriptor))
	exported, offset, err := r.ExportPooled(moved(made, size-1))
	require.NoError(t, err)
	assert.Equal(t, size-1, offset)
	foreign, err = r.ImportPooled(pool, exported)
	require.NoError(t, err)
	return made, foreign, pool
}

func withSharedPools(devices int) settings {
	s := withDevices(devices)
	s[PoolSharingSetting] = "1"
	return s
}

func TestPeersReachWhatWasImportedOfAPool(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := emulate(t, withSharedPools(2))
		if first {
			require.NoError(t, r.Enable(1, 0))
		}
		made, foreign, pool := r.imported(t, 0, unit)
		if !first {
			require.NoError(t, r.Enable(1, 0))
		}
		require.NoError(t, r.writes(t, 1, foreign), "connected first: %v", first)
		require.NoError(t, r.ClosePooled(foreign), "which waits for device 1")
		assert.EqualValues(t, 7, r.read(t, made, unit, 0)[unit-1])
		require.NoError(t, r.ClosePool(pool))
	}
}

func TestAnImportedAllocationIsCountedByItsMaker(t *testing.T) {
	r := emulate(t, withSharedPools(1))
	files := openFiles(t)
	made, foreign, pool := r.imported(t, 0, 3000)
	before, _, err := r.MemoryInfo(0)
	require.NoError(t, err)
	found, err := r.Locate(moved(foreign, 10).Address)
	require.NoError(t, err)
	assert.Equal(t, backends.Location{Region: moved(foreign, 10), Base: foreign.Address, Size: 3000}, found)
	require.NoError(t, r.ClosePool(pool), "its allocations last")
	require.NoError(t, copied(r.Copy(foreign, made, 3000, 0)))
	require.NoError(t, r.ClosePooled(foreign))
	after, _, err := r.MemoryInfo(0)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Equal(t, files+1, openFiles(t), "the pool's own")
}

func TestWhatIsImportedTwiceLastsUntilTheSecondEnd(t *testing.T) {
	r := emulate(t, withSharedPools(1))
	made, foreign, pool := r.imported(t, 0, 3000)
	exported, _, err := r.ExportPooled(made)
	require.NoError(t, err)
	again, err := r.ImportPooled(pool, exported)
	require.NoError(t, err)
	assert.Equal(t, foreign, again)
	require.NoError(t, r.ClosePooled(foreign))
	require.NoError(t, copied(r.Copy(again, made, 3000, 0)))
	require.NoError(t, r.ClosePooled(again))
	assert.ErrorContains(t, r.ClosePooled(again), "no allocation was imported")
	require.NoError(t, r.ClosePool(pool))
}

func TestPoolsAreSharedWhereThatIsAskedFor(t *testing.T) {
	r := emulate(t, withDevices(1))
	_, err := r.SharedPool(backends.CUDAAsync, 0)
	assert.ErrorContains(t, err, "HAMR_CUDA_POOL_SHARED=1")
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	b := r.reserve(t, backends.CUDAAsync, 0, 100, 0)
	require.NoError(t, r.SynchronizeDevice(0))
	plain := r.reserve(t, backends.CUDA, 0, 100, 0)
	_, _, err = r.ExportPooled(plain.Region)
	assert.ErrorContains(t, err, "is not of allocator cuda_async")
	_ = b

	r = emulate(t, withSharedPools(1))
	_, err = r.SharedPool(backends.CUDA, 0)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	_, err = r.SharedPool(backends.CUDAAsync, backends.HostDevice)
	assert.ErrorContains(t, err, "no device -1")
	_, err = r.ImportPool(-1, 0)
	assert.ErrorContains(t, err, "descriptor -1")
	_, err = r.ImportPooled(77, make([]byte, exportedSize))
	assert.ErrorContains(t, err, "no pool 0x4d")

	lacking := emulate(t, settings{"HAMR_EMULATOR_SHARES": "0", PoolSharingSetting: "1"})
	_, err = lacking.SharedPool(backends.CUDAAsync, 0)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	lacking.reserve(t, backends.CUDAAsync, 0, 100, 0)
}

// poolSharing are the operations of backends.PoolSharer for TestEveryCallFails: each leaves no descriptor.
func poolSharing() []operation {
	// made is not imported yet
	on := func(name string, do func(r *rig, made backends.Region, pool uintptr) (undo func() error, err error)) operation {
		return operation{name, 2, func(t *testing.T, r *rig) func() (func() error, error) {
			r.sharedPools = true
			r.connect(0, 1)
			_, foreign, pool := r.imported(t, 0, 3000)
			made := r.reserve(t, backends.CUDAAsync, 0, 3000, 0).Region
			require.NoError(t, r.SynchronizeDevice(0))
			t.Cleanup(func() {
				require.NoError(t, r.ClosePooled(foreign))
				require.NoError(t, r.ClosePool(pool))
			})
			return func() (func() error, error) {
				before := openFiles(t)
				undo, err := do(r, made, pool)
				if err != nil {
					assert.Equal(t, before, openFiles(t), "open files")
				}
				return undo, err
			}
		}}
	}
	return []operation{
		on("import pool", func(r *rig, _ backends.Region, _ uintptr) (func() error, error) {
			descriptor, err := r.SharedPool(backends.CUDAAsync, 0)
			if err != nil {
				return nothing, err
			}
			pool, err := r.ImportPool(descriptor, 0)
			return func() error { return r.ClosePool(pool) }, errors.Join(err, closeDescriptor(descriptor))
		}),
		on("import pooled", func(r *rig, made backends.Region, pool uintptr) (func() error, error) {
			exported, _, err := r.ExportPooled(made)
			if err != nil {
				return nothing, err
			}
			at, err := r.ImportPooled(pool, exported)
			return func() error { return r.ClosePooled(at) }, err
		}),
		on("close pooled", func(r *rig, made backends.Region, pool uintptr) (func() error, error) {
			exported, _, err := r.ExportPooled(made)
			if err != nil {
				return nothing, err
			}
			at, err := r.ImportPooled(pool, exported)
			if err != nil {
				return nothing, err
			}
			if err = r.ClosePooled(at); r.foreignPools.times[at.Address] > 0 {
				r.stopFailing()
				if again := r.ClosePooled(at); again != nil {
					return nothing, again
				}
			}
			return nothing, err
		}),
	}
}
