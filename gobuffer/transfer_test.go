package gobuffer_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// TestModesSayWhichMovementsAreWaitedFor looks at memory behind the core's back.
func TestModesSayWhichMovementsAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		from, to place
		over     [3]bool // when the call returns, by mode
	}{
		{place{backends.CUDA, 0}, place{backends.Malloc, -1}, [3]bool{true, true, true}},
		{place{backends.CUDA, 1}, place{backends.CUDAHost, -1}, [3]bool{false, true, true}},
		{place{backends.CUDAAsync, 0}, place{backends.CUDAUnified, 0}, [3]bool{false, true, true}},
		{place{backends.Malloc, -1}, place{backends.CUDA, 0}, [3]bool{false, false, true}},
		{place{backends.CUDAHost, -1}, place{backends.CUDAAsync, 1}, [3]bool{false, false, true}},
		{place{backends.CUDA, 0}, place{backends.CUDA, 1}, [3]bool{false, false, true}},
		{place{backends.HIP, 0}, place{backends.CUDA, 1}, [3]bool{true, true, true}}, // by way of the host
		{place{backends.Malloc, -1}, place{backends.CUDAUnified, 0}, [3]bool{true, true, true}},
	} {
		for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
			w := newWorld(t, 2, late)
			a, b := w.array(c.from.options(gobuffer.Async), after), w.array(c.to.options(mode), before)
			require.NoError(t, b.Assign(a))
			over := bytes.Equal(after.data, w.peek(b.Memory()))
			assert.Equal(t, c.over[mode], over, "%s to %s, %s", c.from, c.to, mode)
			w.assertHolds(b, after)
			closeAll(t, a, b)
		}
	}
}

func TestWhatWasWaitedForIsNotWaitedForAgain(t *testing.T) {
	// Whose frees do not wait is waited for once more, for other libraries' work.
	w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, FreeWaits: true})
	host, device := w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), before),
		w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), after)
	v := w.scalar(arrayiface.Int32, 3)
	for name, f := range map[string]func() error{
		"to the device": func() error { return device.Assign(host) },
		"to the host":   func() error { return host.Assign(device) },
		"fill":          func() error { return device.Fill(v) },
	} {
		waits := w.cuda.CallCount("Synchronize")
		require.NoError(t, f())
		assert.Equal(t, 1, w.cuda.CallCount("Synchronize")-waits, name)
		for _, a := range []*gobuffer.Array{host, device} {
			_, busy := a.Memory().Busy()
			assert.False(t, busy, name)
		}
	}
	waits := w.cuda.CallCount("Synchronize")
	closeAll(t, host, device, v)
	assert.Equal(t, waits, w.cuda.CallCount("Synchronize"))
}

func TestPendingWorkIsReported(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	a, v := w.array(o, before), w.scalar(arrayiface.Int32, 3)
	require.NoError(t, a.Fill(v))
	stream, busy := a.Memory().Busy()
	assert.True(t, busy)
	assert.Equal(t, o.Stream, stream)
	require.NoError(t, a.Synchronize())
	_, busy = a.Memory().Busy()
	assert.False(t, busy)
	closeAll(t, a, v)
}

func TestPendingAsksOnceAboutEachStream(t *testing.T) {
	w := newWorld(t, 1, late)
	var arrays []*gobuffer.Array
	var streams []backends.Stream
	for i := range 6 {
		if i%3 == 0 {
			streams = append(streams, w.stream(w.cuda, 0))
		}
		o := place{backends.CUDA, 0}.options(gobuffer.Async)
		o.Stream = streams[i/3]
		arrays = append(arrays, w.array(o, before))
		require.NoError(t, w.cuda.Synchronize(0, o.Stream))
	}
	asked := w.cuda.CallCount("Idle")
	busy, err := gobuffer.Pending(arrays...)
	require.NoError(t, err)
	assert.False(t, busy)
	assert.Equal(t, 2, w.cuda.CallCount("Idle")-asked)
	w.busy(0, streams[1])
	busy, err = gobuffer.Pending(arrays...)
	require.NoError(t, err)
	assert.True(t, busy, "the second stream")
	closeAll(t, arrays...)
}

func TestPoolMemoryIsUsedAfterItsAllocation(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	a, v := w.array(o, before), w.scalar(arrayiface.Int32, 3)
	w.busy(0, o.Stream)
	require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
	require.NoError(t, a.Fill(v))
	var order []string
	for _, call := range w.cuda.Calls() {
		if name, _, _ := strings.Cut(call, "("); name == "Record" || name == "Wait" || name == "Fill" {
			order = append(order, name)
		}
	}
	assert.Equal(t, []string{"Record", "Wait", "Fill"}, order)
	closeAll(t, a, v)
}

// A failure that shows only when somebody waits belongs to the operation that
// would build on the spoilt data.
func TestALateFailureStopsWhatBuildsOnIt(t *testing.T) {
	for name, f := range map[string]func(a *gobuffer.Array) error{
		"resize":  func(a *gobuffer.Array) error { return a.Resize(40, nil) },
		"reserve": func(a *gobuffer.Array) error { return a.Reserve(40, nil) },
		"append":  func(a *gobuffer.Array) error { return a.Append(a) },
		"move":    func(a *gobuffer.Array) error { return a.Move(backends.CUDAAsync, 0) },
	} {
		w := newWorld(t, 1, late)
		a, v := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before), w.scalar(arrayiface.Int32, 3)
		w.cuda.FailAt("Execute", 1, errInjected)
		require.NoError(t, a.Fill(v))
		memory := a.Memory()
		assert.ErrorIs(t, f(a), error(errInjected), name)
		assert.Same(t, memory, a.Memory(), name)
		assert.Equal(t, 6, a.Size(), name)
		closeAll(t, a, v)
	}
}

func TestIndexAndSliceAreViews(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		m := counting(arrayiface.Int32, 3, 4)
		for _, how := range arrangements {
			a := w.lay(p, p.options(w.mode), m, how)
			row, err := a.Index(0, 1)
			require.NoError(t, err)
			w.assertHolds(row, numbers(5, 6, 7, 8), how.name)
			column, err := a.Index(1, 2)
			require.NoError(t, err)
			w.assertHolds(column, numbers(3, 7, 11), how.name)
			one, err := row.Index(0, 3)
			require.NoError(t, err)
			w.assertHolds(one, model{arrayiface.Int32, []int{}, element(arrayiface.Int32, 8)}, how.name)
			v := w.scalar(arrayiface.Int32, 99)
			require.NoError(t, one.Write(v))
			want := model{m.kind, m.shape, append([]byte{}, m.data...)}
			copy(want.data[7*4:], element(arrayiface.Int32, 99))
			w.assertHolds(a, want, how.name)
			_, err = a.Index(0, 3)
			assert.Error(t, err)
			_, err = a.Slice(2, 0, 1, 1)
			assert.Error(t, err)
			closeAll(t, a, row, column, one, v)
		}
	})
}

func TestStringNamesPlaceAndSize(t *testing.T) {
	w := newWorld(t, 2, late)
	a := w.array(place{backends.CUDA, 1}.options(0), before)
	assert.Equal(t, "buffer of 6 int32 (allocator cuda, owner 1)", fmt.Sprint(a))
	closeAll(t, a)
}
