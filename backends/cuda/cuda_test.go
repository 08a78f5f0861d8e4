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
	for devices, kernels := range map[int]string{1: "1", 2: "0"} {
		t.Run(strconv.Itoa(devices)+" devices, kernels "+kernels, func(t *testing.T) {
			s := withDevices(devices)
			s[KernelsSetting] = kernels
			s[PoolSharingSetting] = kernels
			backendtest.Run(t, emulate(t, s).Backend, backendtest.Options{LargestSize: 1 << 20})
		})
	}
}

func TestConformanceOfDriver(t *testing.T) {
	for _, kernels := range []string{"0", "1"} {
		t.Run("kernels "+kernels, func(t *testing.T) {
			r := openDriver(t, settings{KernelsSetting: kernels, PoolSharingSetting: kernels})
			backendtest.Run(t, modest{r.Backend}, backendtest.Options{OutOfMemory: tooMuch})
		})
	}
}

const tooMuch = 1 << 60

// modest asks no real device for more managed memory than it has, which some do
// not survive.
type modest struct{ *Backend }

func (m modest) Allocate(r backends.Request) (backends.Address, error) {
	if r.Allocator == backends.CUDAUnified && r.Size == tooMuch {
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size}
	}
	return m.Backend.Allocate(r)
}

// block is memory with its size, for tests.
type block struct {
	backends.Region
	size int
}

func (r *rig) newStream(t testing.TB, device int) backends.Stream {
	t.Helper()
	s, err := r.NewStream(device)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.DestroyStream(device, s)) })
	return s
}

// reserve leaves the freeing to the end of the test.
func (r *rig) reserve(t testing.TB, a backends.Allocator, device, size int, stream backends.Stream) block {
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

// host returns page-locked memory that lasts until the end of the test.
func (r *rig) host(t testing.TB, size int) ([]byte, backends.Region) {
	t.Helper()
	made := r.reserve(t, backends.CUDAHost, backends.HostDevice, size, 0)
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
