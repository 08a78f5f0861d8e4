package cuda

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// shared is memory in two places, the second of which is read-only.
func (r *rig) shared(t *testing.T, device int) (made, mapped backends.Region, descriptor int) {
	t.Helper()
	made, descriptor, err := r.NewShared(device, unit)
	require.NoError(t, err)
	mapped, err = r.MapShared(descriptor, device, unit, true)
	require.NoError(t, err)
	return made, mapped, descriptor
}

func (r *rig) unmap(t *testing.T, list ...backends.Region) {
	t.Helper()
	for _, at := range list {
		require.NoError(t, r.UnmapShared(at, unit))
	}
}

// writes has a device fill memory, whosever it is.
func (r *rig) writes(t *testing.T, device int, at backends.Region) error {
	t.Helper()
	v, err := r.enter(device, legacyStream)
	require.NoError(t, err)
	defer v.leave()
	return r.call(r.driver.Memset8, uintptr(at.Address), 7, unit, uintptr(legacyStream))
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestPeersReachSharedMemoryAsItsDeviceDoes(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := emulate(t, withDevices(3))
		if first {
			require.NoError(t, r.Enable(1, 0))
		}
		made, mapped, descriptor := r.shared(t, 0)
		if !first {
			require.NoError(t, r.Enable(1, 0))
		}
		far := r.reserve(t, backends.CUDA, 1, unit, 0)
		for _, at := range []backends.Region{made, mapped} {
			require.NoError(t, copied(r.Copy(far.Region, at, unit, 0)))
		}
		assert.NoError(t, r.writes(t, 1, made), "connected first: %v", first)
		assert.Error(t, r.writes(t, 1, mapped), "connected first: %v", first)
		require.NoError(t, r.SynchronizeDevice(1))
		require.NoError(t, r.ProtectShared(made, unit))
		for device := range 2 {
			assert.Error(t, r.writes(t, device, made), "device %d", device)
		}
		r.unmap(t, made, mapped)
		require.NoError(t, closeDescriptor(descriptor))
	}
}

// Which is the driver's CUDA_ERROR_ILLEGAL_ADDRESS, as on a device.
func TestAKernelsWriteToReadOnlyMemoryIsIllegal(t *testing.T) {
	r := emulate(t, withDevices(1))
	made, mapped, descriptor := r.shared(t, 0)
	require.NoError(t, r.Fill(made, []byte{1, 2, 3}, unit/3, 0))
	require.NoError(t, r.SynchronizeDevice(0))
	assert.Empty(t, r.violations(), "the kernel reads and writes what it may")
	var failed *backends.DeviceError
	require.NoError(t, r.Fill(mapped, []byte{3, 2, 1}, unit/3, 0))
	require.ErrorAs(t, r.SynchronizeDevice(0), &failed)
	assert.Equal(t, 700, failed.Code)
	dl.Call(r.c.Reset)
	r.unmap(t, made, mapped)
	require.NoError(t, closeDescriptor(descriptor))
}

func TestSharedMemoryIsNeitherFreedNorGrown(t *testing.T) {
	r := emulate(t, withDevices(2))
	made, mapped, descriptor := r.shared(t, 1)
	assert.Equal(t, backends.CUDAVMM, made.Allocator)
	for _, at := range []backends.Region{made, mapped} {
		assert.Error(t, r.Free(at, unit, 0))
		_, err := r.Grow(at, unit, 2*unit)
		assert.Error(t, err)
		_, _, err = r.Relocate(at, unit, 2*unit)
		assert.Error(t, err)
		found, err := r.Locate(moved(at, unit-1).Address)
		require.NoError(t, err)
		assert.Equal(t, backends.Location{Region: moved(at, unit-1), Base: at.Address, Size: unit}, found)
	}
	assert.ErrorContains(t, r.UnmapShared(moved(made, unit/2), unit/2), "no shared memory")
	assert.ErrorContains(t, r.UnmapShared(made, 2*unit), "no shared memory")
	assert.ErrorContains(t, r.ProtectShared(backends.Region{Address: made.Address}, unit), "no shared memory")
	growing := r.grown(t)
	assert.ErrorContains(t, r.UnmapShared(growing, 2*unit), "no shared memory")
	require.NoError(t, r.Free(growing, 2*unit, 0))

	_, err := r.MapShared(descriptor, 0, unit, false)
	assert.ErrorContains(t, err, "another device than 0")
	_, err = r.MapShared(descriptor, backends.HostDevice, unit, false)
	assert.ErrorContains(t, err, "no device -1")
	_, _, err = r.NewShared(2, unit)
	assert.ErrorContains(t, err, "no device 2")
	r.unmap(t, made, mapped)
	assert.Error(t, r.UnmapShared(made, unit), "twice")
	require.NoError(t, closeDescriptor(descriptor))
}

