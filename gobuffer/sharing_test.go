package gobuffer_test

import (
	"bytes"
	"errors"
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

func TestAMappingWhoseWritesNobodyElseSees(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{})
	made, descriptor, err := w.runtime.NewShared(backends.Malloc, backends.HostDevice, 100)
	require.NoError(t, err)
	own, err := w.runtime.MapSeparate(backends.Malloc, backends.HostDevice, descriptor, 100)
	require.NoError(t, err)
	_, err = w.runtime.MapSeparate(backends.CUDA, 0, descriptor, 100)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, syscall.Close(descriptor))
	layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{25}, nil)
	require.NoError(t, err)
	options := gobuffer.Options{Allocator: backends.Shared}
	reader := gobuffer.View(made, made.Region().Address, layout, 25, true, options)
	writer := gobuffer.View(own, own.Region().Address, layout, 25, false, options)
	data := counting(arrayiface.Int32, 25)
	source := w.array(gobuffer.Options{}, data)
	require.NoError(t, writer.Assign(source))
	w.assertHolds(writer, data)
	w.assertHolds(reader, model{arrayiface.Int32, []int{25}, make([]byte, 100)})
	closeAll(t, writer, reader, source)
	var none *gobuffer.Runtime
	_, err = none.MapSeparate(backends.Malloc, backends.HostDevice, descriptor, 1)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
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

// sharedTwice is the same memory of device 1 in two places: to write to, and to read from.
func sharedTwice(t *testing.T, w *world, size int) (made, mapped *gobuffer.Memory) {
	t.Helper()
	made, descriptor, err := w.runtime.NewShared(backends.CUDA, 1, size)
	require.NoError(t, err)
	mapped, err = w.runtime.MapShared(backends.CUDAAsync, 1, descriptor, size, true)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(descriptor))
	return made, mapped
}

func TestSharedMemoryEndsWhenWorkWithItIsOver(t *testing.T) {
	w := newWorld(t, 2, late)
	const size = 100000
	made, mapped := sharedTwice(t, w, size)
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{size}, nil)
	require.NoError(t, err)
	options := gobuffer.Options{Allocator: backends.CUDA, Device: 1, Transfer: gobuffer.Async}
	writer := gobuffer.View(made, made.Region().Address, layout, size, false, options)
	w.setSeven(writer)
	assert.NotEqual(t, bytes.Repeat([]byte{7}, size), w.cuda.Peek(made.Region().Address, size), "it is enqueued")
	require.NoError(t, made.Protect())
	assert.Equal(t, bytes.Repeat([]byte{7}, size), w.cuda.Peek(made.Region().Address, size))
	_, err = w.cuda.Copy(made.Region(), mapped.Region(), size, 0)
	assert.Error(t, err, "it is read-only now")

	// Somebody else reads it, and the memory ends meanwhile.
	var seen []byte
	require.NoError(t, w.cuda.Launch(1, w.stream(w.cuda, 1), func(memory func(backends.Address, int) []byte) {
		seen = bytes.Clone(memory(mapped.Region().Address, size))
	}))
	require.NoError(t, mapped.Release())
	assert.Equal(t, bytes.Repeat([]byte{7}, size), seen)
	closeAll(t, writer)
	live, _ := w.cuda.Live()
	assert.Zero(t, live)
}

