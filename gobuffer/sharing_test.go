package gobuffer_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

func TestSharedHostMemoryIsOneMemory(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{})
	unit, err := w.runtime.SharedUnit(backends.Malloc, backends.HostDevice)
	require.NoError(t, err)
	assert.Equal(t, os.Getpagesize(), unit)
	made, descriptor, err := w.runtime.NewShared(backends.Malloc, backends.HostDevice, 100)
	require.NoError(t, err)
	assert.Equal(t, unit, made.Size())
	assert.False(t, made.Owned())
	mapped, err := w.runtime.MapShared(backends.Shared, backends.HostDevice, descriptor, 100, true)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(descriptor))

	layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{25}, nil)
	require.NoError(t, err)
	data := counting(arrayiface.Int32, 25)
	options := gobuffer.Options{Allocator: backends.Shared}
	writer := gobuffer.View(made, made.Region().Address, layout, 25, false, options)
	reader := gobuffer.View(mapped, mapped.Region().Address, layout, 25, true, options)
	filled := w.array(gobuffer.Options{Allocator: backends.CUDA}, data)
	require.NoError(t, writer.Assign(filled))
	w.assertHolds(reader, data)
	require.NoError(t, made.Protect())
	require.NoError(t, writer.Resize(40, nil), "in memory of its own")
	w.assertHolds(reader, data)
	closeAll(t, writer, reader, filled)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	assert.NotContains(t, string(maps), "hamr-store")
}

func TestWhatCannotBeShared(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{})
	for _, size := range []int{0, -1, 1<<62 + 1} {
		_, _, err := w.runtime.NewShared(backends.Malloc, backends.HostDevice, size)
		assert.ErrorContains(t, err, "2**62")
		_, err = w.runtime.MapShared(backends.Malloc, backends.HostDevice, 0, size, true)
		assert.ErrorContains(t, err, "2**62")
	}
	_, err := w.runtime.MapShared(backends.Malloc, backends.HostDevice, -1, 1, true)
	assert.ErrorIs(t, err, syscall.EBADF)
	plain, err := w.runtime.Allocate(backends.Malloc, backends.HostDevice, 10, 0, false)
	require.NoError(t, err)
	assert.ErrorContains(t, plain.Protect(), "not shared by descriptor")
	require.NoError(t, plain.Release())
	var none *gobuffer.Runtime
	_, _, err = none.NewShared(backends.Malloc, backends.HostDevice, 1)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
}
