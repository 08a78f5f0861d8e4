package cuda

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

func (r *rig) figures(t testing.TB, a backends.Allocator) backends.PoolStatistics {
	t.Helper()
	for _, p := range r.Pools() {
		if p.Allocator == a {
			return p
		}
	}
	return backends.PoolStatistics{}
}

func TestPoolsAreLimitedTogether(t *testing.T) {
	for _, first := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
		for _, second := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
			r := emulate(t, nil)
			require.NoError(t, r.LimitPool(backends.CUDA, 0, 3*pooledSize))
			held, err := r.Allocate(request(first, 2*pooledSize))
			require.NoError(t, err)
			_, err = r.Allocate(request(second, 2*pooledSize))
			var full *backends.OutOfMemoryError
			require.ErrorAs(t, err, &full)
			assert.True(t, full.Limited)
			require.NoError(t, r.Free(backends.Region{Address: held, Allocator: first}, 2*pooledSize, 0))
			r.useMemory(t, second, 2*pooledSize)
			require.NoError(t, r.LimitPool(backends.CUDAAsync, 0, backends.DefaultLimit))
			r.useMemory(t, second, 8*pooledSize)
		}
	}
}

// What the driver's pool keeps beyond what is in use makes room, once for each time that some came back.
func TestTheDriversUnitsAreNotLimited(t *testing.T) {
	const unit, limit = 16 * pooledSize, 4 * pooledSize
	r := emulate(t, settings{"HAMR_EMULATOR_POOL_UNIT": strconv.Itoa(unit)})
	require.NoError(t, r.LimitPool(backends.CUDAAsync, 0, limit))
	r.useMemory(t, backends.CUDAAsync, pooledSize)
	require.NoError(t, r.Synchronize(0, 0))
	held, err := r.Allocate(request(backends.CUDAAsync, pooledSize))
	require.NoError(t, err)
	f := r.figures(t, backends.CUDAAsync)
	assert.Equal(t, []int64{pooledSize, unit - pooledSize}, []int64{f.Current, f.Cached}, "there is a unit still")
	r.useMemory(t, backends.CUDA, pooledSize)
	r.useMemory(t, backends.CUDA, 3*pooledSize)
	assert.Equal(t, 1, r.calls("cuMemPoolTrimTo"), "a second time would find no more")
	_, err = r.Allocate(request(backends.CUDAAsync, 4*pooledSize))
	assert.ErrorContains(t, err, fmt.Sprintf("the limit is %d bytes, of which %d are taken", limit, pooledSize))
	require.NoError(t, r.Free(backends.Region{Address: held, Allocator: backends.CUDAAsync}, pooledSize, 0))
	require.NoError(t, r.Synchronize(0, 0))
	r.fail("cuCtxSynchronize", 1, 719)
	r.useMemory(t, backends.CUDA, pooledSize)
	assert.EqualValues(t, unit, r.figures(t, backends.CUDAAsync).Cached, "it could not be waited for")
	r.useMemory(t, backends.CUDA, 2*pooledSize)
	assert.Zero(t, r.figures(t, backends.CUDAAsync).Cached)
}

func TestPoolsAreTrimmedToALimit(t *testing.T) {
	r := emulate(t, settings{"HAMR_EMULATOR_POOL_UNIT": strconv.Itoa(pooledSize)})
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		r.useMemory(t, a, pooledSize)
	}
	require.NoError(t, r.Synchronize(0, 0))
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		f := r.figures(t, a)
		assert.Equal(t, []int64{0, pooledSize, pooledSize, backends.NoLimit}, []int64{f.Current, f.Cached, f.Peak, f.Limit},
			a)
	}
	require.NoError(t, r.LimitPool(backends.CUDAHost, backends.HostDevice, 0))
	require.NoError(t, r.LimitPool(backends.CUDA, 0, 0))
	assert.Zero(t, r.live("memory"))
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		assert.Zero(t, r.figures(t, a).Limit, a)
		_, err := r.Allocate(request(a, 1))
		assert.ErrorContains(t, err, "the limit is 0 bytes", a)
	}
}

func TestLimitsThatCannotBeSet(t *testing.T) {
	r := emulate(t, nil)
	assert.ErrorContains(t, r.LimitPool(backends.CUDAUnified, 0, 1), "does not serve")
	assert.ErrorContains(t, r.LimitPool(backends.CUDA, 7, 1), "no device 7")
	r = emulate(t, settings{PoolSetting: "0"})
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAHost} {
		assert.ErrorContains(t, r.LimitPool(a, 0, 1), "no pool to be limited")
	}
	assert.Empty(t, New(func(string) string { return "" }).Pools(), "nothing is probed")
}

func TestLimitsTrimWhereTheDriverFails(t *testing.T) {
	for _, call := range []string{"cuCtxSynchronize", "cuMemFree_v2", "cuMemPoolTrimTo"} {
		r := emulate(t, nil)
		r.useMemory(t, backends.CUDA, pooledSize)
		r.useMemory(t, backends.CUDAAsync, pooledSize)
		require.NoError(t, r.Synchronize(0, 0))
		r.fail(call, 1, 719)
		assert.ErrorContains(t, r.LimitPool(backends.CUDA, 0, 0), call)
		assert.Equal(t, int64(0), r.figures(t, backends.CUDA).Limit, "it is set")
		require.NoError(t, r.LimitPool(backends.CUDA, 0, 0))
	}
}

// Chunks of staged copies are of the pool, and are waited for before they go back there.
func TestChunksAreTrimmedAfterTheirCopies(t *testing.T) {
	r := emulate(t, settings{staging.ChunkSetting: "1024", staging.ThreadsSetting: "3"})
	const size = 8192
	b := r.reserve(t, backends.CUDA, 0, size, 0)
	data, host := pageable(t, size)
	for i := range data {
		data[i] = byte(i)
	}
	s := r.newOwnStream(t)
	before := r.figures(t, backends.CUDAHost).Current
	require.NoError(t, copied(r.Copy(b.Region, host, size, s)))
	assert.Greater(t, r.figures(t, backends.CUDAHost).Current, before)
	require.NoError(t, r.trimStaging())
	assert.Equal(t, before, r.figures(t, backends.CUDAHost).Current)
	for range r.figures(t, backends.CUDAHost).Cached/size + 1 { // all that was kept, the chunks among it
		at, err := r.takePinned(size)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.givePinnedBack(at)) }()
		clear(hostBytes(at, size))
	}
	clear(data)
	require.NoError(t, copied(r.Copy(host, b.Region, size, s)))
	require.NoError(t, r.Synchronize(0, s))
	for i := range data {
		require.Equal(t, byte(i), data[i])
	}
	r.fail("cuEventSynchronize", 1, 719)
	require.NoError(t, r.Trim(), "the device is waited for instead")
	require.NoError(t, r.DestroyStream(0, s))
}

func TestDevicesThatNobodyUsesAreNotWaitedFor(t *testing.T) {
	r := emulate(t, withDevices(2))
	require.NoError(t, r.SynchronizeDevice(1))
	assert.Equal(t, []int{0, 0}, []int{r.calls("cuDevicePrimaryCtxRetain"), r.calls("cuCtxSynchronize")})
	// Another library does.
	v := scratch()
	require.NoError(t, r.call(r.driver.DevicePrimaryCtxRetain, v.slot(0), 1))
	require.NoError(t, r.SynchronizeDevice(1))
	assert.Equal(t, 1, r.calls("cuCtxSynchronize"))
	require.NoError(t, r.call(r.foreign.CtxRelease, 1))
}
