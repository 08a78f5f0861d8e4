package hetero_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/hetero"
)

// world is a Scheduler over host memory and devices of two vendors. Its end checks that all streams
// and events came back.
type world struct {
	t         testing.TB
	runtime   *gobuffer.Runtime
	scheduler *hetero.Scheduler
	cuda, hip *backendtest.Fake
}

// late is devices on which nothing is done until somebody waits, and asking does not help: what is
// pending stays so until finish.
var late = backendtest.FakeOptions{Manual: true, Strict: true, Still: true}

// lateWork is devices whose work is done by and by.
var lateWork = backendtest.FakeOptions{Strict: true, MaxDelay: 100 * time.Microsecond}

// newWorld has so many devices of each vendor.
func newWorld(t testing.TB, devices int, o backendtest.FakeOptions) *world {
	t.Helper()
	t.Setenv(hetero.AcceleratorsSetting, "")
	o.Devices = devices
	cuda, hip := o, o
	cuda.Space, hip.Space = backends.SpaceCUDA, backends.SpaceHIP
	w := &world{t: t, cuda: backendtest.NewFake(cuda), hip: backendtest.NewFake(hip)}
	list := []backends.Backend{host.New(), w.cuda, w.hip}
	if devices == 0 {
		list = []backends.Backend{host.New(), empty{w.cuda}, empty{w.hip}}
	}
	var err error
	w.runtime, err = gobuffer.NewRuntime(list...)
	require.NoError(t, err)
	w.scheduler = hetero.New(w.runtime)
	t.Cleanup(w.assertClean)
	return w
}

// empty is a runtime that is there and has no devices.
type empty struct{ *backendtest.Fake }

func (empty) DeviceCount() (int, error) { return 0, nil }

func (w *world) assertClean() {
	w.t.Helper()
	w.finish()
	require.NoError(w.t, w.runtime.ReleasePostponed())
	require.NoError(w.t, w.scheduler.Trim())
	for _, c := range w.scheduler.CacheStatistics() {
		assert.Zero(w.t, c.Streams.Out+c.Streams.Kept, "streams of %s", c.Place)
		assert.Zero(w.t, c.Events.Out+c.Events.Kept, "events of %s", c.Place)
	}
	for _, fake := range []*backendtest.Fake{w.cuda, w.hip} {
		fake.AssertClean(w.t)
		streams, events := fake.LiveHandles()
		assert.Zero(w.t, streams, "streams left")
		assert.Zero(w.t, events, "events left")
	}
}

// finish does all that is pending.
func (w *world) finish() {
	w.cuda.Finish()
	w.hip.Finish()
}

// work puts something on a stream that is pending until finish.
func (w *world) work(p hetero.Place, s backends.Stream) {
	w.t.Helper()
	require.NoError(w.t, w.fake(p).Launch(p.Device, s, func(func(backends.Address, int) []byte) {}))
}

func (w *world) fake(p hetero.Place) *backendtest.Fake {
	if p.Backend == "hip" {
		return w.hip
	}
	return w.cuda
}

// calls is what both vendors' runtimes are asked for while f runs: names alone, of those given.
func (w *world) calls(f func(), names ...string) (list []string) {
	before := [2]int{len(w.cuda.Calls()), len(w.hip.Calls())}
	f()
	for i, fake := range []*backendtest.Fake{w.cuda, w.hip} {
		for _, call := range fake.Calls()[before[i]:] {
			if name, _, _ := strings.Cut(call, "("); len(names) == 0 || slices.Contains(names, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// assertNeverBlocked checks that nobody has waited for a device.
func (w *world) assertNeverBlocked() {
	w.t.Helper()
	for _, fake := range []*backendtest.Fake{w.cuda, w.hip} {
		for _, call := range []string{"Synchronize", "SynchronizeEvent", "SynchronizeDevice", "SynchronizeContext"} {
			assert.Zero(w.t, fake.CallCount(call), "%s of %s", call, fake.Name())
		}
	}
}

var cuda0 = hetero.Place{Backend: "cuda", Device: 0}

// null is a runtime whose calls cost nothing: what is measured is the Scheduler's own.
type null struct {
	backends.Backend
	handles atomic.Uintptr
	pending bool
	asked   int
}

func newNull(t testing.TB) (*null, *hetero.Scheduler) {
	n := &null{Backend: backendtest.NewFake(backendtest.FakeOptions{})}
	r, err := gobuffer.NewRuntime(n)
	require.NoError(t, err)
	return n, hetero.New(r)
}

func (n *null) NewStream(int) (backends.Stream, error) { return backends.Stream(n.handles.Add(1)), nil }
func (n *null) NewEvent(int) (backends.Event, error)   { return backends.Event(n.handles.Add(1)), nil }

func (*null) Resolve(_ int, s backends.Stream) (backends.Stream, error) { return s, nil }
func (*null) StreamDevice(backends.Stream) (int, error)                 { return 0, nil }
func (*null) DestroyStream(int, backends.Stream) error                  { return nil }
func (*null) Synchronize(int, backends.Stream) error                    { return nil }
func (*null) Idle(int, backends.Stream) (bool, error)                   { return true, nil }
func (*null) DestroyEvent(int, backends.Event) error                    { return nil }
func (*null) Record(int, backends.Event, backends.Stream) error         { return nil }
func (*null) Wait(int, backends.Stream, backends.Event) error           { return nil }
func (*null) SynchronizeEvent(int, backends.Event) error                { return nil }

// Done is true or, if so asked, true every second time: of an event that was given back, and not of
// the one that it becomes.
func (n *null) Done(int, backends.Event) (bool, error) {
	n.asked++
	return !n.pending || n.asked%2 == 1, nil
}
