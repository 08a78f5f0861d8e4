package gobuffer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

var errInjected = &backends.DeviceError{API: "fake", Call: "injected", Name: "FAKE_ERROR", Code: 77}

// operation is something done to a buffer of 6 numbers, with another buffer and
// a single value. inPlace says that it writes to elements the buffer has.
type operation struct {
	name    string
	inPlace bool
	run     func(w *world, a, b, value *gobuffer.Array) error
}

var operations = []operation{
	{"copy", false, func(_ *world, a, _, _ *gobuffer.Array) error { return closing(a.Copy(a.Options(), a.Type())) }},
	{"copy and convert", false, func(_ *world, a, _, _ *gobuffer.Array) error {
		return closing(a.Copy(a.Options(), arrayiface.Float64))
	}},
	{"copy of a strided view", false, func(w *world, a, _, _ *gobuffer.Array) error {
		v := w.slice(a, 0, 6, 2)
		defer v.Close()
		return closing(v.Copy(place{backends.HIP, 0}.options(gobuffer.Async), a.Type()))
	}},
	{"append", false, func(_ *world, a, b, _ *gobuffer.Array) error { return a.Append(b) }},
	{"append itself", false, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Append(a) }},
	{"resize", false, func(_ *world, a, _, v *gobuffer.Array) error { return a.Resize(9, v) }},
	{"reserve", false, func(_ *world, a, _, v *gobuffer.Array) error { return a.Reserve(9, v) }},
	{"move to host", false, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Move(backends.CPP, 0) }},
	{"move to cuda", false, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Move(backends.CUDA, 1) }},
	{"move to hip", false, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Move(backends.HIP, 1) }},
	{"text", false, func(_ *world, a, _, _ *gobuffer.Array) error { _, err := a.Text(0); return err }},
	{"access from the host", false,
		func(_ *world, a, _, _ *gobuffer.Array) error { return releasing(a.Access(backends.SpaceHost, -1)) }},
	{"access from cuda", false,
		func(_ *world, a, _, _ *gobuffer.Array) error { return releasing(a.Access(backends.SpaceCUDA, 1)) }},
	{"access from hip", false, func(_ *world, a, _, _ *gobuffer.Array) error {
		return releasing(a.Access(backends.SpaceHIP,
			0))
	}},
	{"synchronize", false, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Synchronize() }},
	{"assign more", false, func(_ *world, a, b, _ *gobuffer.Array) error { return a.Assign(b) }},
	{"assign fewer", true, func(_ *world, a, _, v *gobuffer.Array) error { return a.Assign(v) }},
	{"set", true, func(_ *world, a, b, _ *gobuffer.Array) error { return a.Set(1, b, 2, 4) }},
	{"set from itself", true, func(_ *world, a, _, _ *gobuffer.Array) error { return a.Set(1, a, 0, 4) }},
	{"fill", true, func(_ *world, a, _, v *gobuffer.Array) error { return a.Fill(v) }},
	{"write", true, func(_ *world, a, _, v *gobuffer.Array) error { return a.Write(v) }},
	{"write to a strided view", true, func(w *world, a, b, _ *gobuffer.Array) error {
		v, s := w.slice(a, 5, -1, -2), w.slice(b, 0, 3, 1)
		defer v.Close()
		defer s.Close()
		return v.Write(s)
	}},
}

func closing(a *gobuffer.Array, err error) error {
	if err != nil {
		return err
	}
	return a.Close()
}

func releasing(h *gobuffer.Handle, err error) error {
	if err != nil {
		return err
	}
	return h.Release()
}

var faultyCalls = []string{"Probe", "DeviceCount", "Resolve", "Allocate", "Copy", "Fill", "Synchronize",
	"NewEvent", "Record", "Wait", "DestroyEvent", "Execute"}

// subject is a world with the three buffers that an operation works on. Their
// sizes and the state of their memory are the same each time.
type subject struct {
	*world
	a, b, value *gobuffer.Array
}

var before = numbers(1, 2, 3, 4, 5, 6)

