package cuda

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// pageable is memory that no driver knows.
func pageable(t testing.TB, size int) ([]byte, backends.Region) {
	t.Helper()
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, syscall.Munmap(data)) })
	return data, backends.Region{Address: backends.Address(unsafe.Pointer(unsafe.SliceData(data))),
		Allocator: backends.Malloc, Device: backends.HostDevice}
}

// keepBusy enqueues what takes a device some time.
func (r *rig) keepBusy(t *testing.T, stream backends.Stream) {
	t.Helper()
	size, rounds := 64<<20, 2000
	if r.emulated() {
		size, rounds = 1<<20, 3
	}
	work := r.reserve(t, backends.CUDA, 0, size, 0)
	t.Cleanup(func() { assert.NoError(t, r.Synchronize(0, stream)) })
	for i := range rounds {
		require.NoError(t, r.Fill(work.Region, []byte{byte(i)}, size, stream))
	}
}

func TestProgressOfCopies(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		stream := r.newStream(t, 0)
		for _, s := range []backends.Stream{0, legacyStream, stream} {
			for _, size := range []int{1000, 64 << 10, 70000, 8 << 20} {
				t.Run(fmt.Sprintf("stream %d, %d bytes", min(s, 3), size), func(t *testing.T) { testProgress(t, r, s, size) })
			}
		}
	})
}

func testProgress(t *testing.T, r *rig, s backends.Stream, size int) {
	device := r.reserve(t, backends.CUDA, 0, size, 0)
	source, from := pageable(t, size)
	target, to := pageable(t, size)
	want := bytes.Repeat([]byte{7}, size)
	copy(source, want)
	r.keepBusy(t, s)

	left, err := r.Copy(device.Region, from, size, s)
	require.NoError(t, err)
	assert.Equal(t, backends.Writing, left)
	clear(source)

	r.keepBusy(t, s)
	left, err = r.Copy(to, device.Region, size, s)
	require.NoError(t, err)
	assert.Equal(t, backends.Complete, left)
	assert.True(t, bytes.Equal(want, target), "complete at return")

	_, pinned := r.host(t, size)
	left, err = r.Copy(device.Region, pinned, size, s)
	require.NoError(t, err)
	assert.Equal(t, late, left)
	left, err = r.Copy(pinned, device.Region, size, s)
	require.NoError(t, err)
	assert.Equal(t, late, left)
	require.NoError(t, r.Synchronize(0, s))
}

// Libraries hand out page-locked memory as if it were any other.
func TestPinnedMemoryInDisguise(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		const size = 1 << 20
		device := r.reserve(t, backends.CUDA, 0, size, 0)
		data, host := r.host(t, size)
		host.Allocator = backends.Malloc
		stream := r.newStream(t, 0)
		left, err := r.Copy(device.Region, host, size, stream)
		require.NoError(t, err)
		assert.Equal(t, late, left)

		require.NoError(t, r.Fill(device.Region, []byte{9}, size, stream))
		r.keepBusy(t, stream)
		left, err = r.Copy(host, device.Region, size, stream)
		require.NoError(t, err)
		if left != backends.Complete {
			assert.Equal(t, late, left)
			require.NoError(t, r.Synchronize(0, stream))
		}
		assert.Equal(t, size, bytes.Count(data, []byte{9}))
	})
}

// TestALittleIsReadInOrder reads memory that somebody has page-locked after what a stream is to
// write there, however little it is.
func TestALittleIsReadInOrder(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		stream := r.newStream(t, 0)
		source, target := r.reserve(t, backends.CUDA, 0, 2048, stream), r.reserve(t, backends.CUDA, 0, 2048, stream)
		data, host := r.host(t, 2048)
		for i, size := range []int{1, 1000, 2048} {
			require.NoError(t, r.Fill(source.Region, []byte{byte(i + 1)}, size, stream))
			r.keepBusy(t, stream)
			require.NoError(t, copied(r.Copy(host, source.Region, size, stream)))
			ordinary := host
			ordinary.Allocator = backends.Malloc
			left, err := r.Copy(target.Region, ordinary, size, stream)
			require.NoError(t, err)
			assert.Equal(t, late, left)
			require.NoError(t, r.Synchronize(0, stream))
			clear(data)
			require.NoError(t, copied(r.Copy(host, target.Region, size, stream)))
			require.NoError(t, r.Synchronize(0, stream))
			assert.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, size), data[:size])
		}
	})
}

// A device that follows the host's page tables reads pageable memory when it
// comes to it.
func TestHostPageTables(t *testing.T) {
	r := emulate(t, nil)
	r.devices[0].attributes = map[int]int{AttributeHostPageTables: 1}
	device := r.reserve(t, backends.CUDA, 0, 1000, 0)
	_, host := pageable(t, 1000)
	left, err := r.Copy(device.Region, host, 1000, 0)
	require.NoError(t, err)
	assert.Equal(t, late, left)
	require.NoError(t, r.Synchronize(0, 0))
}

func TestDownloadThatIsLate(t *testing.T) {
	r := emulate(t, nil)
	device := r.reserve(t, backends.CUDA, 0, 1000, 0)
	_, host := pageable(t, 1000)
	s := r.newStream(t, 0)
	r.fail("cuStreamQuery", 1, notReady)
	left, err := r.Copy(host, device.Region, 1000, s)
	require.NoError(t, err)
	assert.Equal(t, late, left)
}

