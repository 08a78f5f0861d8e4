package cuda

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
)

func TestConformance(t *testing.T) {
	for _, devices := range []int{1, 2} {
		for _, kernels := range []string{"0", "1"} {
			t.Run(strconv.Itoa(devices)+" devices, kernels "+kernels, func(t *testing.T) {
				s := withDevices(devices)
				s[KernelsSetting] = kernels
				backendtest.Run(t, emulate(t, s).Backend, backendtest.Options{LargestSize: 1 << 20})
			})
		}
	}
}

func TestConformanceOfDriver(t *testing.T) {
	for _, kernels := range []string{"0", "1"} {
		t.Run("kernels "+kernels, func(t *testing.T) {
			r := openDriver(t, settings{KernelsSetting: kernels})
			// Managed memory may be larger than what a machine has.
			backendtest.Run(t, r.Backend, backendtest.Options{OutOfMemory: 1 << 60})
		})
	}
}

// block is memory with its size, for tests.
type block struct {
	backends.Region
	size int
}

func (r *rig) allocate1(t testing.TB, a backends.Allocator, device, size int, stream backends.Stream) block {
	t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: a, Device: device, Size: size, Stream: stream})
	require.NoError(t, err)
	made := block{backends.Region{Address: at, Allocator: a, Device: device}, size}
	t.Cleanup(func() {
		if stream > perThreadStream {
			assert.NoError(t, r.Synchronize(device, stream))
		}
		assert.NoError(t, r.Free(made.Region, size, stream))
	})
	return made
}

// host returns page-locked memory, posing as ordinary memory where ordinary is set:
// it is not Go's, and lasts until the end of the test.
func (r *rig) host(t testing.TB, size int) ([]byte, backends.Region) {
	t.Helper()
	made := r.allocate1(t, backends.CUDAHost, backends.HostDevice, size, 0)
	return hostBytes(made.Address, size), made.Region
}

// read waits for all that is on a stream.
func (r *rig) read(t testing.TB, from backends.Region, size int, stream backends.Stream) []byte {
	t.Helper()
	data, to := r.host(t, size)
	_, err := r.Copy(to, from, size, stream)
	require.NoError(t, err)
	require.NoError(t, r.Synchronize(max(from.Device, 0), stream))
	return data
}

func moved(r backends.Region, by int) backends.Region {
	r.Address += backends.Address(by)
	return r
}
