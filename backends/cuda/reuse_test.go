package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

func plainAt(at backends.Address, device int) backends.Region {
	return backends.Region{Address: at, Allocator: backends.CUDA, Device: device}
}

// take allocates plain memory for a stream.
func (r *rig) take(t testing.TB, size int, s backends.Stream) backends.Address {
	t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDA, Size: size, Stream: s})
	require.NoError(t, err)
	return at
}

func (r *rig) free(t testing.TB, at backends.Address, size int, s backends.Stream) {
	t.Helper()
	require.NoError(t, r.Free(plainAt(at, 0), size, s))
}

func (r *rig) newOwnStream(t testing.TB) backends.Stream {
	t.Helper()
	s, err := r.NewStream(0)
	require.NoError(t, err)
	return s
}

const pooledSize = 2 << 20 // a segment

func TestFreedMemoryIsReusedOnItsStream(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		s := r.newOwnStream(t)
		for _, stream := range []backends.Stream{0, legacyStream, s} {
			at := r.take(t, pooledSize, stream)
			require.NoError(t, r.Fill(plainAt(at, 0), []byte{1}, pooledSize, stream))
			r.free(t, at, pooledSize, stream)
			assert.Equal(t, at, r.take(t, pooledSize, stream))
			r.free(t, at, pooledSize, stream)
			require.NoError(t, r.Trim())
		}
		require.NoError(t, r.DestroyStream(0, s))
	})
}

// streamsToFreeOn are those that a block can be used on before another stream has it.
func (r *rig) streamsToFreeOn(t *testing.T) map[string]backends.Stream {
	home, err := r.Context(0)
	require.NoError(t, err)
	return map[string]backends.Stream{"the default one": 0, "an own one": r.newOwnStream(t),
		"the thread's":      perThreadStream,
		"another library's": r.newForeignStream(t, home), "of another context": r.newForeignStream(t, r.newContext(t, 0))}
}

func TestOtherStreamsGetMemoryWhenTheWorkIsDone(t *testing.T) {
	r := emulate(t, nil)
	streams := r.streamsToFreeOn(t)
	for name, s := range streams {
		to := r.newOwnStream(t)
		at := r.take(t, pooledSize, s)
		require.NoError(t, r.Fill(plainAt(at, 0), []byte{1}, pooledSize, s))
		r.free(t, at, pooledSize, s)
		other := r.take(t, pooledSize, to)
		assert.NotEqual(t, at, other, name)
		require.NoError(t, r.Synchronize(0, s))
		require.NoError(t, r.SynchronizeDevice(0)) // a stream of the backend's follows the thread's
		assert.Equal(t, at, r.take(t, pooledSize, to), name)
		r.free(t, at, pooledSize, to)
		r.free(t, other, pooledSize, to)
		require.NoError(t, r.Trim())
		require.NoError(t, r.DestroyStream(0, to))
	}
	require.NoError(t, r.DestroyStream(0, streams["an own one"]))
}

func TestStreamsEndBeforeTheirMemoryIsReused(t *testing.T) {
	r := emulate(t, nil)
	s := r.newOwnStream(t)
	at := r.take(t, pooledSize, s)
	require.NoError(t, r.Fill(plainAt(at, 0), []byte{1}, pooledSize, s))
	r.free(t, at, pooledSize, s)
	require.NoError(t, r.DestroyStream(0, s))
	other := r.take(t, pooledSize, 0)
	assert.NotEqual(t, at, other)
	require.NoError(t, r.SynchronizeDevice(0))
	assert.Equal(t, at, r.take(t, pooledSize, 0))
	r.free(t, at, pooledSize, 0)
	r.free(t, other, pooledSize, 0)
}

func TestWithoutThePool(t *testing.T) {
	r := emulate(t, settings{PoolSetting: "0"})
	assert.False(t, r.Reuses(backends.CUDA))
	assert.True(t, r.FreeWaits(backends.CUDA))
	for range 3 {
		r.free(t, r.take(t, 1000, 0), 1000, 0)
	}
	assert.Equal(t, 3, r.calls("cuMemAlloc_v2"))
	assert.Equal(t, 3, r.calls("cuMemFree_v2"))
}

