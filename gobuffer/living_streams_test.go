package gobuffer_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// ending is a device of whose streams nobody says when they end, but for the default ones, as CUDA's. It counts
// how often it was waited for.
type ending struct {
	unkept
	mu       sync.Mutex
	defaults map[backends.Stream]bool
	captured map[backends.Stream]bool
	outside  map[backends.Event]bool // of what was enqueued while nothing was captured
	afterSD  func()
	atSD     func() error
	waits    int
	devices  []int // that were waited for
}

func (e *ending) Kept(s backends.Stream) bool { return s <= 1 || e.defaults[s] }
func (e *ending) Resolve(device int, s backends.Stream) (backends.Stream, error) {
	if s > 2 {
		return s, nil
	}
	return e.Fake.Resolve(device, s)
}
func (e *ending) Capturing(device int, s backends.Stream) (bool, error) { return e.captured[s], nil }
func (e *ending) Idle(device int, s backends.Stream) (bool, error) {
	if e.captured[s] {
		return false, backends.ErrCapturing
	}
	return e.Fake.Idle(device, s)
}
func (e *ending) Record(device int, event backends.Event, s backends.Stream) error {
	e.mu.Lock()
	e.outside[event] = !e.captured[s]
	e.mu.Unlock()
	return e.Fake.Record(device, event, s)
}
func (e *ending) Wait(device int, s backends.Stream, event backends.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.captured[s] && e.outside[event] {
		return backends.ErrCapturing // as the wait can be no part of the graph
	}
	return e.Fake.Wait(device, s, event)
}
func (e *ending) SynchronizeDevice(d int) error {
	e.mu.Lock()
	e.waits++
	e.devices = append(e.devices, d)
	at, f := e.atSD, e.afterSD
	e.mu.Unlock()
	if at != nil {
		if err := at(); err != nil {
			return err
		}
	}
	err := e.Fake.SynchronizeDevice(d)
	if f != nil {
		f()
	}
	return err
}

type endingDevices struct {
	*world
	e *ending
}

func endingWorld(t testing.TB, devices int, o backendtest.FakeOptions) *endingDevices {
	t.Helper()
	w := &endingDevices{world: newWorld(t, devices, o)}
	w.e = &ending{unkept: unkept{w.cuda}, defaults: map[backends.Stream]bool{}, captured: map[backends.Stream]bool{},
		outside: map[backends.Event]bool{}}
	require.NoError(t, w.cuda.Probe())
	for d := range devices {
		for _, s := range []backends.Stream{0, 2} {
			r, err := w.cuda.Resolve(d, s)
			require.NoError(t, err)
			w.e.defaults[r] = true
		}
	}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), w.e, w.hip)
	require.NoError(t, err)
	return w
}

var reusesBlocks = backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true}

func onStream(a backends.Allocator, s backends.Stream) gobuffer.Options {
	o := place{a, 0}.options(gobuffer.Async)
	if a.Kind() == backends.Pinned {
		o.Device = backends.HostDevice
	}
	o.Stream = s
	return o
}

