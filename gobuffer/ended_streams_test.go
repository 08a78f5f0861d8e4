package gobuffer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// unkept is a device of whose streams nobody says when they end.
type unkept struct{ *backendtest.Fake }

func (unkept) KeepStream(int, backends.Stream) error { return nil }
func (unkept) DropStream(int, backends.Stream) error { return nil }
func (unkept) Kept(s backends.Stream) bool           { return s == 0 }

func (unkept) Collect(int, ...backends.Stream) (backends.Stream, error) {
	return 0, backends.ErrCapturing
}

// unkeptWorld is a world of such devices, whose releases leave the wait to somebody else.
func unkeptWorld(t *testing.T, devices int, o backendtest.FakeOptions) *world {
	t.Helper()
	w := newWorld(t, devices, o)
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), unkept{w.cuda}, w.hip)
	require.NoError(t, err)
	return w
}

// ofEnding is an Array on a stream that its caller ends, with work there that is not over.
func (w *world) ofEnding(allocator backends.Allocator) (a *gobuffer.Array, end func()) {
	w.t.Helper()
	o := place{allocator, 0}.options(gobuffer.Async)
	if allocator.Kind() == backends.Pinned {
		o.Device = backends.HostDevice
	}
	o.Stream = w.stream(w.cuda, 0)
	a = w.array(o, before)
	require.NoError(w.t, w.cuda.Synchronize(0, 0))
	w.kernel(w.cuda, 0, o.Stream, a, after)
	return a, func() { require.NoError(w.t, w.cuda.DestroyStream(0, o.Stream)) }
}

// The devices complain of a stream that is gone, and of memory that is freed under work.
func TestMemoryIsReleasedWithoutAStreamThatHasEnded(t *testing.T) {
	for name, o := range map[string]backendtest.FakeOptions{
		"freed at once":                    late,
		"freed by the driver, which waits": {Manual: true, Strict: true, FreeWaits: true},
		"handed out again":                 {Manual: true, Strict: true, Reuses: true},
	} {
		for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
			for _, checked := range []bool{false, true} {
				t.Run(name+", "+allocator.String()+map[bool]string{true: ", checked"}[checked], func(t *testing.T) {
					w := unkeptWorld(t, 1, o)
					if checked {
						c, err := w.runtime.Check(1<<20, nil)
						require.NoError(t, err)
						defer func() {
							found, more := c.Stop()
							assert.Empty(t, found)
							assert.Zero(t, more)
						}()
					}
					a, end := w.ofEnding(allocator)
					m := a.Memory()
					m.Retain()
					require.NoError(t, a.SetStream(0, gobuffer.Async))
					closeAll(t, a)
					end()
					require.NoError(t, m.Release())
					require.NoError(t, w.runtime.ReleasePostponed())
				})
			}
		}
	}
}

func TestTwoCallsMayNameAStreamThatIsNotAsked(t *testing.T) {
	w := newWorld(t, 1, late)
	a, end := w.ofEnding(backends.CUDA)
	s := a.Stream()
	require.NoError(t, a.SetStream(0, gobuffer.Async))
	first := w.runtime.Unasked(s)
	second := w.runtime.Unasked(s)
	end()
	second()
	require.NoError(t, a.Memory().Forget(s))
	first()
	closeAll(t, a)
}

// Work of another device is none that a wait for the memory's own speaks for.
func TestAReleaseThatWasPutOffTellsWhatAnotherDeviceMet(t *testing.T) {
	w := unkeptWorld(t, 2, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
	o := place{backends.CUDA, 1}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 1)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	b, err := a.Copy(o, before.kind)
	require.NoError(t, err)
	require.NoError(t, w.cuda.DestroyStream(1, o.Stream))
	require.NoError(t, a.Memory().Leave(backends.EveryStream))
	w.cuda.FailAt("SynchronizeEvent", 1, errInjected)
	err = a.Close()
	if err == nil {
		err = w.runtime.ReleasePostponed()
	}
	assert.ErrorIs(t, err, error(errInjected))
	w.cuda.StopFailing()
	closeAll(t, b)
	require.NoError(t, w.runtime.ReleasePostponed())
	assert.Zero(t, w.kept())
}

// Who has the old memory names no stream, and neither does the memory.
func TestAStreamEndsAfterItsArrayHasMovedAway(t *testing.T) {
	w := unkeptWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	view, err := a.Slice(0, 0, before.shape[0], 1)
	require.NoError(t, err)
	s := w.stream(w.cuda, 0)
	require.NoError(t, a.SetStream(s, gobuffer.Async))
	require.NoError(t, a.Move(backends.CUDAHost, backends.HostDevice))
	closeAll(t, a)
	require.NoError(t, w.cuda.DestroyStream(0, s))
	assert.Equal(t, before.data, w.read(view).data)
	closeAll(t, view)
	require.NoError(t, w.runtime.ReleasePostponed())
}

