package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// shared is a buffer of a pool that a foreign library writes to, late, on a stream that
// has ended since.
func (w *world) shared(device int) *gobuffer.Array {
	w.t.Helper()
	a := w.array(place{backends.CUDAAsync, device}.options(gobuffer.Async), before)
	s := w.stream(w.cuda, device)
	require.NoError(w.t, w.cuda.Synchronize(device, 0))
	w.kernel(w.cuda, device, s, a, after)
	require.NoError(w.t, w.cuda.DestroyStream(device, s))
	require.NoError(w.t, a.Memory().Leave(backends.EveryStream))
	return a
}

func (w *world) kept() int {
	allocations, _ := w.cuda.Live()
	live := 0
	for _, s := range w.runtime.Statistics() {
		live += int(s.Live)
	}
	assert.Equal(w.t, allocations, live)
	return live
}

func TestMemoryIsFreedAfterStreamsThatNobodyNames(t *testing.T) {
	w := newWorld(t, 2, late)
	for device := range 2 {
		a := w.shared(device)
		other := w.stream(w.cuda, 1-device)
		w.busy(1-device, other)
		closeAll(t, a)
		require.NoError(t, w.cuda.Synchronize(device, 0), "frees it")
		idle, err := w.cuda.Idle(1-device, other)
		require.NoError(t, err)
		assert.False(t, idle, "the other device is not waited for")
	}
}

func TestOnlyTheLastReleaseWaitsForTheDevice(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.shared(0)
	m := a.Memory().Retain()
	closeAll(t, a)
	assert.Zero(t, w.cuda.CallCount("SynchronizeDevice"))
	require.NoError(t, m.Release())
	assert.Equal(t, 1, w.cuda.CallCount("SynchronizeDevice"))
}

// A driver gives out the handles of streams that ended again.
func TestAHandleThatMemoryWasMadeOnMayBecomeAnother(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	a := w.array(o, before)
	require.NoError(t, a.SetStream(0, gobuffer.Async))
	require.NoError(t, a.Memory().Forget(o.Stream))
	w.kernel(w.cuda, 0, o.Stream, a, after)
	require.NoError(t, a.Memory().Leave(o.Stream))
	closeAll(t, a)
	require.NoError(t, w.cuda.Synchronize(0, 0), "frees it")
}

func TestOtherMemoryDoesNotWaitForTheDevice(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, p := range places(1) {
		if p.allocator == backends.CUDAAsync {
			continue
		}
		a := w.array(p.options(gobuffer.Async), before)
		require.NoError(t, a.Memory().Leave(backends.EveryStream))
		closeAll(t, a)
	}
	owner := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before)
	m, err := w.runtime.Adopt(owner.Memory().Region(), owner.Memory().Size(), 0, nil)
	require.NoError(t, err)
	require.NoError(t, m.Leave(backends.EveryStream))
	require.NoError(t, m.Release())
	closeAll(t, owner)
	assert.Zero(t, w.cuda.CallCount("SynchronizeDevice")+w.hip.CallCount("SynchronizeDevice"))
}

func TestALateFailureDoesNotKeepMemory(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.shared(0)
	w.cuda.FailAt("SynchronizeDevice", 1, errInjected)
	assert.ErrorIs(t, a.Close(), error(errInjected))
	assert.Zero(t, w.kept())
}

// As while a stream is captured into a graph.
func TestMemoryIsKeptWhileItsDeviceCannotBeWaitedFor(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"asked for": func(w *world) { require.NoError(t, w.runtime.ReleasePostponed()) },
		"at the next such release": func(w *world) {
			closeAll(t, w.shared(1))
			assert.Equal(t, 3, w.kept(), "the other device's says nothing of this one")
			closeAll(t, w.shared(0))
		},
		"when there is no more": func(w *world) {
			oom := &backends.OutOfMemoryError{Allocator: backends.CUDA}
			w.cuda.FailAt("Allocate", 1, oom)
			closeAll(t, w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, late)
			first, second := w.shared(0), w.shared(0)
			own := w.stream(w.cuda, 0)
			third := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
			third.Stream = own
			onOwn := w.array(third, before)
			require.NoError(t, onOwn.Memory().Leave(backends.EveryStream))
			w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
			for _, a := range []*gobuffer.Array{first, second, onOwn} {
				assert.ErrorIs(t, a.Close(), error(errInjected))
			}
			assert.Equal(t, 3, w.kept())
			assert.ErrorIs(t, w.runtime.ReleasePostponed(), error(errInjected))
			assert.Equal(t, 3, w.kept())
			require.NoError(t, w.cuda.DestroyStream(0, own))
			w.cuda.StopFailing()
			end(w)
			assert.Zero(t, w.kept())
		})
	}
}

func TestALackOfMemoryIsReportedWhereNoneCanBeGivenBack(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{Strict: true, Manual: true, Memory: 100})
	a := w.shared(0)
	w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
	assert.ErrorIs(t, a.Close(), error(errInjected))
	var full *backends.OutOfMemoryError
	_, err := w.runtime.Allocate(backends.CUDA, 0, 90, 0, false)
	require.ErrorAs(t, err, &full)
	w.cuda.StopFailing()
	m, err := w.runtime.Allocate(backends.CUDA, 0, 90, 0, false)
	require.NoError(t, err)
	require.NoError(t, m.Release())
}

// busyLater is a device that work is enqueued on, and that cannot be waited for any
// more, as soon as a wait for it was over.
type busyLater struct {
	*backendtest.Fake
	waited func()
}

func (b *busyLater) SynchronizeDevice(device int) error {
	err := b.Fake.SynchronizeDevice(device)
	if waited := b.waited; waited != nil && err == nil {
		b.waited = nil
		waited()
	}
	return err
}

// Memory that another goroutine postpones after a release waited for the device is not
// that release's to free.
func TestAWaitSaysNothingOfMemoryThatIsPostponedAfterIt(t *testing.T) {
	w := newWorld(t, 1, late)
	b := &busyLater{Fake: w.cuda}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), b, w.hip)
	require.NoError(t, err)
	first := w.shared(0)
	b.waited = func() {
		second := w.shared(0)
		w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
		assert.ErrorIs(t, second.Close(), error(errInjected))
	}
	require.NoError(t, first.Close())
	assert.Equal(t, 1, w.kept(), "nobody waited for its work")
	w.cuda.StopFailing()
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Zero(t, w.kept())
}
