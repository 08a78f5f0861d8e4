package gobuffer_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

var onDevices = []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified}

// seenBy is what a kernel on a stream reads of a handle's elements.
func (w *world) seenBy(h *gobuffer.Handle, device int, s backends.Stream) (seen []byte) {
	w.t.Helper()
	at, size := h.Address(), h.Layout().NBytes()
	require.NoError(w.t, w.cuda.Launch(device, s, func(memory func(backends.Address, int) []byte) {
		seen = bytes.Clone(memory(at, size))
	}))
	require.NoError(w.t, w.cuda.Synchronize(device, s))
	return seen
}

func TestSettingAStreamKeepsWhatTheOldOneHolds(t *testing.T) {
	for _, allocator := range append(onDevices, backends.CUDAHost) {
		for _, first := range []string{"a stream", "the default stream"} {
			if first == "the default stream" && allocator == backends.CUDAHost {
				continue // which is no stream of page-locked memory
			}
			w := newWorld(t, 1, late)
			a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
			if first == "a stream" {
				require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			}
			old := a.Stream()
			w.busy(0, old)
			w.kernel(w.cuda, 0, old, a, after)
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			if old != 0 {
				require.NoError(t, w.cuda.DestroyStream(0, old), "nobody needs it")
			}
			w.assertHolds(a, after, "%s, %s", allocator, first)
			closeAll(t, a)
		}
	}
}

func TestClosingAViewKeepsWhatItsStreamHolds(t *testing.T) {
	for _, allocator := range onDevices {
		w := newWorld(t, 1, late)
		a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
		v := w.slice(a, 0, 6, 1)
		require.NoError(t, v.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		w.busy(0, v.Stream())
		w.kernel(w.cuda, 0, v.Stream(), v, after)
		closeAll(t, v)
		w.assertHolds(a, after, "%s", allocator)
		closeAll(t, a)
	}
}

func TestClosingAReferenceOrdersNoStreams(t *testing.T) {
	for _, allocator := range onDevices {
		w := newWorld(t, 1, late)
		a := w.onStream(allocator)
		v := w.slice(a, 0, 6, 1)
		require.NoError(t, v.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		w.busy(0, v.Stream())
		calls := len(w.cuda.Calls())
		closeAll(t, v)
		for _, call := range w.cuda.Calls()[calls:] {
			assert.NotRegexp(t, "Event|Record|Wait|Synchronize", call, "%s", allocator)
		}
		closeAll(t, a)
	}
}

// What uses the elements after Access uses Handle.Stream alone.
func TestAHandlesStreamRunsAfterWhatIsPending(t *testing.T) {
	for _, allocator := range onDevices {
		for name, write := range map[string]func(w *world, a *gobuffer.Array){
			"an assignment on the stream before": func(w *world, a *gobuffer.Array) {
				w.busy(0, a.Stream())
				w.assign(a)
				require.NoError(w.t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			},
			"an assignment from memory on another stream": func(w *world, a *gobuffer.Array) {
				b := w.onStream(backends.CUDA)
				w.busy(0, b.Stream())
				w.kernel(w.cuda, 0, b.Stream(), b, after)
				require.NoError(w.t, a.Assign(b))
				w.t.Cleanup(func() { closeAll(w.t, b) })
			},
		} {
			for device := range 2 {
				t.Run(fmt.Sprintf("%s, %s, device %d", allocator, name, device), func(t *testing.T) {
					w := newWorld(t, 2, late)
					a := w.onStream(allocator)
					write(w, a)
					h, err := a.Access(backends.SpaceCUDA, device)
					require.NoError(t, err)
					assert.Equal(t, after.data, w.seenBy(h, device, h.Stream()))
					require.NoError(t, h.Release())
					closeAll(t, a)
				})
			}
		}
	}
}

func TestAHandlesStreamWritesAfterOthersHaveRead(t *testing.T) {
	for _, allocator := range onDevices {
		w := newWorld(t, 1, late)
		a, b := w.onStream(allocator), w.onStream(backends.CUDA)
		w.busy(0, b.Stream())
		require.NoError(t, b.Assign(a))
		h, err := a.Access(backends.SpaceCUDA, 0)
		require.NoError(t, err)
		w.kernel(w.cuda, 0, h.Stream(), a, after)
		require.NoError(t, w.cuda.Synchronize(0, h.Stream()))
		w.assertHolds(b, before, "%s was overwritten before it was read", allocator)
		require.NoError(t, h.Release())
		closeAll(t, a, b)
	}
}

// Managed memory that was made on one device is used on the default stream of the other.
func TestManagedMemoryIsFollowedToAnotherDevice(t *testing.T) {
	w := newWorld(t, 2, late)
	a := w.onStream(backends.CUDAUnified)
	w.busy(0, a.Stream())
	w.kernel(w.cuda, 0, a.Stream(), a, after)
	h, err := a.Access(backends.SpaceCUDA, 1)
	require.NoError(t, err)
	assert.False(t, h.Temporary())
	assert.Equal(t, after.data, w.seenBy(h, 1, h.Stream()))
	w.kernel(w.cuda, 1, h.Stream(), a, before)
	require.NoError(t, h.Release())
	w.assertHolds(a, before, "what the other device did is waited for")
	closeAll(t, a)
}

func TestReleasingAHandleWaitsForItsStream(t *testing.T) {
	for _, waits := range []bool{false, true} {
		for _, allocator := range onDevices {
			w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, FreeWaits: waits})
			a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			h, err := a.Access(backends.SpaceCUDA, 0)
			require.NoError(t, err)
			closeAll(t, a)
			w.busy(0, h.Stream())
			seen := false
			at := h.Address()
			require.NoError(t, w.cuda.Launch(0, h.Stream(), func(memory func(backends.Address, int) []byte) {
				seen = bytes.Equal(memory(at, len(before.data)), before.data)
			}))
			require.NoError(t, h.Release())
			w.cuda.Finish()
			assert.True(t, seen, "%s: the memory was freed under the kernel", allocator)
		}
	}
}

// The array has gone to another stream since, and knows nothing of the handle's.
func TestReleasingAHandleWaitsForAStreamThatItsArrayLeft(t *testing.T) {
	for _, waits := range []bool{false, true} {
		for _, allocator := range onDevices {
			w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, FreeWaits: waits})
			a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			h, err := a.Access(backends.SpaceCUDA, 0)
			require.NoError(t, err)
			require.NoError(t, a.Synchronize())
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			w.busy(0, h.Stream())
			w.kernel(w.cuda, 0, h.Stream(), a, after)
			require.NoError(t, h.Release())
			w.assertHolds(a, after, "%s", allocator)
			closeAll(t, a)
		}
	}
}

