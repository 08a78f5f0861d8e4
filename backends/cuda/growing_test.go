package cuda

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const unit = 2 << 20

// grown is memory of device 0 in two pieces.
func (r *rig) grown(t *testing.T) backends.Region {
	t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDAVMM, Size: 100})
	require.NoError(t, err)
	region := backends.Region{Address: at, Allocator: backends.CUDAVMM}
	has, err := r.Grow(region, 100, unit+1)
	require.NoError(t, err)
	require.Equal(t, 2*unit, has)
	return region
}

// The emulator takes it for a misuse while work is pending.
func TestMemoryIsUnmappedAfterAllWorkOnIt(t *testing.T) {
	r := emulate(t, withDevices(2))
	at := r.grown(t)
	s, err := r.NewStream(0)
	require.NoError(t, err)
	require.NoError(t, r.Fill(at, []byte{1}, unit, s))
	far := r.reserve(t, backends.CUDA, 1, unit, 0)
	own, err := r.NewStream(1)
	require.NoError(t, err)
	rest := at
	rest.Address += unit
	_, err = r.Copy(far.Region, rest, unit, own)
	require.NoError(t, err)
	pending := func() int { return int(int32(dl.Call(r.c.Pending))) }
	require.Positive(t, pending())
	require.NoError(t, r.Free(at, 2*unit, 0))
	assert.Zero(t, pending())
	require.NoError(t, r.DestroyStream(0, s))
	require.NoError(t, r.DestroyStream(1, own))
}

func TestAFailureOfLateWorkKeepsNoMemory(t *testing.T) {
	r := emulate(t, withDevices(2))
	at := r.grown(t)
	far := r.reserve(t, backends.CUDA, 1, unit, 0)
	own, err := r.NewStream(1)
	require.NoError(t, err)
	_, err = r.Copy(far.Region, at, unit, own)
	require.NoError(t, err)
	r.fail("execute", 1, 700)
	live := r.live("memory")
	assert.ErrorContains(t, r.Free(at, 2*unit, 0), "CUDA_ERROR_ILLEGAL_ADDRESS")
	assert.Less(t, r.live("memory"), live)
	require.NoError(t, r.DestroyStream(1, own))
}

func TestMemoryStaysWhileADeviceThatReachesItCannotBeWaitedFor(t *testing.T) {
	r := emulate(t, withDevices(2))
	at := r.grown(t)
	require.NoError(t, r.Enable(1, 0))
	for nth := range 2 {
		r.fail("cuCtxSynchronize", nth, 900)
		if nth == 1 {
			r.stopFailing()
		}
		err := r.Free(at, 2*unit, 0)
		assert.Equal(t, nth == 0, err != nil)
	}
}

func TestEachDeviceReachesAllThatIsMapped(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := emulate(t, withDevices(3))
		if first {
			require.NoError(t, r.Enable(1, 0))
		}
		at := r.grown(t)
		if !first {
			require.NoError(t, r.Enable(1, 0))
		}
		write := func(device int) error {
			v, err := r.enter(device, legacyStream)
			require.NoError(t, err)
			defer v.leave()
			return r.call(r.driver.Memset8, uintptr(at.Address), 7, 2*unit, uintptr(legacyStream))
		}
		assert.NoError(t, write(1), "connected first: %v", first)
		require.NoError(t, r.SynchronizeDevice(1))
		assert.Error(t, write(2))
		dl.Call(r.c.Reset)
		require.NoError(t, r.Free(at, 2*unit, 0))
	}
}

func TestExtentsAreLocated(t *testing.T) {
	r := emulate(t, withDevices(1))
	first, second := r.grown(t), r.grown(t)
	for _, at := range []backends.Region{second, first} {
		for _, offset := range []int{0, unit - 1, unit, 2*unit - 1} {
			found, err := r.Locate(moved(at, offset).Address)
			require.NoError(t, err)
			assert.Equal(t, backends.Location{Region: moved(at, offset), Base: at.Address, Size: 2 * unit}, found)
		}
		found, err := r.Locate(moved(at, 2*unit).Address)
		require.NoError(t, err)
		assert.Equal(t, backends.None, found.Allocator)
	}
	for _, at := range []backends.Region{first, second} {
		require.NoError(t, r.Free(at, 0, 0))
		assert.Error(t, r.Free(at, 0, 0), "twice")
		_, err := r.Grow(at, 2*unit, 3*unit)
		assert.Error(t, err)
	}
	_, err := r.Grow(moved(first, unit), unit, 3*unit)
	assert.Error(t, err)
}

// Where many have reserved as many addresses as the device has memory, others take fewer.
func TestReservationsDoNotUseUpTheAddresses(t *testing.T) {
	r := emulate(t, withDevices(1))
	u, err := r.units(r.devices[0])
	require.NoError(t, err)
	r.extents.reserved = mostReserved - u.total
	big, small := r.grown(t), r.grown(t)
	reservedBy := func(at backends.Region) int {
		e, err := r.extents.startingAt(at)
		require.NoError(t, err)
		return e.reserved[0]
	}
	assert.Equal(t, u.total, reservedBy(big))
	assert.Equal(t, unit, reservedBy(small))
	for _, at := range []backends.Region{big, small} {
		require.NoError(t, r.Free(at, 0, 0))
	}
	assert.Equal(t, mostReserved-u.total, r.extents.reserved)
}

func TestAnAddressSpaceThatIsFullIsNoLackWhereLessWillDo(t *testing.T) {
	r := emulate(t, withDevices(1))
	r.fail("cuMemAddressReserve", 1, outOfMemory)
	at := r.grown(t)
	require.NoError(t, r.Free(at, 0, 0))
	r.fail("cuMemAddressReserve", 0, outOfMemory)
	_, err := r.Allocate(backends.Request{Allocator: backends.CUDAVMM, Size: 100})
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	r.stopFailing()
}

// A driver before 11.0 cannot tell the handle of what is mapped.
func TestWithoutHandlesOfMappedMemoryNothingIsRelocated(t *testing.T) {
	r := emulate(t, withDevices(1))
	r.driver.MemRetainHandle = 0
	at := r.grown(t)
	_, _, err := r.Relocate(at, 2*unit, 3*unit)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, r.Free(at, 0, 0))
	r.driver.MemMap = 0
	r.devices[0].units = nil
	_, err = r.Allocate(backends.Request{Allocator: backends.CUDAVMM, Size: 100})
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorIs(t, r.Supports(backends.CUDAVMM, 0), backends.ErrUnavailable)
	facts, err := r.Describe(0)
	require.NoError(t, err)
	assert.Contains(t, facts, [2]string{"lacks", "cuda_vmm"})
}

// TestDevicesMeetWhileMemoryGoes has another device given access to memory that is being freed.
func TestDevicesMeetWhileMemoryGoes(t *testing.T) {
	for range 60 {
		r := emulate(t, withDevices(2))
		var group sync.WaitGroup
		regions := []backends.Region{r.grown(t), r.grown(t), r.grown(t)}
		start := make(chan struct{})
		group.Go(func() {
			<-start
			for _, at := range regions {
				assert.NoError(t, r.Free(at, 2*unit, 0))
			}
		})
		group.Go(func() {
			<-start
			r.connect(0, 1)
		})
		close(start)
		group.Wait()
		assert.Empty(t, r.violations())
	}
}
