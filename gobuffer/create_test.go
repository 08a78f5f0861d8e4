package gobuffer

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/host"
)

// Whatever else a small buffer's life takes, Go's collector pays for.
func TestMemoryThatIsFilledAndFreedIsOneObject(t *testing.T) {
	r, err := NewRuntime(host.New())
	require.NoError(t, err)
	number := 1.0 // which is converted
	for _, value := range []Value{{}, {arrayiface.Float64, unsafe.Pointer(&number)}} {
		assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
			m, err := r.NewElements(arrayiface.Float32, 256, Options{Allocator: backends.Malloc}, value)
			require.NoError(t, err)
			require.NoError(t, m.Release())
		}))
	}
}
