package cuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var allocators = []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified, backends.CUDAHost}

func request(a backends.Allocator, size int) backends.Request {
	return backends.Request{Allocator: a, Size: size}
}

var allocationCalls = map[backends.Allocator]string{
	backends.CUDA: "cuMemAlloc_v2", backends.CUDAAsync: "cuMemAllocFromPoolAsync",
	backends.CUDAUnified: "cuMemAllocManaged", backends.CUDAHost: "cuMemHostAlloc",
}

func TestOutOfMemory(t *testing.T) {
	for _, a := range allocators {
		r := emulate(t, nil)
		r.fail(allocationCalls[a], 0, outOfMemory)
		r.fail("cuMemHostRegister_v2", 0, outOfMemory)
		_, err := r.Allocate(request(a, 1000))
		var full *backends.OutOfMemoryError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, backends.OutOfMemoryError{Allocator: a, Size: 1000, Detail: "CUDA_ERROR_OUT_OF_MEMORY (2)"}, *full)

		r.stopFailing()
		r.fail(allocationCalls[a], 1, 700)
		r.fail("cuMemHostRegister_v2", 1, 700)
		_, err = r.Allocate(request(a, 1000))
		assert.NotErrorAs(t, err, &full, "another failure is not a lack of memory")
	}
}

func TestPoolsAreTrimmedBeforeMemoryRunsOut(t *testing.T) {
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		r := emulate(t, settings{PoolSetting: "0"})
		r.useMemory(t, backends.CUDAAsync, 1000)
		r.fail(allocationCalls[a], 1, outOfMemory)
		r.reserve(t, a, 0, 1000, 0)
		assert.Equal(t, 1, r.calls("cuMemPoolTrimTo"))
		assert.Equal(t, 1, r.calls("cuCtxSynchronize"))
	}
}

func (r *rig) useMemory(t *testing.T, a backends.Allocator, size int) {
	t.Helper()
	at, err := r.Allocate(request(a, size))
	require.NoError(t, err)
	require.NoError(t, r.Free(backends.Region{Address: at, Allocator: a}, size, 0))
}

func TestMemoryIsFreedWhereZeroingFails(t *testing.T) {
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		r := emulate(t, nil)
		r.fail("cuMemsetD8Async", 1, 719)
		q := request(a, 1000)
		q.Zero = true
		_, err := r.Allocate(q)
		assert.ErrorContains(t, err, "cuMemsetD8Async failed with CUDA_ERROR_LAUNCH_FAILED (719)")
	}
}

func TestDevicesWithoutTheAbility(t *testing.T) {
	r := emulate(t, nil)
	r.devices[0].attributes = map[int]int{AttributeManagedMemory: 0, AttributeMemoryPools: 0}
	_, err := r.Allocate(request(backends.CUDAAsync, 8))
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorContains(t, err, "device 0 has no memory pools, which allocator cuda_async needs")
	_, err = r.Allocate(request(backends.CUDAUnified, 8))
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorContains(t, err, "managed memory")
	r.reserve(t, backends.CUDA, 0, 8, 0)
}

func TestForeignRequestsAreRefused(t *testing.T) {
	r := emulate(t, nil)
	_, err := r.Allocate(backends.Request{Allocator: backends.CUDA, Device: 1, Size: 8})
	assert.ErrorContains(t, err, "no device 1")
	_, err = r.Allocate(backends.Request{Allocator: backends.CUDAAsync, Device: 1, Size: 8})
	assert.ErrorContains(t, err, "no device 1")
	_, err = r.Allocate(request(backends.HIP, 8))
	assert.ErrorContains(t, err, "does not serve allocator hip")
	host := backends.Region{Allocator: backends.Malloc, Device: backends.HostDevice}
	assert.ErrorContains(t, r.Free(host, 8, 0), "does not serve allocator malloc")
	assert.ErrorContains(t, r.Fill(host, []byte{1}, 8, 0), "does not serve allocator malloc")
	assert.ErrorContains(t, copied(r.Copy(host, host, 8, 0)), "does not copy from allocator malloc")
}

func TestPinnedMemoryBelongsToNoDevice(t *testing.T) {
	r := emulate(t, withDevices(2))
	for _, device := range []int{backends.HostDevice, 0, 1} {
		q := backends.Request{Allocator: backends.CUDAHost, Device: device, Size: 100, Zero: true}
		at, err := r.Allocate(q)
		require.NoError(t, err)
		assert.Equal(t, make([]byte, 100), hostBytes(at, 100))
		require.NoError(t, r.Free(backends.Region{Address: at, Allocator: backends.CUDAHost, Device: backends.HostDevice},
			100, 0))
	}
}

func (r *rig) poolAttribute(t *testing.T, device, which int) int {
	t.Helper()
	pool, err := r.pool(device)
	require.NoError(t, err)
	value := new(uint64)
	require.NoError(t, r.callWithPointers(r.foreign.PoolGetAttribute, pool, uintptr(which),
		uintptr(unsafe.Pointer(value))))
	return int(*value)
}

func TestReleaseThreshold(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		_, total, err := r.MemoryInfo(0)
		require.NoError(t, err)
		assert.InDelta(t, total/poolShare, r.poolAttribute(t, 0, releaseThreshold), float64(total)/1000)
	})
	r := emulate(t, settings{ThresholdSetting: "12345"})
	assert.Equal(t, 12345, r.poolAttribute(t, 0, releaseThreshold))
	r = emulate(t, settings{ThresholdSetting: "1GB"})
	_, err := r.Allocate(request(backends.CUDAAsync, 8))
	assert.ErrorContains(t, err, `HAMR_CUDA_POOL_RELEASE_THRESHOLD is "1GB": a number of bytes is needed`)
}

func TestTrim(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		require.NoError(t, r.Trim(), "without pools")
		const reserved = 5 // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
		r.useMemory(t, backends.CUDAAsync, 1<<20)
		require.NoError(t, r.Synchronize(0, 0))
		assert.NotZero(t, r.poolAttribute(t, 0, reserved))
		require.NoError(t, r.Trim())
		assert.Zero(t, r.poolAttribute(t, 0, reserved))
	})
}

func TestLocate(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		for _, a := range allocators {
			at, err := r.Allocate(request(a, 5000))
			require.NoError(t, err)
			require.NoError(t, r.Synchronize(0, 0))
			want := backends.Location{Region: backends.Region{Address: at + 4999, Allocator: a}, Base: at}
			if a == backends.CUDAHost {
				want.Device = backends.HostDevice
			}
			if a == backends.CUDA {
				want.Context, err = r.Context(0)
				require.NoError(t, err)
			}
			found := make(chan backends.Location)
			go func() { // where no context is current
				l, err := r.Locate(at + 4999)
				assert.NoError(t, err)
				found <- l
			}()
			got := <-found
			assert.GreaterOrEqual(t, got.Size, 5000)
			got.Size = 0
			assert.Equal(t, want, got)

			require.NoError(t, r.Free(backends.Region{Address: at, Allocator: a}, 5000, 0))
			require.NoError(t, r.Synchronize(0, 0))
			require.NoError(t, r.Trim())
			after, err := r.Locate(at + 1)
			require.NoError(t, err)
			assert.Equal(t, backends.None, after.Allocator, "freed memory of %s", a)
		}
		nowhere, err := r.Locate(16)
		require.NoError(t, err)
		assert.Equal(t, backends.Location{Region: backends.Region{Address: 16, Allocator: backends.None,
			Device: backends.HostDevice}}, nowhere)
	})
}