func newSubject(t *testing.T, p place, mode gobuffer.Transfer) *subject {
	w := newWorld(t, 2, backendtest.FakeOptions{Strict: true, Manual: true})
	w.mode = mode
	s := &subject{w, w.array(p.options(mode), before), nil, nil}
	other := place{backends.CUDAAsync, 1}
	s.b = w.array(other.options(gobuffer.Async), numbers(11, 12, 13, 14, 15, 16, 17))
	s.value = w.array(place{backends.HIPUnified, 0}.options(gobuffer.Async), numbers(9))
	return s
}

func TestEveryFailureLeavesTheBufferAsItWas(t *testing.T) {
	for _, p := range places(1) {
		for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.Sync} {
			for _, o := range operations {
				t.Run(fmt.Sprintf("%s %s %s", p, mode, o.name), func(t *testing.T) {
					for _, call := range faultyCalls {
						for n := 1; failsAt(t, p, mode, o, call, n); n++ {
							require.Less(t, n, 100, "%s never succeeds", call)
						}
					}
				})
			}
		}
	}
}

// failsAt reports whether there was an nth call to fail.
func failsAt(t *testing.T, p place, mode gobuffer.Transfer, o operation, call string, n int) bool {
	s := newSubject(t, p, mode)
	s.cuda.FailAt(call, n, errInjected)
	s.hip.FailAt(call, n, errInjected)
	calls := s.cuda.CallCount(call) + s.hip.CallCount(call)
	err := o.run(s.world, s.a, s.b, s.value)
	calls = s.cuda.CallCount(call) + s.hip.CallCount(call) - calls
	s.cuda.StopFailing()
	s.hip.StopFailing()
	where := fmt.Sprintf("%s call %d", call, n)
	if call == "DestroyEvent" && err != nil {
		s.lost++
	}
	if err != nil {
		assert.ErrorIs(t, err, error(errInjected), where)
		if !o.inPlace {
			s.assertHolds(s.a, before, where)
		}
		assert.Equal(t, p, place{s.a.Allocator(), s.a.Owner()}, where)
		assert.Equal(t, before.shape, s.a.Layout().Shape, where)
		assert.Equal(t, 6, s.a.Capacity(), where)
	}
	if o.inPlace && err != nil && call != "Synchronize" && call != "Execute" {
		s.assertHolds(s.a, before, where)
	}
	if err != nil {
		assert.NoError(t, o.run(s.world, s.a, s.b, s.value), "%s: once more", where)
	}
	_ = s.a.Close() // may bring a late error of work that nobody waited for
	_ = s.b.Close()
	_ = s.value.Close()
	return call == "Execute" && err != nil || call != "Execute" && calls >= n
}

func TestOutOfMemoryAtEveryAllocation(t *testing.T) {
	for _, p := range places(1) {
		for _, o := range operations {
			for n := 1; ; n++ {
				s := newSubject(t, p, gobuffer.SyncHost)
				oom := &backends.OutOfMemoryError{Allocator: p.allocator, Device: p.device, Size: 1}
				s.cuda.FailAt("Allocate", n, oom)
				s.hip.FailAt("Allocate", n, oom)
				calls := s.cuda.CallCount("Allocate") + s.hip.CallCount("Allocate")
				err := o.run(s.world, s.a, s.b, s.value)
				calls = s.cuda.CallCount("Allocate") + s.hip.CallCount("Allocate") - calls
				s.cuda.StopFailing()
				s.hip.StopFailing()
				if err != nil {
					var seen *backends.OutOfMemoryError
					require.ErrorAs(t, err, &seen)
					s.assertHolds(s.a, before, "%s on %s", o.name, p)
				}
				closeAll(t, s.a, s.b, s.value)
				// Some need not what they ask for.
				if calls < n {
					break
				}
			}
		}
	}
}

func TestARealLackOfMemoryIsReported(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{Memory: 4096, Strict: true, Manual: true})
	a := w.array(place{backends.CUDA, 0}.options(0), numbers(1, 2, 3))
	var oom *backends.OutOfMemoryError
	require.ErrorAs(t, a.Resize(2000, nil), &oom)
	require.ErrorAs(t, a.Reserve(2000, nil), &oom)
	w.assertHolds(a, numbers(1, 2, 3))
	require.NoError(t, a.Resize(500, nil))
	closeAll(t, a)
}

