package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPropertiesAreTheDriversAttributes(t *testing.T) {
	r := emulate(t, nil)
	list, err := r.Properties(0)
	require.NoError(t, err)
	known := map[string]int{}
	for _, p := range list {
		known[p.Name] = p.Value
	}
	assert.Len(t, known, len(properties), "each name once")
	for name, value := range map[string]int{
		"compute_capability_major": 7, "compute_capability_minor": 5, "multiprocessor_count": 8, "warp_size": 32,
		"max_threads_per_block": 1024, "max_block_dim_z": 64, "max_grid_dim_x": 1<<31 - 1, "max_grid_dim_z": 65534,
		"max_shared_memory_per_block": 49152, "max_shared_memory_per_block_optin": 101376, "clock_rate": 1_000_000,
		"managed_memory": 1, "integrated": 0,
	} {
		assert.Equal(t, value, known[name], name)
	}
	_, err = r.Properties(99)
	assert.ErrorContains(t, err, "99")

	// What an old driver does not know.
	other := emulate(t, nil)
	other.fail("cuDeviceGetAttribute", 3, invalidValue)
	fewer, err := other.Properties(0)
	require.NoError(t, err)
	assert.Len(t, fewer, len(list)-1)
	third := emulate(t, nil)
	third.fail("cuDeviceGetAttribute", 3, 999)
	_, err = third.Properties(0)
	assert.ErrorContains(t, err, "CUDA_ERROR_UNKNOWN")
}
