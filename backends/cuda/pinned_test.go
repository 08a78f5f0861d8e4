package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// lend takes page-locked memory and gives it back.
func (r *rig) lend(t testing.TB, size int) backends.Address {
	t.Helper()
	at, err := r.takePinned(size)
	require.NoError(t, err)
	require.NoError(t, r.givePinnedBack(at))
	return at
}

func TestPinnedMemoryIsTakenOnce(t *testing.T) {
	r := emulate(t, settings{"HAMR_EMULATOR_MEMORY": "2000000000"})
	for _, size := range []int{1, 1000, 1 << 20, 3 << 20, 512 << 20} {
		first := r.lend(t, size)
		calls := r.calls("cuMemHostRegister_v2")
		assert.Equal(t, first, r.lend(t, size))
		assert.Equal(t, calls, r.calls("cuMemHostRegister_v2"))
	}
	assert.Zero(t, r.calls("cuMemHostUnregister"))
	require.NoError(t, r.Trim())
	assert.Zero(t, r.live("memory"))
}

func TestPinnedMemoryIsGivenBackToTheDriver(t *testing.T) {
	r := emulate(t, settings{PinnedThresholdSetting: "0"})
	r.lend(t, 3<<20)
	assert.Equal(t, 1, r.calls("cuMemHostUnregister"))
	assert.Zero(t, r.live("memory"))

	r = emulate(t, settings{PoolSetting: "0"})
	r.lend(t, 1000)
	r.lend(t, 1000)
	assert.Equal(t, []int{2, 2}, []int{r.calls("cuMemHostAlloc"), r.calls("cuMemFreeHost")})
	r.lend(t, 3<<20)
	assert.Equal(t, []int{1, 1, 2},
		[]int{r.calls("cuMemHostRegister_v2"), r.calls("cuMemHostUnregister"), r.calls("cuMemHostAlloc")})
}

func TestPinnedMemoryIsLimited(t *testing.T) {
	r := emulate(t, settings{PinnedPoolLimitSetting: "5000000"})
	at, err := r.takePinned(2 << 20)
	require.NoError(t, err)
	_, err = r.takePinned(4 << 20)
	assert.ErrorContains(t, err, "the limit is 5000000 bytes, of which 2097152 are taken: 4194304 more are not allowed")
	assert.True(t, isOutOfMemory(err))
	require.NoError(t, r.givePinnedBack(at))
	r.lend(t, 4<<20)
	for _, name := range []string{PinnedPoolLimitSetting, PinnedThresholdSetting} {
		_, err := emulate(t, settings{name: "1GB"}).takePinned(8)
		assert.ErrorContains(t, err, name+` is "1GB": a number of bytes is needed`)
	}
}

func TestNoMoreMemoryCanBeLocked(t *testing.T) {
	for _, code := range []int{outOfMemory, operatingSystem, notPermitted, notSupported} {
		r := emulate(t, nil)
		r.lend(t, 1000)
		r.fail("cuMemHostRegister_v2", 0, code)
		r.fail("cuMemHostAlloc", 0, code)
		_, err := r.takePinned(8 << 20)
		assert.True(t, isOutOfMemory(err), err)
		assert.ErrorContains(t, err, codeNames[int32(code)])
		assert.Equal(t, 1, r.calls("cuMemHostUnregister"), "what is kept makes room")
	}
	r := emulate(t, nil)
	r.fail("cuMemHostRegister_v2", 0, 700)
	r.fail("cuMemHostAlloc", 0, 700)
	_, err := r.takePinned(8)
	assert.Error(t, err)
	assert.False(t, isOutOfMemory(err))
}

// TestTheDriverMayRefuseToRegister: it allocates, then.
func TestTheDriverMayRefuseToRegister(t *testing.T) {
	r := emulate(t, nil)
	r.fail("cuMemHostRegister_v2", 0, notSupported)
	r.lend(t, 3<<20)
	assert.Equal(t, 1, r.calls("cuMemHostAlloc"))
	require.NoError(t, r.Trim())
	assert.Equal(t, []int{1, 0}, []int{r.calls("cuMemFreeHost"), r.calls("cuMemHostUnregister")})
}

// TestRegisteredMemoryWaitsForEveryDevice frees memory that a copy is about to read.
func TestRegisteredMemoryWaitsForEveryDevice(t *testing.T) {
	r := emulate(t, settings{"HAMR_EMULATOR_DEVICES": "2", PoolSetting: "0"})
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDAHost, Size: 4 << 20})
	require.NoError(t, err)
	to := r.reserve(t, backends.CUDA, 1, 4<<20, 0)
	from := backends.Region{Address: at, Allocator: backends.CUDAHost}
	hostBytes(at, 4<<20)[100] = 7
	_, err = r.Copy(to.Region, from, 4<<20, 0)
	require.NoError(t, err)
	require.NoError(t, r.Free(from, 4<<20, 0))
	assert.EqualValues(t, 7, r.read(t, to.Region, 4<<20, 0)[100])
}
