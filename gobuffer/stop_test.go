package gobuffer_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// standing is a world whose first device has a stream on which work never ends by itself, and a stop
// that somebody asks for later.
func standing(t *testing.T) (*world, *gobuffer.Array, *backends.Stop) {
	t.Helper()
	w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Strict: true, Still: true})
	require.NoError(t, w.cuda.Probe())
	stream, err := w.cuda.NewStream(0)
	require.NoError(t, err)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = stream
	a := w.array(o, before)
	three := w.scalar(arrayiface.Int32, 3)
	require.NoError(t, a.Fill(three))
	closeAll(t, three)
	stop := new(backends.Stop)
	time.AfterFunc(time.Millisecond, stop.Ask)
	hopeless := time.AfterFunc(5*time.Second, func() { _ = w.cuda.SynchronizeDevice(0) })
	t.Cleanup(func() {
		hopeless.Stop()
		require.NoError(t, w.cuda.DestroyStream(0, stream))
	})
	return w, a.Until(stop), stop
}

func TestAStopEndsWhatWaits(t *testing.T) {
	for name, act := range map[string]func(w *world, a *gobuffer.Array, stop *backends.Stop) error{
		"to the host": func(w *world, a *gobuffer.Array, _ *backends.Stop) error {
			b := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), after)
			defer closeAll(w.t, b)
			err := b.Write(a)
			assert.Equal(w.t, after.data, w.peek(b.Memory()), "nobody has written to it")
			return err
		},
		"read": func(w *world, a *gobuffer.Array, stop *backends.Stop) error {
			target := make([]byte, a.Layout().NBytes())
			err := a.Memory().ReadUntil(stop, backends.Address(uintptr(unsafe.Pointer(&target[0]))), a.Address(), len(target),
				a.Stream())
			assert.Equal(w.t, make([]byte, len(target)), target)
			return err
		},
		"synchronously": func(w *world, a *gobuffer.Array, _ *backends.Stop) error {
			b := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), after)
			defer closeAll(w.t, b)
			return b.Write(a)
		},
		"a wait": func(_ *world, a *gobuffer.Array, _ *backends.Stop) error { return a.Synchronize() },
		"many": func(w *world, a *gobuffer.Array, _ *backends.Stop) error {
			b, c := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), after),
				w.array(place{backends.Malloc, -1}.options(gobuffer.Async), after)
			defer closeAll(w.t, b, c)
			return gobuffer.CopyMany([]*gobuffer.Array{b, c}, []*gobuffer.Array{a, a})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, stop := standing(t)
			pending, err := a.Pending()
			require.NoError(t, err)
			assert.True(t, pending)
			require.ErrorIs(t, act(w, a, stop), backends.ErrStopped)
			a.Until(nil)
			require.NoError(t, a.Synchronize())
			w.assertHolds(a, numbers(3, 3, 3, 3, 3, 3))
			closeAll(t, a)
		})
	}
}