// In place and in a temporary that is kept: the array names another stream by then, and hamr has
// looked at this one for the last time.
func TestAHandleThatEndsAfterItsArrayTurnedFromTheStreamDoesWithoutIt(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost} {
		w := newWorld(t, 1, late)
		a := cached(w.array(place{allocator, 0}.options(gobuffer.Async), before))
		require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		first, h := w.ask(a, device0), w.ask(a, device0)
		assert.Equal(t, allocator == backends.CUDAHost, h.Kept())
		s, seen := h.Stream(), false
		calls := len(w.cuda.Calls())
		require.NoError(t, first.Release())
		for _, call := range w.cuda.Calls()[calls:] {
			assert.NotRegexp(t, "Idle|Event|Record|Wait|Synchronize", call, "%s: the array still names it", allocator)
		}
		require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		w.busy(0, s)
		require.NoError(t, w.cuda.Launch(0, s, func(memory func(backends.Address, int) []byte) {
			seen = bytes.Equal(memory(h.Address(), len(before.data)), before.data)
		}))
		require.NoError(t, h.Release())
		require.NoError(t, w.cuda.DestroyStream(0, s), "nobody names it")
		closeAll(t, a)
		w.cuda.Finish()
		assert.True(t, seen, "%s", allocator)
	}
}

// Memory that no Array of Go's has, as Python's: the stream that it was taken for is known.
func TestMemoryIsFreedAfterTheStreamThatItWasTakenFor(t *testing.T) {
	for _, allocator := range onDevices {
		w := newWorld(t, 1, late)
		s := w.stream(w.cuda, 0)
		m, err := w.runtime.Allocate(allocator, 0, 64, s, false)
		require.NoError(t, err)
		seen, at := false, m.Region().Address
		require.NoError(t, w.cuda.Launch(0, s, func(memory func(backends.Address, int) []byte) {
			seen = len(memory(at, 64)) == 64
		}))
		require.NoError(t, m.Release())
		w.cuda.Finish()
		assert.True(t, seen)
	}
}

// Where two streams cannot be ordered, the release waits.
func TestAFailureToOrderFreesNothingUnderAKernel(t *testing.T) {
	for _, call := range []string{"Resolve", "NewEvent", "Record", "Wait", "StreamDevice", "Idle"} {
		for _, allocator := range onDevices {
			for _, end := range []string{"close", "free", "resize", "set the stream"} {
				for _, nth := range []int{0, 1, 2, 3} {
					w := newWorld(t, 1, late)
					a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
					require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
					w.busy(0, a.Stream())
					w.kernel(w.cuda, 0, a.Stream(), a, after)
					w.cuda.FailAt(call, nth, errInjected)
					switch end {
					case "close":
						_ = a.Close()
					case "free":
						_ = a.Free()
					case "resize":
						_ = a.Resize(50, nil)
					case "set the stream":
						_ = a.SetStream(0, gobuffer.Async)
					}
					_ = a.Close()
					w.cuda.StopFailing()
					require.NoError(t, w.runtime.ReleasePostponed())
					w.cuda.Finish()
					assert.Empty(t, w.cuda.Violations(), "%s %d, %s, %s", call, nth, allocator, end)
				}
			}
		}
	}
}

