package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

const parkedSize = 4 << 10

func orderedAt(at backends.Address) backends.Region {
	return backends.Region{Address: at, Allocator: backends.CUDAAsync}
}

func (r *rig) takeOrdered(t *testing.T, size int) backends.Address {
	t.Helper()
	at, err := r.Allocate(request(backends.CUDAAsync, size))
	require.NoError(t, err)
	return at
}

func TestParkedMemoryIsTakenWithoutTheDriver(t *testing.T) {
	r := emulate(t, nil)
	at := r.takeOrdered(t, parkedSize)
	require.True(t, r.FreeAtOnce(orderedAt(at), parkedSize, 0))
	assert.Zero(t, r.calls("cuMemFreeAsync"))
	found, err := r.Locate(at)
	require.NoError(t, err)
	assert.Equal(t, nowhere(at), found, "it was freed")
	f := r.figures(t, backends.CUDAAsync)
	assert.Zero(t, f.Current)
	assert.GreaterOrEqual(t, f.Cached, int64(parkedSize))

	for _, other := range []backends.Request{
		{Allocator: backends.CUDAAsync, Size: parkedSize + 1}, {Allocator: backends.CUDA, Size: parkedSize},
		{Allocator: backends.CUDAAsync, Size: parkedSize, Stream: r.newOwnStream(t)},
		{Allocator: backends.CUDAAsync, Size: parkedSize, Zero: true},
	} {
		_, ok := r.AllocateAtOnce(other)
		assert.False(t, ok, other)
	}
	again, ok := r.AllocateAtOnce(backends.Request{Allocator: backends.CUDAAsync, Size: parkedSize, Stream: legacyStream})
	assert.True(t, ok)
	assert.Equal(t, at, again)
	require.True(t, r.FreeAtOnce(orderedAt(at), parkedSize, legacyStream))
	assert.Equal(t, at, r.takeOrdered(t, parkedSize))
	assert.Equal(t, 1, r.calls("cuMemAllocFromPoolAsync"))
	require.NoError(t, r.Free(orderedAt(at), parkedSize, 0))
}

func TestWhatIsNotParked(t *testing.T) {
	r := emulate(t, nil)
	at := r.takeOrdered(t, parkedSize)
	assert.False(t, r.FreeAtOnce(orderedAt(at), parkedSize, r.newOwnStream(t)), "a stream that may end")
	assert.False(t, r.FreeAtOnce(orderedAt(at), 0, 0), "of which nobody knows the size")
	require.NoError(t, r.LimitPool(backends.CUDAAsync, 0, backends.NoLimit))
	assert.False(t, r.FreeAtOnce(orderedAt(at), parkedSize, 0), "which would count against a limit")
	require.NoError(t, r.LimitPool(backends.CUDAAsync, 0, backends.DefaultLimit))
	require.NoError(t, r.Free(orderedAt(at), parkedSize, 0))

	large := r.devices[0].parked.most + 1
	at = r.takeOrdered(t, large)
	assert.False(t, r.FreeAtOnce(orderedAt(at), large, 0), "more than may be kept")
	require.NoError(t, r.Free(orderedAt(at), large, 0))
	for _, s := range []settings{{"HAMR_CUDA_POOL": "0"}, {"HAMR_CUDA_POOL": "check"}, {"HAMR_CUDA_POOL_SHARED": "1"}} {
		r := emulate(t, s)
		at := r.takeOrdered(t, parkedSize)
		assert.False(t, r.FreeAtOnce(orderedAt(at), parkedSize, 0), s)
		require.NoError(t, r.Free(orderedAt(at), parkedSize, 0))
	}
}

func TestParkedMemoryIsGivenBack(t *testing.T) {
	for name, give := range map[string]func(r *rig) error{
		"by a trim":  func(r *rig) error { return r.Trim() },
		"by a limit": func(r *rig) error { return r.LimitPool(backends.CUDA, 0, backends.NoLimit) },
	} {
		r := emulate(t, nil)
		at := r.takeOrdered(t, parkedSize)
		require.True(t, r.FreeAtOnce(orderedAt(at), parkedSize, 0), name)
		r.fail("cuMemFreeAsync", 1, invalidValue)
		assert.ErrorContains(t, give(r), "cuMemFreeAsync", name)
		r.stopFailing()
		assert.Equal(t, parkedSize, r.devices[0].parked.hold(), name)
		require.NoError(t, give(r), name)
		assert.Zero(t, r.devices[0].parked.hold(), name)
		_, ok := r.AllocateAtOnce(request(backends.CUDAAsync, parkedSize))
		assert.False(t, ok, name)
	}
}

// parkAll parks as much as there is room for. The last block has none.
func (r *rig) parkAll(t *testing.T) (oldest backends.Address, last backends.Region) {
	var blocks []backends.Address
	for range mostParked + 1 {
		blocks = append(blocks, r.takeOrdered(t, parkedSize))
	}
	for _, at := range blocks[:mostParked] {
		require.True(t, r.FreeAtOnce(orderedAt(at), parkedSize, 0))
	}
	last = orderedAt(blocks[mostParked])
	require.False(t, r.FreeAtOnce(last, parkedSize, 0))
	return blocks[0], last
}

func TestTheOldestParkedMemoryMakesRoom(t *testing.T) {
	r := emulate(t, nil)
	oldest, last := r.parkAll(t)
	require.NoError(t, r.Free(last, parkedSize, 0))
	assert.Equal(t, 2, r.calls("cuMemFreeAsync"), "and the oldest")
	assert.False(t, r.devices[0].parked.has(oldest))
	require.NoError(t, r.Trim())
}

func TestAnotherBlocksErrorIsNotThatOfAFree(t *testing.T) {
	r := emulate(t, nil)
	oldest, last := r.parkAll(t)
	r.fail("cuMemFreeAsync", 2, invalidValue)
	require.NoError(t, r.Free(last, parkedSize, 0))
	assert.Equal(t, 2, r.calls("cuMemFreeAsync"))
	r.stopFailing()
	assert.True(t, r.devices[0].parked.has(oldest))
	require.NoError(t, r.Trim())
}

func TestALimitHoldsAlthoughMemoryCannotBeGivenBack(t *testing.T) {
	r := emulate(t, nil)
	plain := r.take(t, parkedSize, 0)
	require.True(t, r.FreeAtOnce(orderedAt(r.takeOrdered(t, parkedSize)), parkedSize, 0))
	r.fail("cuMemFreeAsync", 1, invalidValue)
	const limit = 1 << 20
	require.ErrorContains(t, r.LimitPool(backends.CUDAAsync, 0, limit), "cuMemFreeAsync")
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
		assert.EqualValues(t, limit, r.figures(t, a).Limit, a)
	}
	r.stopFailing()
	r.free(t, plain, parkedSize, 0)
	require.NoError(t, r.LimitPool(backends.CUDA, 0, backends.DefaultLimit))
}

func TestWhatIsParkedMeanwhileIsNotCounted(t *testing.T) {
	r := emulate(t, nil)
	at := orderedAt(r.takeOrdered(t, parkedSize))
	r.devices[0].parked.back(parkedBlock{size: 4 * parkedSize}) // since the driver was asked
	assert.Zero(t, r.figures(t, backends.CUDAAsync).Current)
	r.devices[0].parked.taken()
	require.NoError(t, r.Free(at, parkedSize, 0))
}
