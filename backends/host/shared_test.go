package host

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestSharedMemoryIsFreedOnce(t *testing.T) {
	b := New().(*Backend)
	before := descriptors(t)
	for range 100 {
		at, err := b.Allocate(backends.Request{Allocator: backends.Shared, Device: backends.HostDevice, Size: 10})
		require.NoError(t, err)
		assert.True(t, isZero(bytesAt(at, 10)))
		bytesAt(at, 10)[9] = 1
		assert.Equal(t, before+1, descriptors(t))
		require.NoError(t, b.Free(hostRegion(backends.Shared, at), 10, 0))
	}
	assert.Equal(t, before, descriptors(t))
}

func TestSharedMemoryThatIsGone(t *testing.T) {
	b := New().(*Backend)
	make := func() backends.Region {
		at, err := b.Allocate(backends.Request{Allocator: backends.Shared, Device: backends.HostDevice, Size: 10})
		require.NoError(t, err)
		return hostRegion(backends.Shared, at)
	}
	first := make()
	handle, _, err := b.Export(first)
	require.NoError(t, err)
	require.NoError(t, b.Free(first, 10, 0))
	_, err = b.Import(handle, backends.HostDevice, 1)
	require.ErrorIs(t, err, syscall.ENOENT)
	second := make() // it has the number of the first one's descriptor
	_, err = b.Import(handle, backends.HostDevice, 1)
	require.ErrorContains(t, err, "is not there any more")
	require.ErrorContains(t, err, "another file")
	require.NoError(t, b.Free(second, 10, 0))
	_, err = b.Import([]byte("nonsense"), backends.HostDevice, 1)
	require.ErrorContains(t, err, `"nonsense"`)
}

func TestOnlySharedMemoryIsExported(t *testing.T) {
	b := New().(*Backend)
	for _, at := range []backends.Address{1, allocate(t, b, backends.Malloc, 64, true).Address} {
		_, _, err := b.Export(hostRegion(backends.Shared, at))
		require.ErrorContains(t, err, "is not of allocator shared")
	}
}

func TestSharedMemoryWithoutDescriptors(t *testing.T) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := syscall.Rlimit{Cur: 0, Max: limit.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := New().Allocate(backends.Request{Allocator: backends.Shared, Device: backends.HostDevice, Size: 10})
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.True(t, errors.Is(err, backends.ErrUnavailable), err)
	assert.ErrorContains(t, err, "too many open files")
}