func TestAWaitThatFailsLosesNothing(t *testing.T) {
	for name, fail := range map[string]func(a *gobuffer.Array, producer backends.Stream) error{
		"a producer's work": func(a *gobuffer.Array, producer backends.Stream) error {
			return a.Memory().After(a.Stream(), producer)
		},
		"waiting": func(a *gobuffer.Array, _ backends.Stream) error { return a.Synchronize() },
	} {
		w := newWorld(t, 1, late)
		a, v := w.onStream(backends.CUDA), w.onStream(backends.CUDA)
		w.busy(0, v.Stream())
		require.NoError(t, v.Assign(a)) // reads a on v's stream
		w.cuda.FailAt("Synchronize", 0, errInjected)
		_ = fail(a, w.stream(w.cuda, 0))
		w.cuda.StopFailing()
		closeAll(t, a)
		w.assertHolds(v, before, name)
		closeAll(t, v)
	}
}

// Three streams read the same memory: none waits for another, and a writer for all.
func TestReadersOnSeveralStreamsAreAllRemembered(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.onStream(backends.CUDA)
	var readers []*gobuffer.Array
	waited := w.cuda.CallCount("Synchronize")
	for range 3 {
		b := w.onStream(backends.CUDAAsync)
		w.busy(0, b.Stream())
		require.NoError(t, b.Assign(a))
		readers = append(readers, b)
	}
	w.setSeven(a)
	assert.Equal(t, waited, w.cuda.CallCount("Synchronize"))
	require.NoError(t, w.cuda.Synchronize(0, a.Stream()))
	for _, b := range readers {
		w.assertHolds(b, before)
	}
	closeAll(t, append(readers, a)...)
}

func TestAProducersWorkDoesNotHideWhatHamrReads(t *testing.T) {
	w := newWorld(t, 1, late)
	told := false
	source := w.onStream(backends.CUDA)
	s := source.Stream()
	m, err := w.runtime.Adopt(source.Memory().Region(), source.Memory().Size(), s, func() { told = true })
	require.NoError(t, err)
	o := source.Options()
	a := gobuffer.View(m, source.Address(), source.Layout(), 6, false, o)
	b := w.array(o, numbers(0, 0, 0, 0, 0, 0))
	w.busy(0, s)
	require.NoError(t, b.Assign(a)) // reads a
	require.NoError(t, m.After(s, s))
	closeAll(t, a)
	assert.True(t, told)
	w.poke(source.Memory(), after.data) // its owner may now do so
	w.assertHolds(b, before)
	closeAll(t, b, source)
}

func TestWorkOnTheDefaultStreamIsCovered(t *testing.T) {
	for _, allocator := range onDevices {
		w := newWorld(t, 1, late)
		a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
		w.busy(0, 0)
		w.kernel(w.cuda, 0, 0, a, after)
		covering, busy, err := a.Covering()
		require.NoError(t, err)
		assert.True(t, busy)
		own, err := w.cuda.Resolve(0, 0)
		require.NoError(t, err)
		assert.Equal(t, own, covering)
		consumer := w.stream(w.cuda, 0)
		require.NoError(t, a.Before(consumer))
		assert.Equal(t, after.data, w.consumed(a, 0, consumer), "%s", allocator)
		require.NoError(t, a.Synchronize())
		_, busy, err = a.Covering()
		require.NoError(t, err)
		assert.False(t, busy)
		closeAll(t, a)
	}
}

// A default stream that cannot be asked now has nothing that others could be ordered with.
func TestACaptureIsNotDisturbed(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	w.cuda.FailAt("Idle", 0, backends.ErrCapturing)
	_, busy, err := a.Covering()
	require.NoError(t, err)
	assert.False(t, busy)
	require.NoError(t, a.Before(w.stream(w.cuda, 0)))
	w.cuda.StopFailing()
	closeAll(t, a)
}

// Where it cannot be told which stream of which device it was used on, all are waited for.
func TestPageLockedMemoryIsFreedAfterEveryDevice(t *testing.T) {
	for _, waits := range []bool{false, true} {
		w := newWorld(t, 2, backendtest.FakeOptions{Manual: true, Strict: true, FreeWaits: waits})
		a := w.array(place{backends.CUDAHost, backends.HostDevice}.options(gobuffer.Async), before)
		require.NoError(t, a.SetStream(w.stream(w.cuda, 1), gobuffer.Async))
		w.busy(1, a.Stream())
		w.kernel(w.cuda, 1, a.Stream(), a, after)
		w.cuda.FailAt("Resolve", 0, errInjected)
		_ = a.Close()
		w.cuda.StopFailing()
		w.cuda.Finish()
		assert.Empty(t, w.cuda.Violations())
	}
}