func TestCopyBetweenDevices(t *testing.T) {
	onEachDriver(t, 2, func(t *testing.T, r *rig) {
		const size = 3 << 20
		for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
			for _, b := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
				src, dst := r.reserve(t, a, 0, size, 0), r.reserve(t, b, 1, size, 0)
				pattern := []byte{byte(a), byte(b), 3, 4}
				require.NoError(t, r.Fill(src.Region, pattern, size/4, 0))
				require.NoError(t, r.Synchronize(0, 0))
				require.NoError(t, r.Synchronize(1, 0))
				left, err := r.Copy(dst.Region, src.Region, size, 0)
				require.NoError(t, err)
				assert.Equal(t, late, left)
				require.NoError(t, r.Synchronize(0, 0))
				require.NoError(t, r.Synchronize(1, 0))
				assert.True(t, bytes.Equal(bytes.Repeat(pattern, size/4), r.read(t, dst.Region, size, 0)), "%s to %s", a, b)
			}
		}
	})
}

func TestPeers(t *testing.T) {
	r := emulate(t, withDevices(2))
	assert.ErrorContains(t, r.Enable(0, 0), "no peer of itself")
	assert.ErrorContains(t, r.Enable(0, 2), "no device 2")
	assert.ErrorContains(t, r.Enable(-1, 0), "no device -1")
	can, err := r.CanAccess(0, 0)
	require.NoError(t, err)
	assert.False(t, can)

	require.NoError(t, r.Enable(0, 1))
	require.NoError(t, r.Enable(0, 1))
	assert.Equal(t, 1, r.calls("cuCtxEnablePeerAccess"))
}

func TestPeersEnabledByAnotherLibrary(t *testing.T) {
	r := emulate(t, withDevices(2))
	r.fail("cuCtxEnablePeerAccess", 1, peerAlreadyAllowed)
	require.NoError(t, r.Enable(0, 1))
}

func TestDevicesThatAreNoPeers(t *testing.T) {
	s := withDevices(2)
	s["HAMR_EMULATOR_PEERS"] = "0"
	r := emulate(t, s)
	can, err := r.CanAccess(0, 1)
	require.NoError(t, err)
	assert.False(t, can)
	assert.ErrorContains(t, r.Enable(0, 1), "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED (217)")
	a, b := r.reserve(t, backends.CUDA, 0, 100, 0), r.reserve(t, backends.CUDA, 1, 100, 0)
	for range 2 {
		require.NoError(t, copied(r.Copy(b.Region, a.Region, 100, 0)))
	}
	require.NoError(t, r.Synchronize(1, 0))
	assert.Equal(t, 2, r.calls("cuCtxEnablePeerAccess"), "once for each direction")
}

func TestShortestPeriod(t *testing.T) {
	for text, want := range map[string]int{
		"a": 1, "aa": 1, "ab": 2, "aab": 3, "aaaa": 1, "abab": 2, "abaab": 5, "abcabc": 3, "abcdabcd": 4,
		"aaaaaaaaaaaaaaab": 16,
	} {
		assert.Equal(t, want, shortestPeriod([]byte(text)), text)
	}
}

func TestFills(t *testing.T) {
	for _, kernels := range []string{"0", "1"} {
		t.Run("kernels "+kernels, func(t *testing.T) {
			t.Run("emulator", func(t *testing.T) { testFills(t, emulate(t, settings{KernelsSetting: kernels})) })
			t.Run("driver", func(t *testing.T) { testFills(t, openDriver(t, settings{KernelsSetting: kernels})) })
		})
	}
}

func testFills(t *testing.T, r *rig) {
	const most = 3*seedRows + 17
	for _, a := range allocators {
		b := r.reserve(t, a, 0, 16*most+64, 0)
		for length := 1; length <= 16; length++ {
			for _, count := range []int{1, 2, 1000, most} {
				for _, offset := range []int{0, 1, 2, 4, 16} {
					pattern := []byte("abcdefghijklmnop")[:length]
					size := length*count + 32
					require.NoError(t, r.Fill(b.Region, []byte{0xEE}, size, 0))
					require.NoError(t, r.Fill(moved(b.Region, offset), pattern, count, 0))
					want := bytes.Repeat([]byte{0xEE}, size)
					copy(want[offset:], bytes.Repeat(pattern, count))
					got := r.readAll(t, b.Region, size)
					require.True(t, bytes.Equal(want, got), "%s: %d times %q at offset %d", a, count, pattern, offset)
				}
			}
		}
	}
}

// readAll is read by way of memory that is freed at once.
func (r *rig) readAll(t *testing.T, from backends.Region, size int) []byte {
	t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDAHost, Device: backends.HostDevice, Size: size})
	require.NoError(t, err)
	to := backends.Region{Address: at, Allocator: backends.CUDAHost, Device: backends.HostDevice}
	require.NoError(t, copied(r.Copy(to, from, size, 0)))
	require.NoError(t, r.Synchronize(0, 0))
	data := bytes.Clone(hostBytes(at, size))
	require.NoError(t, r.Free(to, size, 0))
	return data
}
