package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

var reusing = backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true, FreeWaits: true}

// pinned is page-locked memory that the device reads late, on a stream of its own.
func (w *world) pinned() (a, copied *gobuffer.Array, s backends.Stream) {
	w.t.Helper()
	o := place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async)
	a = w.array(o, before)
	o.Allocator, o.Device = backends.CUDA, 0
	o.Stream = w.stream(w.cuda, 0)
	w.busy(0, o.Stream)
	copied, err := a.Copy(o, a.Type())
	require.NoError(w.t, err)
	w.busy(0, o.Stream)
	return a, copied, o.Stream
}

func (w *world) allocations() int {
	allocations, _ := w.cuda.Live()
	return allocations
}

func TestPinnedMemoryIsFreedWhenNothingUsesIt(t *testing.T) {
	for name, collect := range map[string]func(w *world){
		"at the next allocation": func(w *world) {
			closeAll(w.t, w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before))
		},
		"when it is asked for": func(w *world) { require.NoError(w.t, w.runtime.ReleasePostponed()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, reusing)
			a, copied, s := w.pinned()
			waits := w.cuda.CallCount("Synchronize")
			closeAll(t, a)
			assert.Equal(t, waits, w.cuda.CallCount("Synchronize"), "nobody waits")
			assert.Equal(t, 2, w.allocations())
			assert.Zero(t, w.statistics(backends.CUDAHost).Live, "it counts as freed")
			w.assertHolds(copied, before)
			closeAll(t, copied)
			require.NoError(t, w.cuda.DestroyStream(0, s))
			collect(w)
			assert.Zero(t, w.allocations())
		})
	}
}

func TestPinnedMemoryIsWaitedForWhenItIsAskedFor(t *testing.T) {
	w := newWorld(t, 1, reusing)
	a, copied, _ := w.pinned()
	closeAll(t, a)
	// An allocation asks, and does not wait.
	b := w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before)
	assert.Equal(t, 3, w.allocations())
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, 2, w.allocations())
	closeAll(t, b, copied)
}

// Another library's work is on the stream that the memory was taken for.
func TestPinnedMemoryIsKeptForTheStreamOfItsOwn(t *testing.T) {
	w := newWorld(t, 1, reusing)
	s, other := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	m, err := w.runtime.Allocate(backends.CUDAHost, backends.HostDevice, 24, s, false)
	require.NoError(t, err)
	at := m.Region().Address
	require.NoError(t, w.cuda.Launch(0, s, func(memory func(backends.Address, int) []byte) { clear(memory(at, 24)) }))
	w.busy(0, s)
	w.busy(0, other)
	require.NoError(t, m.Leave(other))
	require.NoError(t, m.Release())
	assert.Equal(t, 1, w.allocations())
	require.NoError(t, w.cuda.Synchronize(0, other))
	closeAll(t, w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before))
	assert.Equal(t, 1, w.allocations())
	require.NoError(t, w.cuda.DestroyStream(0, s))
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestPinnedMemoryWaitsForStreamsThatNobodyNames(t *testing.T) {
	w := newWorld(t, 2, reusing)
	a := w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before)
	s := w.stream(w.cuda, 1)
	w.kernel(w.cuda, 1, s, a, after)
	require.NoError(t, w.cuda.DestroyStream(1, s))
	other := w.stream(w.cuda, 0)
	w.busy(0, other)
	require.NoError(t, a.Memory().Leave(other))
	require.NoError(t, a.Memory().Leave(backends.EveryStream))
	closeAll(t, a)
	assert.Equal(t, 2, w.cuda.CallCount("SynchronizeDevice"), "on every device")
	assert.Zero(t, w.allocations())
}

func TestPinnedMemoryThatCannotBeSetAsideIsWaitedFor(t *testing.T) {
	for _, call := range []string{"Idle", "NewEvent", "Record"} {
		w := newWorld(t, 1, reusing)
		a, copied, _ := w.pinned()
		w.cuda.FailAt(call, 1, errInjected)
		closeAll(t, a)
		assert.Equal(t, 1, w.allocations(), call)
		assert.NotZero(t, w.cuda.CallCount("Synchronize"), call)
		closeAll(t, copied)
	}
}

func TestPinnedMemoryThatCannotBeAskedAfterWaitsForTheDevices(t *testing.T) {
	w := newWorld(t, 1, reusing)
	a, copied, _ := w.pinned()
	closeAll(t, a)
	w.cuda.FailAt("Done", 1, errInjected)
	b := w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before)
	assert.Equal(t, 1, w.cuda.CallCount("SynchronizeDevice"))
	assert.Equal(t, 2, w.allocations())

	again, other, _ := w.pinned()
	closeAll(t, again)
	w.cuda.FailAt("SynchronizeEvent", 0, errInjected)
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, 2, w.cuda.CallCount("SynchronizeDevice"))
	w.cuda.StopFailing()
	closeAll(t, b, copied, other)
	assert.Zero(t, w.allocations())
}

func TestAsideMemoryMakesRoom(t *testing.T) {
	w := newWorld(t, 1, reusing)
	a, copied, _ := w.pinned()
	closeAll(t, a)
	w.cuda.FailAt("Allocate", 1, &backends.OutOfMemoryError{Allocator: backends.CUDA})
	b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	assert.Equal(t, 2, w.allocations(), "what was aside is back")
	closeAll(t, b, copied)
}
