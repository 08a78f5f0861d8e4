package gobuffer_test

import (
	"sync"
	"sync/atomic"
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
	return w.sharedFrom(backends.CUDAAsync, device)
}

func (w *world) sharedFrom(allocator backends.Allocator, device int) *gobuffer.Array {
	w.t.Helper()
	a := w.array(place{allocator, device}.options(gobuffer.Async), before)
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

func TestMemoryThatABackendReusesIsFreedAfterThem(t *testing.T) {
	reusing := late
	reusing.Reuses, reusing.FreeWaits = true, true
	w := newWorld(t, 1, reusing)
	a := w.sharedFrom(backends.CUDA, 0)
	closeAll(t, a)
	assert.Equal(t, 1, w.cuda.CallCount("SynchronizeDevice"))
	b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	s := w.stream(w.cuda, 0)
	w.kernel(w.cuda, 0, s, b, after)
	require.NoError(t, b.Memory().Leave(s))
	waits := w.cuda.CallCount("Synchronize")
	closeAll(t, b)
	assert.Equal(t, waits, w.cuda.CallCount("Synchronize"), "the stream that it is freed on waits")
	require.NoError(t, w.cuda.Synchronize(0, 0), "frees it")
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
		if p.allocator.Ordered() {
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
	gobuffer.WaitAtReleases(w.runtime)
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

// One wait speaks for all memory of its device.
func TestPostponedMemoryIsWaitedForOnceADevice(t *testing.T) {
	w := newWorld(t, 2, late)
	w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
	const many = 50
	for i := range many {
		assert.Error(t, w.shared(i%2).Close())
	}
	assert.Equal(t, many, w.kept())
	waits := w.cuda.CallCount("SynchronizeDevice")
	assert.Error(t, w.runtime.ReleasePostponed())
	assert.Equal(t, many, w.kept())
	assert.Equal(t, 2*2, w.cuda.CallCount("SynchronizeDevice")-waits,
		"twice each: only the second says that the work is not over")
	w.cuda.StopFailing()
	waits = w.cuda.CallCount("SynchronizeDevice")
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, 2, w.cuda.CallCount("SynchronizeDevice")-waits)
	assert.Zero(t, w.kept())
	waits = w.cuda.CallCount("SynchronizeDevice")
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Equal(t, waits, w.cuda.CallCount("SynchronizeDevice"), "there is nothing to wait for")
}

// Memory of a device that cannot be waited for says nothing of another's.
func TestRoomThatOneDeviceGivesBackIsUsedThoughAnotherGivesNone(t *testing.T) {
	w := newWorld(t, 2, backendtest.FakeOptions{Strict: true, Manual: true, Memory: 100})
	b := &chosen{Fake: w.cuda, failing: map[int]bool{0: true, 1: true}}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), b, w.hip)
	require.NoError(t, err)
	gobuffer.WaitAtReleases(w.runtime)
	assert.Error(t, w.shared(0).Close())
	assert.Error(t, w.shared(1).Close())
	b.failing = map[int]bool{0: true}
	m, err := w.runtime.Allocate(backends.CUDA, 1, 90, 0, false)
	require.NoError(t, err)
	require.NoError(t, m.Release())
	assert.Equal(t, 1, w.kept())
	b.failing = nil
	require.NoError(t, w.runtime.ReleasePostponed())
}

// chosen is a runtime of which some devices cannot be waited for.
type chosen struct {
	*backendtest.Fake
	failing map[int]bool
}

func (c *chosen) SynchronizeDevice(device int) error {
	if c.failing[device] {
		return errInjected
	}
	return c.Fake.SynchronizeDevice(device)
}

// Who runs out of memory that another goroutine is about to give back gets it.
func TestRoomThatIsBeingGivenBackIsWaitedFor(t *testing.T) {
	for name, giveBack := range map[string]func(w *world, closing *gobuffer.Array) error{
		"asked for":    func(w *world, _ *gobuffer.Array) error { return w.runtime.ReleasePostponed() },
		"at a release": func(_ *world, closing *gobuffer.Array) error { return closing.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, backendtest.FakeOptions{Strict: true, Manual: true, Memory: 100})
			s := &stopping{Fake: w.cuda, arrived: make(chan struct{}), goOn: make(chan struct{}), refused: make(chan struct{})}
			var err error
			w.runtime, err = gobuffer.NewRuntime(host.New(), s, w.hip)
			require.NoError(t, err)
			gobuffer.WaitAtReleases(w.runtime)
			first, second := w.shared(0), w.shared(0)
			w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
			assert.Error(t, first.Close())
			w.cuda.StopFailing()
			if name == "asked for" {
				closeAll(t, second)
				require.Zero(t, w.kept())
				w.cuda.FailAt("SynchronizeDevice", 0, errInjected)
				assert.Error(t, w.shared(0).Close())
				w.cuda.StopFailing()
			}
			s.stop.Store(true)
			given := make(chan error)
			go func() { given <- giveBack(w, second) }()
			<-s.arrived
			go func() {
				<-s.refused
				close(s.goOn)
			}()
			m, err := w.runtime.Allocate(backends.CUDA, 0, 90, 0, false)
			assert.NoError(t, <-given)
			require.NoError(t, err)
			require.NoError(t, m.Release())
			assert.Zero(t, w.kept())
		})
	}
}

// stopping is a device whose first release, once stop is set, ends only after an
// allocation was refused.
type stopping struct {
	*backendtest.Fake
	stop                   atomic.Bool
	arrived, goOn, refused chan struct{}
	once                   sync.Once
}

func (s *stopping) Allocate(r backends.Request) (backends.Address, error) {
	at, err := s.Fake.Allocate(r)
	if err != nil {
		s.once.Do(func() { close(s.refused) })
	}
	return at, err
}

func (s *stopping) Free(at backends.Region, size int, stream backends.Stream) error {
	if s.stop.CompareAndSwap(true, false) {
		close(s.arrived)
		<-s.goOn
	}
	return s.Fake.Free(at, size, stream)
}
