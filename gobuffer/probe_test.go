package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

func TestProbeAsyncManaged(t *testing.T) {
	for _, alloc := range []backends.Allocator{backends.CUDA, backends.CUDAUnified, backends.CUDAHost} {
		w := newWorld(t, 1, late)
		o := place{alloc, 0}.options(gobuffer.Async)
		o.Stream = w.stream(w.cuda, 0)
		a := w.array(o, before)
		require.NoError(t, a.Synchronize())
		w.kernel(w.cuda, 0, o.Stream, a, after)
		w.assertHolds(a, after, "access %s", alloc)
		closeAll(t, a)
		a = w.array(o, before)
		require.NoError(t, a.Synchronize())
		w.kernel(w.cuda, 0, o.Stream, a, after)
		b, err := a.Copy(place{backends.Malloc, -1}.options(gobuffer.Async), a.Type())
		require.NoError(t, err)
		w.assertHolds(b, after, "copy %s", alloc)
		closeAll(t, a, b)
		a = w.array(o, before)
		require.NoError(t, a.Synchronize())
		w.kernel(w.cuda, 0, o.Stream, a, after)
		c := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), numbers(1, 1, 1, 1, 1, 1))
		require.NoError(t, a.Assign(c))
		require.NoError(t, w.cuda.Synchronize(0, o.Stream))
		w.assertHolds(a, numbers(1, 1, 1, 1, 1, 1), "assign %s", alloc)
		closeAll(t, a, c)
	}
	assert.True(t, true)
}