// The Array names another stream than the one that is captured.
func TestKernelsAreCapturedOneAfterAnother(t *testing.T) {
	w := endingWorld(t, 1, reusesBlocks)
	m, err := w.runtime.NewModule("cuda", backendtest.Kernels)
	require.NoError(t, err)
	k := kernels{world: w.world, module: m} // whose module stays, as it was captured
	k.fill, err = m.Kernel(0, "conformance_fill")
	require.NoError(t, err)
	s := w.stream(w.cuda, 0)
	a := w.bytes(backends.CUDA, 0, 0)
	require.NoError(t, a.Synchronize())
	w.e.captured[s] = true
	require.NoError(t, k.filled(a, 1, s))
	require.NoError(t, k.filled(a, 2, s))
	delete(w.e.captured, s)
	closeAll(t, a)
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestTheDeviceIsNotWaitedForWhereAllNameTheirStreams(t *testing.T) {
	type step func(w *endingDevices, a, b *gobuffer.Array)
	cases := map[string]step{
		"copy": func(w *endingDevices, a, b *gobuffer.Array) { require.NoError(w.t, b.Write(a)) },
		"slices, copy": func(w *endingDevices, a, b *gobuffer.Array) {
			v, err := a.Slice(0, 0, 2, 1)
			require.NoError(w.t, err)
			u, err := b.Slice(0, 0, 2, 1)
			require.NoError(w.t, err)
			require.NoError(w.t, u.Write(v))
			closeAll(w.t, v, u)
		},
		"many": func(w *endingDevices, a, b *gobuffer.Array) {
			v, err := a.Slice(0, 0, 1, 1)
			require.NoError(w.t, err)
			u, err := b.Slice(0, 0, 1, 1)
			require.NoError(w.t, err)
			v2, err := a.Slice(0, 1, 2, 1)
			require.NoError(w.t, err)
			u2, err := b.Slice(0, 1, 2, 1)
			require.NoError(w.t, err)
			require.NoError(w.t, gobuffer.CopyMany([]*gobuffer.Array{u, u2}, []*gobuffer.Array{v, v2}))
			closeAll(w.t, v, u, u2, v2)
		},
		"fill": func(w *endingDevices, a, b *gobuffer.Array) { w.setSeven(a); w.setSeven(b) },
		"handle": func(w *endingDevices, a, b *gobuffer.Array) {
			for _, x := range []*gobuffer.Array{a, b} {
				h, err := x.Access(backends.SpaceCUDA, 0)
				require.NoError(w.t, err)
				require.NoError(w.t, h.Release())
			}
		},
		"host handle": func(w *endingDevices, a, b *gobuffer.Array) {
			w.setSeven(a)
			w.setSeven(b)
			for _, x := range []*gobuffer.Array{a, b} {
				h, err := x.Access(backends.SpaceHost, -1)
				require.NoError(w.t, err)
				require.NoError(w.t, h.Release())
			}
		},
		"synchronize": func(w *endingDevices, a, b *gobuffer.Array) {
			w.setSeven(a)
			w.setSeven(b)
			require.NoError(w.t, a.Synchronize())
			require.NoError(w.t, b.Synchronize())
		},
		"covering": func(w *endingDevices, a, b *gobuffer.Array) {
			for _, x := range []*gobuffer.Array{a, b} {
				w.setSeven(x)
				_, _, err := x.Covering()
				require.NoError(w.t, err)
			}
		},
		"slices, covering": func(w *endingDevices, a, b *gobuffer.Array) {
			for _, x := range []*gobuffer.Array{a, b} {
				w.setSeven(x)
				v, err := x.Slice(0, 0, 2, 1)
				require.NoError(w.t, err)
				closeAll(w.t, v)
				_, _, err = x.Covering()
				require.NoError(w.t, err)
			}
		},
	}
	for _, pair := range [][2]backends.Allocator{{backends.CUDA, backends.CUDA}, {backends.CUDA, backends.CUDAHost},
		{backends.CUDAHost, backends.CUDA}, {backends.CUDAHost, backends.CUDAHost}, {backends.CUDAAsync,
			backends.CUDA}, {backends.CUDAUnified, backends.CUDA}, {backends.Malloc, backends.CUDA},
		{backends.CUDA, backends.Malloc}} {
		for name, do := range cases {
			for _, two := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s-%s, %s, two streams %v", pair[0], pair[1], name, two), func(t *testing.T) {
					w := endingWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
					s := w.stream(w.cuda, 0)
					s2 := s
					if two {
						s2 = w.stream(w.cuda, 0)
					}
					a := w.array(onStream(pair[0], s), counting(arrayiface.Int32, 2, 3))
					b := w.array(onStream(pair[1], s2), counting(arrayiface.Int32, 2, 3))
					require.NoError(t, b.Write(a))
					was := w.e.waits
					for range 10 {
						do(w, a, b)
					}
					assert.Zero(t, w.e.waits-was, "device waits in 10 turns")
					closeAll(t, a, b)
					require.NoError(t, w.runtime.ReleasePostponed())
				})
			}
		}
	}
}

