package openmp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends/backendtest"
	"hamr/backends/internal/dl"
)

func TestConformance(t *testing.T) {
	for name, open := range map[string]func(testing.TB) *Backend{"gcc": gcc, "device": device, "llvm": llvm} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			for i := range b.count {
				facts, err := b.Describe(i)
				require.NoError(t, err)
				t.Log(b.Library(), facts)
			}
			backendtest.Run(t, b, backendtest.Options{LargestSize: 1 << 20, OutOfMemory: 1 << 60})
			if name == "device" {
				assert.Zero(t, dl.Call(plugin.live), "allocations that were not freed")
				assert.EqualValues(t, 1, dl.Call(plugin.threads), "threads that have called the runtime")
			}
		})
	}
}
