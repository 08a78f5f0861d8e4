package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// TestMemoryOfAStreamThatWasNotAskedComesBack without anybody who asks for it: only a wait says that what the
// stream held is over.
func TestMemoryOfAStreamThatWasNotAskedComesBack(t *testing.T) {
	reusing := late
	reusing.Reuses = true
	w := newWorld(t, 1, reusing)
	for _, allocator := range []backends.Allocator{backends.CUDA, backends.CUDAHost, backends.CUDAAsync} {
		s := w.stream(w.cuda, 0)
		o := place{allocator, 0}.options(gobuffer.Async)
		if allocator == backends.CUDAHost {
			o.Device = backends.HostDevice
		}
		o.Stream = s
		a := w.array(o, before)
		require.NoError(t, a.SetStream(0, gobuffer.Async))
		require.NoError(t, w.cuda.DestroyStream(0, s))
		end := w.runtime.Unasked(s)
		require.NoError(t, a.Memory().Forget(s))
		end()
		closeAll(t, a)
		require.NoError(t, w.cuda.Synchronize(0, 0), "frees what is in its order")
		assert.Zero(t, w.kept(), allocator)
	}
}
