package gobuffer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// lateWrites is a device that has read ordinary host memory when a copy returns, and writes later.
var lateWrites = backendtest.FakeOptions{Manual: true}

// writeBytes makes a's elements those of after by Memory.Write.
func (w *world) writeBytes(a *gobuffer.Array) (bool, error) {
	source := w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), after)
	defer source.Close()
	done, err := a.Memory().Write(a.Address(), source.Address(), len(after.data), a.Stream(), a.Transfer())
	clear(hostBytes(source.Address(), len(after.data)))
	return done, err
}

func TestWriteIsWhatArraysDo(t *testing.T) {
	for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
		for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
			w := newWorld(t, 1, lateWrites)
			a := w.array(place{allocator, 0}.options(gobuffer.Sync), before)
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), mode))
			done, err := w.writeBytes(a)
			require.NoError(t, err)
			assert.True(t, done)
			_, busy := a.Memory().Busy()
			assert.Equal(t, mode != gobuffer.Sync, busy, "%s", mode)
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), mode)) // of which the copy is behind the write
			w.assertHolds(a, after, mode)
			closeAll(t, a)
		}
	}
}

func TestWriteRunsAfterWhatIsPending(t *testing.T) {
	w := newWorld(t, 1, lateWrites)
	a, v := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before), w.scalar(after.kind, 3)
	require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
	require.NoError(t, a.Fill(v))
	memory := a.Memory()
	source := w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), after)
	other := w.stream(w.cuda, 0)
	done, err := memory.Write(a.Address(), source.Address(), len(after.data), other, gobuffer.Async)
	require.NoError(t, err)
	assert.True(t, done)
	require.NoError(t, w.cuda.Synchronize(0, other))
	assert.Equal(t, after.data, w.peek(memory))
	w.assertHolds(a, after)
	closeAll(t, a, v, source)
}

func TestWriteEndsWithTheLastLookAtTheSource(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	done, err := w.writeBytes(a)
	require.NoError(t, err)
	assert.True(t, done)
	w.assertHolds(a, after)
	// What cannot be waited for may go on: the device is asked for more.
	w.cuda.FailAt("Synchronize", 1, errInjected)
	w.cuda.FailAt("Synchronize", 2, errInjected)
	waits := w.cuda.CallCount("SynchronizeDevice")
	_, err = w.writeBytes(a)
	assert.ErrorIs(t, err, error(errInjected))
	assert.Equal(t, waits+1, w.cuda.CallCount("SynchronizeDevice"))
	closeAll(t, a)
}

func TestWriteRemembersWhatMayBeOnItsWay(t *testing.T) {
	w := newWorld(t, 1, lateWrites)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before)
	w.cuda.FailAt("Copy", 1, errInjected)
	done, err := w.writeBytes(a)
	assert.ErrorIs(t, err, error(errInjected))
	assert.False(t, done)
	_, busy := a.Memory().Busy()
	assert.True(t, busy)
	closeAll(t, a)
}

func TestWriteForgetsWhatIsOver(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{Synchronous: true})
	a := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before)
	done, err := w.writeBytes(a)
	require.NoError(t, err)
	assert.True(t, done)
	_, busy := a.Memory().Busy()
	assert.False(t, busy)
	w.assertHolds(a, after)
	closeAll(t, a)
}

func TestWriteDropsKeptTemporaries(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	require.NoError(t, a.Cached(true))
	onHost := user{backends.SpaceHost, -1}
	require.NoError(t, w.ask(a, onHost).Release())
	_, err := w.writeBytes(a)
	require.NoError(t, err)
	h := w.ask(a, onHost)
	w.holds(h, onHost, after)
	require.NoError(t, h.Release())
	closeAll(t, a)
}

func TestWriteLeavesTheRestToArrays(t *testing.T) {
	w := newWorld(t, 1, late)
	for _, p := range []place{{backends.Malloc, -1}, {backends.CUDAUnified, 0}, {backends.CUDAHost, -1}} {
		a := w.array(p.options(gobuffer.Sync), before)
		done, err := w.writeBytes(a)
		require.NoError(t, err)
		assert.False(t, done, "%s", p)
		w.assertHolds(a, before)
		closeAll(t, a)
	}
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before)
	h, err := a.AccessMode(backends.SpaceCUDA, 0, gobuffer.Write)
	require.NoError(t, err)
	done, err := w.writeBytes(a)
	require.NoError(t, err)
	assert.False(t, done)
	require.NoError(t, h.Release())
	_, err = (*gobuffer.Memory)(nil).Write(0, 0, 0, 0, gobuffer.Sync)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
	closeAll(t, a)
}

func TestWriteSaysWhatItCopies(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before)
	var lines []string
	w.runtime.SetTrace(func(line string) { lines = append(lines, line) })
	_, err := w.writeBytes(a)
	require.NoError(t, err)
	w.runtime.SetTrace(nil)
	assert.Contains(t, strings.Join(lines, "\n"), "copy 24 bytes")
	closeAll(t, a)
}
