package gobuffer_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

const (
	legacy    backends.Stream = 1
	perThread backends.Stream = 2
)

// busy keeps a stream from having nothing to do however often it is asked.
func (w *world) busy(device int, s backends.Stream) {
	w.t.Helper()
	for range 20 {
		require.NoError(w.t, w.cuda.Launch(device, s, func(func(backends.Address, int) []byte) {}))
	}
}

// consumed is what a kernel on a consumer's stream reads from a.
func (w *world) consumed(a *gobuffer.Array, device int, s backends.Stream) (seen []byte) {
	w.t.Helper()
	at, size := a.Address(), a.Size()*a.Type().Size()
	require.NoError(w.t, w.cuda.Launch(device, s, func(memory func(backends.Address, int) []byte) {
		seen = bytes.Clone(memory(at, size))
	}))
	require.NoError(w.t, w.cuda.Synchronize(device, s))
	return seen
}

// writers leave a's elements being set to after, each on another stream.
var writers = map[string]func(w *world, a *gobuffer.Array){
	"a foreign kernel on the buffer's stream": func(w *world, a *gobuffer.Array) {
		s := w.stream(w.cuda, 0)
		require.NoError(w.t, a.SetStream(s, gobuffer.Async))
		w.busy(0, s)
		w.kernel(w.cuda, 0, s, a, after)
	},
	"a movement on the buffer's stream": func(w *world, a *gobuffer.Array) {
		require.NoError(w.t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		w.busy(0, a.Stream())
		w.assign(a)
	},
	"a movement on the default stream": func(w *world, a *gobuffer.Array) {
		w.busy(0, 0)
		w.assign(a)
	},
	"a movement on the stream before": func(w *world, a *gobuffer.Array) {
		require.NoError(w.t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
		w.busy(0, a.Stream())
		w.assign(a)
		require.NoError(w.t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
	},
	"a producer's kernel": func(w *world, a *gobuffer.Array) {
		s := w.stream(w.cuda, 0)
		w.busy(0, s)
		w.kernel(w.cuda, 0, s, a, after)
		require.NoError(w.t, a.Memory().After(a.Stream(), s))
	},
	"a producer's kernel on its thread's stream": func(w *world, a *gobuffer.Array) {
		w.busy(0, perThread)
		w.kernel(w.cuda, 0, perThread, a, after)
		require.NoError(w.t, a.Memory().After(a.Stream(), perThread))
	},
	"a movement on the thread's stream": func(w *world, a *gobuffer.Array) {
		require.NoError(w.t, a.SetStream(perThread, gobuffer.Async))
		w.busy(0, a.Stream())
		w.assign(a)
	},
}

// assign leaves the source open, as to close it may wait.
func (w *world) assign(a *gobuffer.Array) {
	w.t.Helper()
	source := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after)
	require.NoError(w.t, a.Assign(source))
	w.t.Cleanup(func() { closeAll(w.t, source) })
}

var shareable = []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified, backends.CUDAHost}

func TestAConsumersStreamRunsAfterWhatIsPending(t *testing.T) {
	for _, allocator := range shareable {
		for name, write := range writers {
			for _, consumer := range []backends.Stream{0, legacy, perThread, backends.EveryStream} {
				t.Run(fmt.Sprintf("%s, %s, stream %d", allocator, name, int(consumer)), func(t *testing.T) {
					w := newWorld(t, 1, late)
					if consumer == backends.EveryStream {
						consumer = w.stream(w.cuda, 0)
					}
					a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
					write(w, a)
					waited := w.cuda.CallCount("Synchronize")
					require.NoError(t, a.Before(consumer))
					assert.Equal(t, waited, w.cuda.CallCount("Synchronize"), "it blocked")
					assert.Equal(t, after.data, w.consumed(a, 0, consumer))
					closeAll(t, a)
				})
			}
		}
	}
}

func TestAConsumersStreamRunsAfterAnotherDevicesWork(t *testing.T) {
	for _, allocator := range shareable {
		w := newWorld(t, 2, late)
		a := w.array(place{allocator, 0}.options(gobuffer.Async), before)
		b := w.array(place{backends.CUDA, 1}.options(gobuffer.Async), after)
		w.busy(1, 0)
		require.NoError(t, b.Assign(a))
		consumer := w.stream(w.cuda, 0)
		require.NoError(t, a.Before(consumer))
		w.kernel(w.cuda, 0, consumer, a, numbers(9, 9, 9, 9, 9, 9))
		require.NoError(t, w.cuda.Synchronize(0, consumer))
		w.assertHolds(b, before, "%s was overwritten before the other device had read it", allocator)
		closeAll(t, a, b)
	}
}

func TestTheSameStreamNeedsNoEvent(t *testing.T) {
	w := newWorld(t, 1, late)
	own := w.stream(w.cuda, 0)
	for stream, consumers := range map[backends.Stream][]backends.Stream{
		0: {0, legacy}, legacy: {0, legacy}, own: {own},
	} {
		a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
		require.NoError(t, a.SetStream(stream, gobuffer.Async))
		w.busy(0, stream)
		w.assign(a)
		for _, consumer := range consumers {
			events := w.cuda.CallCount("NewEvent")
			require.NoError(t, a.Before(consumer))
			assert.Equal(t, events, w.cuda.CallCount("NewEvent"), "%d before %d", int(stream), int(consumer))
		}
		assert.Equal(t, after.data, w.consumed(a, 0, stream))
		closeAll(t, a)
	}
}

func TestIdleMemoryAndHostMemoryMakeNobodyWait(t *testing.T) {
	w := newWorld(t, 1, late)
	consumer := w.stream(w.cuda, 0)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	host := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	empty := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), numbers())
	require.NoError(t, empty.Free())
	for _, x := range []*gobuffer.Array{a, host, empty} {
		require.NoError(t, x.Before(consumer))
	}
	assert.Zero(t, w.cuda.CallCount("NewEvent"))
	closeAll(t, a, host, empty)
	assert.ErrorIs(t, a.Before(consumer), gobuffer.ErrFreed)

	synchronous := backendtest.NewFake(backendtest.FakeOptions{Synchronous: true})
	r, err := gobuffer.NewRuntime(synchronous.WithoutStreams())
	require.NoError(t, err)
	a, err = r.NewArray(arrayiface.Int32, []int{6}, place{backends.CUDA, 0}.options(gobuffer.Async))
	require.NoError(t, err)
	require.NoError(t, a.Before(5))
	closeAll(t, a)
	synchronous.AssertClean(t)
}

// What fails is an error, and a second attempt finds all that was pending.
func TestAFailureToOrderAConsumerLosesNothing(t *testing.T) {
	for _, call := range []string{"Idle", "Done", "Resolve", "NewEvent", "Record", "Wait", "DestroyEvent"} {
		struck := 0
		for name, write := range writers {
			for nth := 1; ; nth++ {
				w := newWorld(t, 1, late)
				a := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before)
				write(w, a)
				consumer := w.stream(w.cuda, 0)
				w.cuda.FailAt(call, nth, errInjected)
				calls := w.cuda.CallCount(call)
				err := a.Before(consumer)
				made := w.cuda.CallCount(call) - calls
				w.cuda.StopFailing()
				where := fmt.Sprintf("%s, %s %d", name, call, nth)
				if made >= nth {
					struck++
					assert.ErrorIs(t, err, error(errInjected), where)
					if call == "DestroyEvent" {
						w.lost++
					}
				}
				require.NoError(t, a.Before(consumer), where)
				assert.Equal(t, after.data, w.consumed(a, 0, consumer), where)
				closeAll(t, a)
				if made < nth {
					break
				}
			}
		}
		assert.NotZero(t, struck, "%s is never called", call)
	}
}
