package gobuffer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// Upstream's core defects, each as a test that it is not ours.

func TestDefectResizeInsideTheCapacityDoesNotFill(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		a, v := w.array(p.options(w.mode), numbers(1, 2)), w.scalar(arrayiface.Int32, 7)
		require.NoError(t, a.Reserve(10, nil))
		memory := a.Memory()
		require.NoError(t, a.Resize(5, v))
		assert.Same(t, memory, a.Memory())
		w.assertHolds(a, numbers(1, 2, 7, 7, 7))
		closeAll(t, a, v)
	})
}

func TestDefectFreeBreaksALaterResize(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, p place) {
		a, v := w.array(p.options(w.mode), before), w.scalar(arrayiface.Int32, 7)
		require.NoError(t, a.Free())
		require.NoError(t, a.Free())
		assert.Zero(t, a.Size())
		assert.Zero(t, a.Capacity())
		w.assertHolds(a, numbers())
		require.NoError(t, a.Resize(3, v))
		assert.Equal(t, p, place{a.Allocator(), a.Owner()})
		assert.Equal(t, p.device, a.Memory().Region().Device)
		w.assertHolds(a, numbers(7, 7, 7))
		closeAll(t, a, v)
	})
}

func TestDefectSynchronizeSkipsHostBuffers(t *testing.T) {
	for _, from := range places(2) {
		for _, to := range []backends.Allocator{backends.Malloc, backends.CPP, backends.CUDAHost} {
			w := newWorld(t, 2, late)
			a := w.array(from.options(gobuffer.Async), after)
			b := w.array(place{to, 0}.options(gobuffer.Async), before)
			require.NoError(t, b.Assign(a))
			require.NoError(t, b.Synchronize())
			assert.Equal(t, after.data, w.peek(b.Memory()), "%s to %s", from, to)
			closeAll(t, a, b)
		}
	}
}

func TestDefectManagedMemoryIsReadTooEarly(t *testing.T) {
	for _, kind := range []backends.Allocator{backends.CUDAUnified, backends.CUDAHost} {
		w := newWorld(t, 1, late)
		o := place{kind, 0}.options(gobuffer.SyncHost)
		o.Stream = w.stream(w.cuda, 0)
		for name, read := range map[string]func(a *gobuffer.Array) []byte{
			"access": func(a *gobuffer.Array) []byte { return w.read(a).data },
			"copy": func(a *gobuffer.Array) []byte {
				b, err := a.Copy(place{backends.Malloc, -1}.options(gobuffer.SyncHost), a.Type())
				require.NoError(t, err)
				defer b.Close()
				return w.read(b).data
			},
			"text": func(a *gobuffer.Array) []byte {
				text, err := a.Text(0)
				require.NoError(t, err)
				assert.Equal(t, "{21, 22, 23, 24, 25, 26}", text)
				return after.data
			},
		} {
			a := w.array(o, before)
			w.kernel(w.cuda, 0, o.Stream, a, after)
			assert.Equal(t, after.data, read(a), "%s %s: the kernel had not run", kind, name)
			closeAll(t, a)
		}
		a, v := w.array(o, before), w.scalar(arrayiface.Int32, 4)
		a.SetTransfer(gobuffer.Async)
		require.NoError(t, a.Fill(v))
		w.assertHolds(a, numbers(4, 4, 4, 4, 4, 4), "our own work is waited for in any mode")
		closeAll(t, a, v)
	}
}

func TestDefectAsynchronousHostTemporaryIsNotReady(t *testing.T) {
	for _, p := range places(2) {
		w := newWorld(t, 2, late)
		a := w.array(p.options(gobuffer.Async), after)
		h, err := a.Access(backends.SpaceHost, -1)
		require.NoError(t, err)
		assert.Equal(t, after.data, w.peek(h.Memory()), "%s", p)
		require.NoError(t, h.Release())
		closeAll(t, a)
	}
}

func TestDefectGetAcrossHostAndDevice(t *testing.T) {
	for _, from := range places(2) {
		for _, to := range places(2) {
			w := newWorld(t, 2, late)
			a, b := w.array(from.options(gobuffer.SyncHost), before), w.array(to.options(gobuffer.SyncHost), after)
			require.NoError(t, b.Set(0, a, 0, 6))
			w.assertHolds(b, before, "%s to %s", from, to)
			closeAll(t, a, b)
		}
	}
}

func TestDefectPerThreadStreamIsKept(t *testing.T) {
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		w := newWorld(t, 1, late)
		o := place{allocator, 0}.options(gobuffer.Async)
		o.Stream = 2
		a, v := w.array(o, before), w.scalar(arrayiface.Int32, 4)
		b := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), after)
		require.NoError(t, a.Fill(v))
		require.NoError(t, a.Assign(b))
		require.NoError(t, b.Assign(a))
		require.NoError(t, a.Resize(40, v))
		require.NoError(t, a.Synchronize())
		assert.NotEqualValues(t, 2, a.Stream(), "no buffer keeps a stream that is another one on every thread")
		closeAll(t, a, b, v)
		for _, call := range w.cuda.Calls() {
			if !strings.HasPrefix(call, "Resolve") {
				assert.NotRegexp(t, `stream 0x[02]\b`, call, "%s: another thread has another such stream", allocator)
			}
		}
	}
}
