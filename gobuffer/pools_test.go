package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

func TestPoolsAreOfTheBackends(t *testing.T) {
	w := newWorld(t, 1, late)
	require.NoError(t, w.runtime.LimitPool(backends.Malloc, 7, 1<<20))
	list := w.runtime.Pools()
	require.Len(t, list, 1, "the other runtimes have none")
	assert.Equal(t, []any{backends.Malloc, backends.HostDevice, int64(1 << 20)},
		[]any{list[0].Allocator, list[0].Device, list[0].Limit})
	require.NoError(t, w.runtime.LimitPool(backends.Malloc, 0, backends.DefaultLimit))
	assert.ErrorContains(t, w.runtime.LimitPool(backends.Malloc, 0, -3), "bytes is -3")
	assert.ErrorContains(t, w.runtime.LimitPool(backends.CUDA, 0, 1), "cannot be limited")
	assert.Error(t, w.runtime.LimitPool(backends.CUDA, 5, 1))
	assert.Error(t, w.runtime.LimitPool(backends.OpenMP, 0, 1))
}

func full(a backends.Allocator) error {
	return &backends.OutOfMemoryError{Allocator: a, Device: 0, Size: 48}
}

func TestCallbacksMakeRoom(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	var asked [][2]int
	helps := true
	remove := w.runtime.OnOutOfMemory(func(device, bytes int) bool {
		asked = append(asked, [2]int{device, bytes})
		if helps {
			w.cuda.StopFailing()
		}
		return helps
	})
	other := w.runtime.OnOutOfMemory(func(int, int) bool {
		// An allocation inside calls none.
		_, _ = w.runtime.Allocate(backends.HIP, 0, 1<<40, 0, false)
		return false
	})
	w.cuda.FailAt("Allocate", 0, full(backends.CUDA))
	closeAll(t, w.array(o, before))
	assert.Equal(t, [][2]int{{0, 48}}, asked)

	helps = false
	w.cuda.FailAt("Allocate", 0, full(backends.CUDA))
	_, err := w.runtime.NewArray(before.kind, before.shape, o)
	var lacking *backends.OutOfMemoryError
	require.ErrorAs(t, err, &lacking)
	assert.Len(t, asked, 2)
	remove()
	remove()
	other()
	_, err = w.runtime.NewArray(before.kind, before.shape, o)
	require.ErrorAs(t, err, &lacking)
	assert.Len(t, asked, 2)
	w.cuda.StopFailing()
	w.cuda.FailAt("Allocate", 1, errInjected)
	helps = true
	_, err = w.runtime.NewArray(before.kind, before.shape, o)
	assert.ErrorIs(t, err, error(errInjected), "another failure is not a lack of memory")
}

func TestACallbackThatPanicsIsNoLongerRunning(t *testing.T) {
	w := newWorld(t, 1, late)
	calls := 0
	w.runtime.OnOutOfMemory(func(int, int) bool {
		calls++
		panic("mine")
	})
	for range 2 {
		assert.PanicsWithValue(t, "mine", func() { _, _ = w.runtime.Allocate(backends.CUDA, 0, 1<<40, 0, false) })
	}
	assert.Equal(t, 2, calls)
}

func TestPageableMemoryMayTakeThePlaceOfPinned(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	w.cuda.FailAt("Allocate", 0, full(backends.CUDAHost))
	_, err := w.runtime.NewArray(before.kind, before.shape, o)
	var lacking *backends.OutOfMemoryError
	require.ErrorAs(t, err, &lacking, "unless it is asked for")
	o.OrPageable = true
	a, err := w.runtime.NewFilledArray(before.kind, before.shape, o, gobuffer.Value{})
	require.NoError(t, err)
	w.cuda.StopFailing()
	assert.Equal(t, backends.Malloc, a.Allocator())
	assert.Equal(t, backends.Malloc, a.Memory().Region().Allocator)
	assert.Equal(t, backends.HostDevice, a.Owner())
	assert.Equal(t, o.Stream, a.Stream())
	assert.Equal(t, backends.CUDAHost, a.Options().StreamOf)
	device := place{backends.CUDA, 0}.options(gobuffer.Sync)
	copied, err := a.Copy(device, a.Type())
	require.NoError(t, err)
	closeAll(t, a, copied)

	w.cuda.FailAt("Allocate", 1, errInjected)
	_, err = w.runtime.NewArray(before.kind, before.shape, o)
	assert.ErrorIs(t, err, error(errInjected))
	b, err := w.runtime.NewArray(before.kind, before.shape, o)
	require.NoError(t, err)
	assert.Equal(t, backends.CUDAHost, b.Allocator())
	closeAll(t, b)
}