// The memory is counted once, and lasts as long as somebody has it.
func TestSharedMemoryLastsWhileThereIsADescriptor(t *testing.T) {
	r := emulate(t, withDevices(1))
	files := openFiles(t)
	before, _, err := r.MemoryInfo(0)
	require.NoError(t, err)
	made, mapped, descriptor := r.shared(t, 0)
	during, _, err := r.MemoryInfo(0)
	require.NoError(t, err)
	assert.EqualValues(t, unit, before-during)
	require.NoError(t, r.writes(t, 0, made))
	r.unmap(t, made, mapped)
	again, err := r.MapShared(descriptor, 0, unit, true)
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.read(t, again, unit, 0)[unit-1])
	r.unmap(t, again)
	require.NoError(t, closeDescriptor(descriptor))
	assert.Equal(t, files, openFiles(t))
}

func TestSharingThatADriverLacks(t *testing.T) {
	lacking := func(r *rig) {
		assert.ErrorIs(t, r.Shares(0), backends.ErrUnavailable)
		_, _, err := r.NewShared(0, unit)
		assert.ErrorIs(t, err, backends.ErrUnavailable)
	}
	lacking(emulate(t, settings{"HAMR_EMULATOR_SHARES": "0"}))
	lacking(emulate(t, settings{"HAMR_EMULATOR_SHARES": "1", "HAMR_EMULATOR_VMM": "0"}))
	r := emulate(t, settings{"HAMR_EMULATOR_VMM": "1"})
	require.NoError(t, r.Shares(0))
	r.driver.MemImport = 0
	lacking(r)
}

// What waits for reuse is given back where there is no more memory.
func TestSharedMemoryTakesWhatIsKeptForReuse(t *testing.T) {
	r := emulate(t, settings{"HAMR_EMULATOR_MEMORY": "16777216", ThresholdSetting: "16777216"})
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDA, Size: 12 << 20})
	require.NoError(t, err)
	require.NoError(t, r.Free(backends.Region{Address: at, Allocator: backends.CUDA}, 12<<20, 0))
	made, descriptor, err := r.NewShared(0, 8<<20)
	require.NoError(t, err)
	_, _, err = r.NewShared(0, 12<<20)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, 12<<20, full.Size)
	require.NoError(t, r.UnmapShared(made, 8<<20))
	require.NoError(t, closeDescriptor(descriptor))
}

// The emulator takes it for a misuse while work is pending.
func TestSharedMemoryIsUnmappedAfterAllWorkOnIt(t *testing.T) {
	r := emulate(t, withDevices(2))
	made, mapped, descriptor := r.shared(t, 0)
	far := r.reserve(t, backends.CUDA, 1, unit, 0)
	own := r.newStream(t, 1)
	require.NoError(t, r.Fill(made, []byte{1}, unit, 0))
	require.NoError(t, copied(r.Copy(far.Region, mapped, unit, own)))
	r.unmap(t, mapped, made)
	require.NoError(t, closeDescriptor(descriptor))
}

// sharing are the operations of backends.Sharer for TestEveryCallFails: each leaves no descriptor.
func sharing() []operation {
	on := func(name string, do func(t *testing.T, r *rig, made, mapped backends.Region, descriptor int) (undo func() error,
		err error)) operation {
		return operation{name, 2, func(t *testing.T, r *rig) func() (func() error, error) {
			r.connect(0, 1)
			made, mapped, descriptor := r.shared(t, 0)
			t.Cleanup(func() {
				r.unmap(t, made, mapped)
				require.NoError(t, closeDescriptor(descriptor))
			})
			return func() (func() error, error) {
				before := openFiles(t)
				undo, err := do(t, r, made, mapped, descriptor)
				if err != nil {
					assert.Equal(t, before, openFiles(t), "open files")
				}
				return undo, err
			}
		}}
	}
	return []operation{
		on("share", func(_ *testing.T, r *rig, _, _ backends.Region, _ int) (func() error, error) {
			at, descriptor, err := r.NewShared(0, 2*unit)
			return func() error {
				_ = closeDescriptor(descriptor)
				return r.UnmapShared(at, 2*unit)
			}, err
		}),
		on("map shared", func(_ *testing.T, r *rig, _, _ backends.Region, descriptor int) (func() error, error) {
			at, err := r.MapShared(descriptor, 0, unit, false)
			return func() error { return r.UnmapShared(at, unit) }, err
		}),
		on("protect shared", func(t *testing.T, r *rig, made, _ backends.Region, _ int) (func() error, error) {
			err := r.ProtectShared(made, unit)
			if err == nil {
				return nothing, nil
			}
			r.stopFailing()
			for device := range 2 {
				assert.NoError(t, r.writes(t, device, made), "it is as before")
				err = errors.Join(err, r.SynchronizeDevice(device))
			}
			return nothing, err
		}),
		on("unmap shared", func(_ *testing.T, r *rig, _, _ backends.Region, descriptor int) (func() error, error) {
			at, err := r.MapShared(descriptor, 0, unit, false)
			if err != nil {
				return nothing, err
			}
			err = r.UnmapShared(at, unit)
			if err != nil && len(r.extents.list) > 2 {
				r.stopFailing()
				if again := r.UnmapShared(at, unit); again != nil {
					return nothing, again
				}
			}
			return nothing, err
		}),
	}
}