func TestSharedMemoryIsProtectedWhenAllWorkWithItIsOver(t *testing.T) {
	w := newWorld(t, 2, late)
	const size = 100000
	sevens := bytes.Repeat([]byte{7}, size)
	made, mapped := sharedTwice(t, w, size)
	// Another library's work on its device.
	require.NoError(t, w.cuda.Launch(1, w.stream(w.cuda, 1), func(memory func(backends.Address, int) []byte) {
		copy(memory(made.Region().Address, size), sevens)
	}))
	require.NoError(t, made.Protect())
	assert.Equal(t, sevens, w.cuda.Peek(mapped.Region().Address, size))

	// This one's on another device.
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{size}, nil)
	require.NoError(t, err)
	options := gobuffer.Options{Allocator: backends.CUDA, Device: 1, Transfer: gobuffer.Async}
	source := gobuffer.View(mapped.Retain(), mapped.Region().Address, layout, size, true, options)
	far := w.array(gobuffer.Options{Allocator: backends.CUDA, Stream: w.stream(w.cuda, 0), Transfer: gobuffer.Async},
		counting(arrayiface.Uint8, size))
	require.NoError(t, far.Assign(source))
	assert.NotEqual(t, sevens, w.cuda.Peek(far.Address(), size), "it is enqueued")
	require.NoError(t, mapped.Protect())
	assert.Equal(t, sevens, w.cuda.Peek(far.Address(), size))
	closeAll(t, source, far)
	require.NoError(t, made.Release())
	require.NoError(t, mapped.Release())
}

func TestSharedMemoryThatCannotBeUnmappedIsKept(t *testing.T) {
	w := newWorld(t, 2, late)
	made, mapped := sharedTwice(t, w, 10)
	w.cuda.FailAt("UnmapShared", 0, &backends.NotFreedError{Reason: errors.New("no device")})
	assert.ErrorContains(t, made.Release(), "no device")
	w.cuda.StopFailing()
	live, _ := w.cuda.Live()
	assert.Equal(t, 2, live)
	require.NoError(t, w.runtime.ReleasePostponed())
	w.cuda.FailAt("UnmapShared", 1, errors.New("late failure"))
	w.cuda.FailAt("ProtectShared", 1, errors.New("not protected"))
	assert.ErrorContains(t, mapped.Protect(), "not protected")
	assert.ErrorContains(t, mapped.Release(), "late failure")
	w.assertNothingLive()
	require.NoError(t, w.cuda.UnmapShared(mapped.Region(), mapped.Size()), "which no Release does again")
}

func TestSharingThatFailsLeavesNothing(t *testing.T) {
	w := newWorld(t, 2, backendtest.FakeOptions{Memory: 1 << 20})
	_, _, err := w.runtime.NewShared(backends.CUDA, 1, 2<<20)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	calls := 0
	made, first, err := w.runtime.NewShared(backends.CUDA, 1, 1<<19)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(first))
	kept, first, err := w.runtime.NewShared(backends.CUDA, 1, 1<<18)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(first))
	// It goes back first, and is not enough.
	w.cuda.FailAt("UnmapShared", 0, &backends.NotFreedError{Reason: errors.New("no device")})
	require.Error(t, kept.Release())
	w.cuda.StopFailing()
	remove := w.runtime.OnOutOfMemory(func(device, size int) bool {
		calls++
		assert.NoError(t, made.Release())
		return true
	})
	defer remove()
	second, descriptor, err := w.runtime.NewShared(backends.CUDA, 1, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, 1, calls)
	w.cuda.FailAt("StreamDevice", 0, errors.New("adoption fails"))
	w.cuda.FailAt("Resolve", 0, errors.New("adoption fails"))
	_, err = w.runtime.MapShared(backends.CUDA, 1, descriptor, 1<<20, false)
	assert.ErrorContains(t, err, "adoption fails")
	w.cuda.StopFailing()
	live, _ := w.cuda.Live()
	assert.Equal(t, 1, live)
	require.NoError(t, second.Release())
	require.NoError(t, syscall.Close(descriptor))
}

func TestRuntimesThatDoNotShare(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{NoSharing: true, Synchronous: true})
	_, _, err := w.runtime.NewShared(backends.CUDA, 0, 10)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	plain, err := gobuffer.NewRuntime(w.cuda.WithoutStreams())
	require.NoError(t, err)
	_, err = plain.MapShared(backends.CUDA, 0, 0, 10, true)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	_, err = w.runtime.SharedUnit(backends.CUDA, 3)
	assert.ErrorContains(t, err, "0 … 0")
}
