package gobuffer_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func TestAdoptedElementsAreTheSlices(t *testing.T) {
	useFakes(t)
	values := append(make([]kelvin, 0, 8), 1, 2, 3)
	b, err := gobuffer.Adopt(values)
	require.NoError(t, err)
	assert.Equal(t, uintptr(unsafe.Pointer(&values[0])), uintptr(b.Address()))
	assert.Equal(t, backends.Malloc, b.Allocator())
	assert.Equal(t, 3, b.Capacity(), "the room behind the slice is somebody else's")
	require.NoError(t, b.FillValue(7))
	assert.Equal(t, []kelvin{7, 7, 7}, values)
	values[1] = 8
	require.NoError(t, b.OnHost(context.Background(), gobuffer.Read, func(got []kelvin) error {
		assert.Equal(t, values, got)
		return nil
	}))
	require.NoError(t, b.Resize(2), "in place")
	require.NoError(t, b.Put(0, []kelvin{5}))
	assert.Equal(t, []kelvin{5, 8, 7}, values)
	require.NoError(t, b.AppendValues(9), "in memory of the buffer's own")
	require.NoError(t, b.FillValue(0))
	assert.Equal(t, []kelvin{5, 8, 7}, values)
	assert.Equal(t, []kelvin{0, 0, 0}, values[3:6])
	require.NoError(t, b.Close())
}

// What a device still reads is read when Close returns: the program may write there.
func TestAnAdoptedSliceIsTheProgramsAfterClose(t *testing.T) {
	useFakes(t)
	values := []float32{1, 2, 3}
	b, err := gobuffer.Adopt(values)
	require.NoError(t, err)
	onDevice, err := gobuffer.NewWith[float32](gobuffer.Options{Allocator: backends.CUDA, Transfer: gobuffer.Async}, 3)
	require.NoError(t, err)
	require.NoError(t, onDevice.Assign(b.Array))
	require.NoError(t, b.Close())
	clear(values)
	got := make([]float32, 3)
	require.NoError(t, onDevice.Get(0, got))
	assert.Equal(t, []float32{1, 2, 3}, got)
	require.NoError(t, onDevice.Close())
}

func TestAdoptOfNothing(t *testing.T) {
	useFakes(t)
	for _, values := range [][]int16{nil, {}, make([]int16, 0, 4)} {
		b, err := gobuffer.Adopt(values)
		require.NoError(t, err)
		require.NoError(t, b.AppendValues(1, 2))
		assert.Equal(t, 2, b.Size())
		require.NoError(t, b.Close())
	}
}

// collected reports whether Go's collector has come to something of which only gone tells.
func collected(gone <-chan struct{}) bool {
	for range 50 {
		runtime.GC()
		select {
		case <-gone:
			return true
		case <-time.After(time.Millisecond):
		}
	}
	return false
}

func adopted(t *testing.T) (*gobuffer.Buffer[int64], <-chan struct{}) {
	values := make([]int64, 1024)
	for i := range values {
		values[i] = int64(i)
	}
	gone := make(chan struct{})
	runtime.AddCleanup(&values[0], func(gone chan struct{}) { close(gone) }, gone)
	b, err := gobuffer.Adopt(values)
	require.NoError(t, err)
	return b, gone
}

func TestAnAdoptedSliceLivesUntilItsLastUse(t *testing.T) {
	useFakes(t)
	b, gone := adopted(t)
	h, err := b.HostAccessible(context.Background())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	assert.False(t, collected(gone))
	assert.EqualValues(t, 1023, h.Slice()[1023])
	require.NoError(t, h.Release())
	assert.True(t, collected(gone))
}

// A pin that is collected ends the program: a buffer that nobody closes keeps its slice.
func TestAForgottenBufferKeepsItsSlice(t *testing.T) {
	b, gone := adopted(t)
	assert.Equal(t, 1024, b.Size())
	assert.False(t, collected(gone))
}

type (
	switched bool
	level    int8
	count32  uint32
	phase    complex64
	wave     complex128
)

func TestBufferOfNamedTypes(t *testing.T) {
	useFakes(t)
	roundTrip[switched](t, true, false, true)
	roundTrip[level](t, -1, 2, 3)
	roundTrip[count32](t, 1, 2, 3)
	roundTrip[kelvin](t, 1.5, 2, 3)
	roundTrip[phase](t, 1i, 2, 3)
	roundTrip[wave](t, 1i, 2, 3)
	roundTrip[time.Duration](t, time.Second, 2, 3)
	assert.Equal(t, arrayiface.Float64, gobuffer.TypeOf[kelvin]())
	assert.Equal(t, arrayiface.Bool, gobuffer.TypeOf[switched]())
	b, err := gobuffer.From(backends.CUDA, []kelvin{1, 2})
	require.NoError(t, err)
	plain, err := gobuffer.Typed[float64](b.Array)
	require.NoError(t, err, "the elements are the same")
	require.NoError(t, plain.AppendValues(3))
	assert.Equal(t, 3, b.Size())
	require.NoError(t, b.Close())
}

func TestTypeOfAllocatesNothing(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		kinds += int(gobuffer.TypeOf[kelvin]()) + int(gobuffer.TypeOf[wave]())
	}))
}

func TestResizedElementsAreZero(t *testing.T) {
	useFakes(t)
	for _, a := range []backends.Allocator{backends.Malloc, backends.CPP, backends.CUDA, backends.CUDAAsync,
		backends.CUDAUnified, backends.CUDAHost} {
		b, err := gobuffer.From(a, []kelvin{1, 2, 3, 4})
		require.NoError(t, err)
		require.NoError(t, b.Resize(2))
		require.NoError(t, b.Resize(4), "in the same memory")
		require.NoError(t, b.Resize(100))
		got := make([]kelvin, 100)
		require.NoError(t, b.Get(0, got))
		assert.Equal(t, append([]kelvin{1, 2}, make([]kelvin, 98)...), got, a.String())
		var argument *gobuffer.ArgumentError
		assert.Error(t, b.Resize(-1))
		assert.Equal(t, 100, b.Size())
		require.ErrorAs(t, b.OnHost(context.Background(), gobuffer.Read, nil), &argument)
		require.NoError(t, b.Close())
	}
}