func TestAFailedFreeIsReportedByCloseAlone(t *testing.T) {
	w := newWorld(t, 1, late)
	var traced []string
	w.runtime.SetTrace(func(line string) { traced = append(traced, line) })
	a := w.array(place{backends.CUDA, 0}.options(0), before)
	lost := a.Memory()
	w.cuda.FailAt("Free", 1, errInjected)
	require.NoError(t, a.Resize(20, nil), "the resize itself went well")
	assert.Contains(t, traced[len(traced)-1], "FAKE_ERROR")
	require.NoError(t, w.cuda.Free(lost.Region(), lost.Size(), 0))

	lost = a.Memory()
	w.cuda.FailAt("Free", 1, errInjected)
	assert.ErrorIs(t, a.Close(), error(errInjected))
	w.assertNothingLive()
	require.NoError(t, w.cuda.Free(lost.Region(), lost.Size(), 0))
}

func TestMemoryThatIsNotTakenBackIsKept(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		w := newWorld(t, 1, late)
		o := place{allocator, 0}.options(gobuffer.Async)
		o.Stream = w.stream(w.cuda, 0)
		a := w.array(o, before)
		w.cuda.FailAt("Free", 0, &backends.NotFreedError{Reason: errInjected})
		assert.ErrorIs(t, a.Close(), error(errInjected))
		assert.Equal(t, 1, w.kept(), "it counts still")
		assert.ErrorIs(t, w.runtime.ReleasePostponed(), error(errInjected))
		assert.Equal(t, 1, w.kept())
		w.cuda.StopFailing()
		require.NoError(t, w.cuda.DestroyStream(0, o.Stream))
		require.NoError(t, w.runtime.ReleasePostponed())
		require.NoError(t, w.cuda.Synchronize(0, 0), "frees it")
		w.assertNothingLive()

		// What went wrong may be said with the first error.
		b := w.array(place{allocator, 0}.options(gobuffer.Async), before)
		w.cuda.FailAt("Free", 1, &backends.NotFreedError{Reason: errInjected})
		assert.ErrorIs(t, b.Close(), error(errInjected))
		w.assertNothingLive()
	}
}

func TestCreationGivesBackWhatItTook(t *testing.T) {
	for _, call := range []string{"Probe", "DeviceCount", "Resolve", "Allocate", "Fill", "Synchronize"} {
		w := newWorld(t, 1, late)
		value := w.scalar(arrayiface.Float32, 3)
		w.cuda.FailAt(call, 1, errInjected)
		_, err := w.runtime.NewFilledArray(arrayiface.Float32, []int{5},
			place{backends.CUDAUnified, 0}.options(gobuffer.Sync), valueOf(value))
		assert.ErrorIs(t, err, error(errInjected), call)
		closeAll(t, value)
	}
}

func valueOf(a *gobuffer.Array) gobuffer.Value {
	return gobuffer.Value{Type: a.Type(), Pointer: pointer(a.Address())}
}

func TestUnavailableBackendsSayWhy(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{Unavailable: "no such device"})
	for _, a := range []backends.Allocator{backends.CUDA, backends.HIP, backends.OpenMP} {
		_, err := w.runtime.NewArray(arrayiface.Int8, []int{3}, gobuffer.Options{Allocator: a})
		assert.True(t, errors.Is(err, backends.ErrUnavailable), "%s: %v", a, err)
	}
	host := w.array(place{backends.Malloc, -1}.options(0), before)
	_, err := host.Access(backends.SpaceCUDA, 0)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorIs(t, host.Move(backends.CUDA, 0), backends.ErrUnavailable)
	w.assertHolds(host, before)
	assert.Equal(t, backends.Malloc, w.runtime.HostAllocator())
	assert.Equal(t, backends.Malloc, w.runtime.DeviceAllocator())
	closeAll(t, host)
}
