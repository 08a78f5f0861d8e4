package openmp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

func TestUnavailable(t *testing.T) {
	for file, words := range map[string]string{
		"/nowhere/libgomp.so": "/nowhere/libgomp.so: cannot open shared object file",
		"libc.so.6": "lacks omp_get_num_devices, omp_get_initial_device, omp_target_alloc, " +
			"omp_target_free, omp_target_memcpy",
	} {
		err := openOf(file).Probe()
		var absent *backends.UnavailableError
		require.ErrorAs(t, err, &absent)
		assert.Equal(t, []string{file}, absent.Tried)
		assert.Contains(t, absent.Reason, words)
	}
}

// A process has loaded a runtime by now: only what is tried without one is shown.
func TestWhatWasLookedFor(t *testing.T) {
	before := usual
	defer func() { usual = before }()
	usual = []string{"libnowhere.so.1", "libc.so.6"}
	b := New(func(string) string { return "" })
	tried, _, _, err := b.findUsual()
	assert.Equal(t, usual, tried)
	assert.ErrorContains(t, err, "libnowhere.so.1: cannot open shared object file")
	assert.ErrorContains(t, err, "; ")
	assert.ErrorContains(t, err, "lacks omp_get_num_devices")
}

func TestUniqueIdentifiers(t *testing.T) {
	for _, text := range []string{"GPU-A8081c9e-f03e-18eb-1827-bf5ba95afa5d", "CUDA-a8081c9ef03e18eb1827bf5ba95afa5d"} {
		id, known := parseUID(text)
		assert.True(t, known, text)
		assert.Equal(t, "a8081c9e-f03e-18eb-1827-bf5ba95afa5d", id.String())
	}
	for _, text := range []string{
		"", "OMP_INITIAL_DEVICE", "GPU-a8081c9ef03e18eb", "HOST-0", "a8081c9ef03e18eb1827bf5ba95afa5d",
		"GPU-a8081c9e-f03e-18eb-1827-bf5ba95afa5g", "GPU-a8081c9ef-03e-18eb-1827-bf5ba95afa5d",
	} {
		_, known := parseUID(text)
		assert.False(t, known, text)
	}
}

func TestFailures(t *testing.T) {
	for code, words := range map[int32]string{22: "EINVAL (22)", -1: "OFFLOAD_FAIL (-1)", 0: "an unknown code (0)",
		99999: "an unknown code (99999)"} {
		assert.ErrorContains(t, failure("omp_target_memcpy", code, ""), "openmp: omp_target_memcpy failed with "+words)
	}
	var failed *backends.DeviceError
	b := host(t)
	_, err := b.Describe(1)
	require.ErrorAs(t, err, &failed)
	assert.ErrorContains(t, b.Free(backends.Region{Address: 16, Allocator: backends.OpenMP, Device: -1}, 1, 0),
		"there is no device -1")
}

func TestDevicesThatComeLaterAreNotSeen(t *testing.T) {
	file := build(t, "changing", folder)
	b := openOf(file)
	require.NoError(t, b.Probe())
	at, err := b.Allocate(backends.Request{Allocator: backends.OpenMP, Size: 100, Zero: true})
	require.NoError(t, err)
	register, err := load(t, file).Symbol("hamr_register")
	require.NoError(t, err)
	dl.Call(register, 3)
	region := backends.Region{Address: at, Allocator: backends.OpenMP}
	require.NoError(t, b.Fill(region, []byte{1, 2}, 50, 0))
	require.NoError(t, b.Free(region, 100, 0))
	count, err := b.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, 1, count)
}