// Who made the memory has gone, and its stream with it: nobody else may ask that stream.
func TestAStreamEndsWithWhoNamedItWhileOthersUseTheMemory(t *testing.T) {
	uses := map[string]func(w *world, view *gobuffer.Array){
		"it is read": func(w *world, view *gobuffer.Array) { assert.Equal(w.t, after.data, w.read(view).data) },
		"code is handed it": func(w *world, view *gobuffer.Array) {
			h, err := view.Access(backends.SpaceCUDA, 0)
			require.NoError(w.t, err)
			require.NoError(w.t, h.Release())
		},
		"code on another device is": func(w *world, view *gobuffer.Array) {
			h, err := view.Access(backends.SpaceCUDA, 1)
			require.NoError(w.t, err)
			require.NoError(w.t, h.Release())
		},
		"it is copied": func(w *world, view *gobuffer.Array) {
			o := place{backends.CUDA, 0}.options(gobuffer.Async)
			o.Stream = w.stream(w.cuda, 0)
			b, err := view.Copy(o, before.kind)
			require.NoError(w.t, err)
			closeAll(w.t, b)
		},
		"a consumer's stream follows": func(w *world, view *gobuffer.Array) {
			require.NoError(w.t, view.Before(w.stream(w.cuda, 0)))
		},
		"its stream is asked for": func(w *world, view *gobuffer.Array) {
			_, _, err := view.Covering()
			require.NoError(w.t, err)
		},
		"somebody looks": func(w *world, view *gobuffer.Array) {
			_, err := view.Pending()
			require.NoError(w.t, err)
		},
		"it is filled": func(w *world, view *gobuffer.Array) {
			value := w.scalar(before.kind, 1)
			require.NoError(w.t, view.Fill(value))
			closeAll(w.t, value)
		},
		"it moves away": func(w *world, view *gobuffer.Array) {
			require.NoError(w.t, view.Move(backends.CUDAHost, backends.HostDevice))
		},
	}
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
		for _, named := range []bool{false, true} {
			for name, use := range uses {
				t.Run(fmt.Sprintf("%s, %s, named %v", name, allocator, named), func(t *testing.T) {
					w := unkeptWorld(t, 2, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
					a, end := w.ofEnding(allocator)
					view, err := a.Slice(0, 0, before.shape[0], 1)
					require.NoError(t, err)
					var other backends.Stream
					if named {
						other = w.stream(w.cuda, 0)
					}
					require.NoError(t, view.SetStream(other, gobuffer.Async))
					closeAll(t, a)
					end()
					use(w, view)
					closeAll(t, view)
					require.NoError(t, w.runtime.ReleasePostponed())
					assert.Zero(t, w.kept())
				})
			}
		}
	}
}

// A handle outlives the stream that it names, and the Array that has turned from it.
func TestAHandleIsReleasedAfterItsStreamHasEnded(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closed %v", allocator, closed), func(t *testing.T) {
				w := unkeptWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
				a, end := w.ofEnding(allocator)
				h, err := a.Access(backends.SpaceCUDA, 0)
				require.NoError(t, err)
				view, err := a.Slice(0, 0, before.shape[0], 1)
				require.NoError(t, err)
				require.NoError(t, view.SetStream(0, gobuffer.Async))
				if closed {
					closeAll(t, a)
				} else {
					require.NoError(t, a.SetStream(0, gobuffer.Async))
				}
				end()
				require.NoError(t, h.Release())
				assert.Equal(t, after.data, w.read(view).data)
				closeAll(t, view)
				if !closed {
					closeAll(t, a)
				}
				require.NoError(t, w.runtime.ReleasePostponed())
				assert.Zero(t, w.kept())
			})
		}
	}
}

// An Array that has turned from the stream that its memory was made for moves away, while others have the memory.
func TestAnArrayMovesAwayAfterItsMemorysStreamHasEnded(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAUnified} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared %v", allocator, shared), func(t *testing.T) {
				w := unkeptWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, Reuses: true})
				a, end := w.ofEnding(allocator)
				m := a.Memory()
				if shared {
					m.Retain()
				}
				require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
				end()
				require.NoError(t, a.Move(backends.Malloc, backends.HostDevice))
				assert.Equal(t, after.data, w.read(a).data)
				closeAll(t, a)
				if shared {
					require.NoError(t, m.Release())
				}
				require.NoError(t, w.runtime.ReleasePostponed())
				assert.Zero(t, w.kept())
			})
		}
	}
}