// A device refuses to be waited for while a stream is captured.
func TestACopyOnOneStreamNeedsNoWaitForTheDevice(t *testing.T) {
	w := endingWorld(t, 1, reusesBlocks)
	s := w.stream(w.cuda, 0)
	a := w.array(onStream(backends.CUDAHost, s), counting(arrayiface.Int32, 2, 3))
	b := w.array(onStream(backends.CUDA, s), counting(arrayiface.Int32, 2, 3))
	w.e.atSD = func() error { return errors.New("a capture is under way elsewhere") }
	v, err := a.Slice(0, 0, 2, 1)
	require.NoError(t, err)
	closeAll(t, v)
	assert.NoError(t, b.Write(a), "copy on one stream that everybody names")
	w.e.atSD = nil
	closeAll(t, a, b)
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestLaunchesOnTheStreamThatAnArrayHasTurnedFrom(t *testing.T) {
	w := endingWorld(t, 1, reusesBlocks)
	k := w.kernels(0)
	s := w.stream(w.cuda, 0)
	a, err := w.runtime.NewArray(arrayiface.Uint8, []int{bytesLaunched}, onStream(backends.CUDA, s))
	require.NoError(t, err)
	require.NoError(t, a.SetStream(0, gobuffer.Async))
	was := w.e.waits
	for range 10 {
		require.NoError(t, k.filled(a, 1, s))
	}
	assert.Zero(t, w.e.waits-was, "device waits in 10 launches on one stream")
	closeAll(t, a)
	require.NoError(t, w.runtime.ForgetStream(s))
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestCopiesOnTheStreamThatAnArrayHasTurnedFrom(t *testing.T) {
	w := endingWorld(t, 1, reusesBlocks)
	s, other := w.stream(w.cuda, 0), w.stream(w.cuda, 0)
	a := w.array(onStream(backends.CUDA, s), counting(arrayiface.Int32, 2, 3))
	b := w.array(onStream(backends.CUDA, s), counting(arrayiface.Int32, 2, 3))
	require.NoError(t, a.SetStream(other, gobuffer.Async))
	was := w.e.waits
	for range 10 {
		require.NoError(t, b.Write(a))
	}
	assert.Zero(t, w.e.waits-was, "device waits in 10 copies")
	closeAll(t, a, b)
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestADeviceThatNobodyHasUsedIsNotWaitedFor(t *testing.T) {
	w := endingWorld(t, 2, reusesBlocks)
	s := w.stream(w.cuda, 0)
	a := w.array(onStream(backends.CUDAHost, s), counting(arrayiface.Int32, 2, 3))
	v, err := a.Slice(0, 0, 1, 1)
	require.NoError(t, err)
	w.setSeven(a)
	closeAll(t, v)
	b := w.array(onStream(backends.CUDA, s), counting(arrayiface.Int32, 2, 3))
	w.e.devices = nil
	require.NoError(t, b.Write(a))
	assert.NotContains(t, w.e.devices, 1, "a device that nobody has used")
	closeAll(t, a, b)
	require.NoError(t, w.runtime.ReleasePostponed())
}

func TestCoveringDoesNotWaitAfterASliceHasGone(t *testing.T) {
	for _, al := range []backends.Allocator{backends.CUDA, backends.CUDAHost} {
		t.Run(al.String(), func(t *testing.T) {
			w := endingWorld(t, 1, reusesBlocks)
			s := w.stream(w.cuda, 0)
			a := w.array(onStream(al, s), counting(arrayiface.Int32, 2, 3))
			w.setSeven(a)
			u, err := a.Slice(0, 0, 1, 1)
			require.NoError(t, err)
			closeAll(t, u)
			asked := make(chan bool)
			over := make(chan bool)
			w.e.atSD = func() error { <-over; return nil } // the device is busy for long
			go func() {
				_, _, err := a.Covering()
				assert.NoError(t, err)
				close(asked)
			}()
			select {
			case <-asked:
			case <-time.After(time.Second):
				t.Error("Covering, which await and a wait with a limit poll, waits for the device")
			}
			close(over)
			<-asked
			w.e.mu.Lock()
			w.e.atSD = nil
			w.e.mu.Unlock()
			closeAll(t, a)
			require.NoError(t, w.runtime.ReleasePostponed())
		})
	}
}

func TestPendingEndsForAViewThatNamesNoStream(t *testing.T) {
	for _, al := range []backends.Allocator{backends.CUDA, backends.CUDAHost} {
		t.Run(al.String(), func(t *testing.T) {
			w := endingWorld(t, 1, reusesBlocks)
			s := w.stream(w.cuda, 0)
			a := w.array(onStream(al, s), counting(arrayiface.Int32, 2, 3))
			v, err := a.Slice(0, 0, 1, 1)
			require.NoError(t, err)
			require.NoError(t, v.SetStream(0, gobuffer.Async))
			w.setSeven(a)
			w.cuda.Finish()
			ends := time.Now().Add(time.Second)
			busy := true
			for busy && time.Now().Before(ends) {
				busy, err = v.Pending()
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
			}
			assert.False(t, busy, "Pending of idle elements stays true")
			closeAll(t, v, a)
			require.NoError(t, w.runtime.ReleasePostponed())
		})
	}
}