func TestOnlyPlainAndPinnedMemoryIsReused(t *testing.T) {
	r := emulate(t, nil)
	for _, a := range allocators {
		assert.Equal(t, a == backends.CUDA || a == backends.CUDAHost, r.Reuses(a))
		assert.Equal(t, a == backends.CUDAUnified, r.FreeWaits(a))
	}
}

func TestFreedMemoryIsOverwrittenToCheck(t *testing.T) {
	r := emulate(t, settings{PoolSetting: "check"})
	at := r.take(t, 1000, 0)
	r.free(t, at, 1000, 0)
	assert.Equal(t, 1, r.calls("cuMemsetD8Async"))
	r.free(t, r.take(t, 1000, 0), 0, perThreadStream)
	assert.Equal(t, 1, r.calls("cuMemsetD8Async"), "of whatever size it is")
}

func TestKeptMemoryIsGivenBackBeforeMemoryRunsOut(t *testing.T) {
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		r := emulate(t, nil)
		r.useMemory(t, backends.CUDA, 1000)
		r.fail(allocationCalls[a], 1, outOfMemory)
		r.reserve(t, a, 0, pooledSize, 0)
		assert.Equal(t, 1, r.calls("cuMemFree_v2"), a)
	}
}

func TestMemoryOfOthersIsFreedByTheDriver(t *testing.T) {
	r := emulate(t, nil)
	r.useMemory(t, backends.CUDA, 1000)
	at, err := r.allocateHere(request(backends.CUDA, 1000), r.driver.MemAlloc)
	require.NoError(t, err)
	r.free(t, at, 0, 0)
	assert.Equal(t, 1, r.calls("cuMemFree_v2"))
	assert.Error(t, r.Free(plainAt(16, 0), 0, 0))
	assert.NotEmpty(t, r.violations())
	dl.Call(r.c.Reset)
}

func TestPartsOfSegmentsAreLocated(t *testing.T) {
	r := emulate(t, nil)
	first, second := r.take(t, 1000, 0), r.take(t, 5000, 0)
	found, err := r.Locate(second + 4999)
	require.NoError(t, err)
	assert.Equal(t, []any{second, 5120, backends.CUDA}, []any{found.Base, found.Size, found.Allocator})
	r.free(t, second, 5000, 0)
	found, err = r.Locate(second)
	require.NoError(t, err)
	assert.Equal(t, backends.None, found.Allocator)
	r.free(t, first, 1000, 0)
}

func TestPoolLimit(t *testing.T) {
	r := emulate(t, settings{PoolLimitSetting: "5000000"})
	at := r.take(t, pooledSize, 0)
	_, err := r.Allocate(request(backends.CUDA, 2*pooledSize))
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.ErrorContains(t, err, "the limit is 5000000 bytes, of which 2097152 are taken: 4194304 more are not allowed")
	r.free(t, at, pooledSize, 0)
	r.free(t, r.take(t, 2*pooledSize, 0), 2*pooledSize, 0)
	for _, wrong := range []string{"1GB", "0", "-1"} {
		_, err := emulate(t, settings{PoolLimitSetting: wrong}).Allocate(request(backends.CUDA, 8))
		assert.ErrorContains(t, err, "a number of bytes is needed")
	}
}

func TestCapturedStreamsAreNotAsked(t *testing.T) {
	r := emulate(t, nil)
	if r.driver.StreamIsCapturing == 0 {
		t.Skip("the driver cannot tell")
	}
	s := r.newOwnStream(t)
	at := r.take(t, pooledSize, s)
	r.free(t, at, pooledSize, s)
	r.fail("cuStreamIsCapturing", 0, captureImplicit)
	queries, events := r.calls("cuStreamQuery"), r.calls("cuEventRecord")
	other := r.take(t, pooledSize, 0)
	assert.NotEqual(t, at, other)
	assert.Equal(t, []int{queries, events}, []int{r.calls("cuStreamQuery"), r.calls("cuEventRecord")})
	r.stopFailing()
	r.free(t, other, pooledSize, 0)
	require.NoError(t, r.DestroyStream(0, s))
}
