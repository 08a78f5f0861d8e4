//go:build cgo

package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func (b *Backend) passThrough(t *testing.T, size int) {
	t.Helper()
	at, err := b.Allocate(backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: size})
	require.NoError(t, err)
	require.NoError(t, b.Free(backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}, size,
		0))
}

func TestWhatIsKeptIsLimited(t *testing.T) {
	b := New().(*Backend)
	figures := func() backends.PoolStatistics { return b.Pools()[0] }
	const size = smallestLarge + 100
	for range 2 {
		b.passThrough(t, size)
		b.passThrough(t, 100)
	}
	s := figures()
	assert.GreaterOrEqual(t, s.Cached, int64(size+128))
	assert.GreaterOrEqual(t, s.LargestFree, int64(size))
	assert.Equal(t, []int64{2, 2, int64(largeLimit()), s.Cached}, []int64{s.Hits, s.Misses, s.Limit, s.Peak})

	require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, 1<<20))
	assert.Equal(t, int64(128), figures().Cached)
	b.passThrough(t, size)
	assert.Equal(t, []int64{128, 128, 1 << 20}, []int64{figures().Cached, figures().LargestFree, figures().Limit})

	require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, 0))
	b.passThrough(t, 100)
	assert.Zero(t, figures().Cached)

	for _, limit := range []int64{backends.DefaultLimit, backends.NoLimit} {
		require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, limit))
		b.passThrough(t, size)
		b.passThrough(t, 100)
		assert.GreaterOrEqual(t, figures().Cached, int64(size+128))
	}
	require.NoError(t, b.Trim())
	assert.Zero(t, figures().Cached)
	assert.Error(t, b.LimitPool(backends.CPP, backends.HostDevice, 1))
	assert.Error(t, b.LimitPool(backends.Malloc, 0, 1))
}
