package cuda

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var onHeap []byte // what is kept here is no part of a stack, which may move

// memoryOf is Go memory, for a copy that is over before b is.
func memoryOf(b []byte) backends.Region {
	onHeap = b
	return backends.Region{
		Address:   backends.Address(uintptr(unsafe.Pointer(unsafe.SliceData(b)))),
		Allocator: backends.Malloc, Device: backends.HostDevice,
	}
}

// deviceRoom is memory of a device and a stream.
type deviceRoom struct {
	*Backend
	backends.Region
	stream backends.Stream
}

func newRoom(t testing.TB, b *Backend, a backends.Allocator, size int) *deviceRoom {
	stream, err := b.NewStream(0)
	require.NoError(t, err)
	m := &deviceRoom{b, backends.Region{Allocator: a}, stream}
	m.Address, err = b.Allocate(backends.Request{Allocator: a, Size: size, Stream: stream})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.Free(m.Region, size, stream))
		require.NoError(t, b.Synchronize(0, stream))
		require.NoError(t, b.DestroyStream(0, stream))
	})
	return m
}

func (m *deviceRoom) copy(t testing.TB, dst, src backends.Region, bytes int) {
	_, err := m.Copy(dst, src, bytes, m.stream)
	require.NoError(t, err)
	require.NoError(t, m.Synchronize(0, m.stream))
}

// convert is a converter.
func (m *deviceRoom) convert(t *testing.T, _ *rand.Rand, dst, src backends.Strided, memory []byte) {
	m.copy(t, m.Region, memoryOf(memory), len(memory))
	for _, s := range []*backends.Strided{&dst, &src} {
		at := s.Address
		s.Region = m.Region
		s.Address += at
	}
	require.NoError(t, m.Convert(dst, src, m.stream))
	m.copy(t, memoryOf(memory), m.Region, len(memory))
}

func TestKernelTextIsOfTheseSources(t *testing.T) {
	headers, err := filepath.Glob("kernels/*.h")
	require.NoError(t, err)
	digest := sha256.New()
	for _, file := range append([]string{"kernels/kernels.cu"}, headers...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, _ = digest.Write(text)
	}
	head, _, _ := bytes.Cut(kernelText, []byte(".version"))
	require.Contains(t, string(head), fmt.Sprintf("%x", digest.Sum(nil)), "run kernels/compile.py")
}

func TestConvertOnDevice(t *testing.T) {
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		t.Run(a.String(), func(t *testing.T) {
			e := emulate(t, nil)
			testConverting(t, newRoom(t, e.Backend, a, 4<<20).convert, 150)
		})
	}
	t.Run("driver", func(t *testing.T) {
		b := realBackend(t)
		testConverting(t, newRoom(t, b, backends.CUDA, 4<<20).convert, 1500)
		testFillByKernel(t, b)
	})
}

func TestFillByKernel(t *testing.T) { testFillByKernel(t, emulate(t, nil).Backend) }

func testFillByKernel(t *testing.T, b *Backend) {
	const room = 1 << 16
	m := newRoom(t, b, backends.CUDA, room)
	for period := 1; period <= 16; period++ {
		for _, at := range []int{0, 1, 8, 15} {
			for _, count := range []int{1, 7, 3000} {
				pattern := []byte("ABCDEFGHIJKLMNOP")[:period]
				want := bytes.Repeat([]byte{'.'}, at+count*period+20)
				m.copy(t, m.Region, memoryOf(want), len(want))
				dst := m.Region
				dst.Address += backends.Address(at)
				require.NoError(t, b.fillByKernel(dst, pattern, count, m.stream))
				copy(want[at:], bytes.Repeat(pattern, count))
				got := make([]byte, len(want))
				m.copy(t, memoryOf(got), m.Region, len(got))
				require.Equal(t, string(want), string(got), "%d times %d bytes from %d on", count, period, at)
			}
		}
	}
}

// singles and doubles are arrays to convert, in one room.
func (m *deviceRoom) singles() backends.Strided {
	return backends.Strided{Region: m.Region, Element: element(backends.Float, 4), Shape: []int{10}, Strides: []int{4}}
}

func (m *deviceRoom) doubles() backends.Strided {
	d := backends.Strided{Region: m.Region, Element: element(backends.Float, 8), Shape: []int{10}, Strides: []int{8}}
	d.Address += 64
	return d
}

func TestConvertUnsupported(t *testing.T) {
	t.Run("by choice", func(t *testing.T) {
		e := emulate(t, settings{KernelsSetting: "0"})
		m := newRoom(t, e.Backend, backends.CUDA, 1024)
		require.ErrorIs(t, e.Convert(m.doubles(), m.singles(), m.stream), errors.ErrUnsupported)
		require.ErrorIs(t, e.fillByKernel(m.Region, []byte{1, 2, 3}, 5, m.stream), errors.ErrUnsupported)
		require.Zero(t, e.calls("cuModuleLoadData"))
	})
	t.Run("by the driver", func(t *testing.T) {
		e := emulate(t, nil)
		m := newRoom(t, e.Backend, backends.CUDA, 1024)
		const unsupportedVersion = 222
		e.fail("cuModuleLoadData", 1, unsupportedVersion)
		for range 2 {
			err := e.Convert(m.doubles(), m.singles(), m.stream)
			require.ErrorIs(t, err, errors.ErrUnsupported)
			require.ErrorContains(t, err, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
		}
		require.ErrorIs(t, e.fillByKernel(m.Region, []byte{1, 2, 3}, 5, m.stream), errors.ErrUnsupported)
		require.Equal(t, 1, e.calls("cuModuleLoadData"), "it is not tried again")
		require.Zero(t, e.calls("cuLaunchKernel"))
	})
	t.Run("by the arrays", func(t *testing.T) {
		e := emulate(t, nil)
		m := newRoom(t, e.Backend, backends.CUDA, 1024)
		opaque := m.singles()
		opaque.Element.Kind = backends.Opaque
		require.ErrorIs(t, e.Convert(m.doubles(), opaque, m.stream), errors.ErrUnsupported)
		pageable := m.singles()
		pageable.Allocator, pageable.Device = backends.Malloc, backends.HostDevice
		require.ErrorIs(t, e.Convert(m.doubles(), pageable, m.stream), errors.ErrUnsupported)
		require.Zero(t, e.calls("cuModuleLoadData"))
	})
}

func TestConvertFailsToLaunch(t *testing.T) {
	e := emulate(t, nil)
	m := newRoom(t, e.Backend, backends.CUDA, 1024)
	const outOfResources = 701
	e.fail("cuLaunchKernel", 1, outOfResources)
	err := e.Convert(m.doubles(), m.singles(), m.stream)
	require.Error(t, err)
	require.NotErrorIs(t, err, errors.ErrUnsupported)
}

func TestConvertPinned(t *testing.T) {
	e := emulate(t, nil)
	m := newRoom(t, e.Backend, backends.CUDA, 1024)
	pinned := backends.Region{Allocator: backends.CUDAHost, Device: backends.HostDevice}
	var err error
	pinned.Address, err = e.Allocate(backends.Request{Allocator: pinned.Allocator, Device: pinned.Device, Size: 80})
	require.NoError(t, err)
	values := unsafe.Slice((*float64)(*(*unsafe.Pointer)(unsafe.Pointer(&pinned.Address))), 10)
	for i := range values {
		values[i] = float64(i)
	}
	outside := m.doubles()
	outside.Region = pinned
	require.NoError(t, e.Convert(m.singles(), outside, m.stream))
	require.NoError(t, e.Synchronize(0, m.stream))
	clear(values)
	require.NoError(t, e.Convert(outside, m.singles(), m.stream))
	require.NoError(t, e.Synchronize(0, m.stream))
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, values)
	require.NoError(t, e.Free(pinned, 80, 0))
}

// realBackend is a backend over the machine's own driver.
func realBackend(t testing.TB) *Backend {
	b := New(os.Getenv)
	if err := b.Probe(); err != nil {
		require.ErrorIs(t, err, backends.ErrUnavailable)
		t.Skip(err)
	}
	return b
}

// BenchmarkConvertOnDevice counts bytes read and written.
func BenchmarkConvertOnDevice(b *testing.B) {
	backend := realBackend(b)
	const room, side = 1 << 30, 8192
	from, to := newRoom(b, backend, backends.CUDA, room), newRoom(b, backend, backends.CUDA, room)
	measure := func(name string, bytes int, enqueue func() error) {
		b.Run(name, func(b *testing.B) {
			require.NoError(b, enqueue())
			require.NoError(b, backend.Synchronize(0, to.stream))
			const together = 10
			for b.Loop() {
				for range together {
					_ = enqueue()
				}
				require.NoError(b, backend.Synchronize(0, to.stream))
			}
			b.ReportMetric(float64(bytes*together*b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
	array := func(m *deviceRoom, shift int, e backends.Element, shape, strides []int) backends.Strided {
		s := backends.Strided{Region: m.Region, Element: e, Shape: shape, Strides: strides}
		s.Address += backends.Address(shift)
		return s
	}
	f2, f4, f8 := element(backends.Float, 2), element(backends.Float, 4), element(backends.Float, 8)
	brain, i4, u1, i8 := element(backends.BrainFloat, 2), element(backends.Signed, 4), element(backends.Unsigned, 1),
		element(backends.Signed, 8)
	boolean, c8, c16 := element(backends.Boolean, 1), element(backends.ComplexNumber, 8),
		element(backends.ComplexNumber, 16)
	const count = 64 << 20
	measure("plain copy", 2*4*count, func() error {
		_, err := backend.Copy(to.Region, from.Region, 4*count, to.stream)
		return err
	})
	for _, c := range []struct {
		name   string
		st, dt backends.Element
	}{
		{"float32 to float64", f4, f8}, {"float64 to float32", f8, f4}, {"float16 to float32", f2, f4},
		{"float32 to float16", f4, f2},
		{"float64 to float16", f8, f2}, {"float16 to bfloat16", f2, brain}, {"int32 to float32", i4, f4},
		{"float64 to int64", f8, i8},
		{"uint8 to float32", u1, f4}, {"float32 to uint8", f4, u1}, {"uint8 to bool", u1, boolean},
		{"complex64 to complex128", c8, c16},
		{"complex128 to float32", c16, f4}, {"float32 to complex64", f4, c8},
	} {
		n := min(count, room/c.st.Size, room/c.dt.Size)
		for _, shift := range []int{0, 4, 1} {
			name := c.name
			if shift > 0 {
				name = fmt.Sprintf("%s, shifted by %d", c.name, shift)
			}
			dst, src := array(to, shift, c.dt, []int{n - 8}, []int{c.dt.Size}),
				array(from, shift, c.st, []int{n - 8}, []int{c.st.Size})
			measure(name, n*(c.st.Size+c.dt.Size), func() error { return backend.Convert(dst, src, to.stream) })
			if c.st != f4 {
				break
			}
		}
	}
	for _, size := range []int{1, 2, 4, 8, 12, 16} {
		e, shape := element(backends.Opaque, size), []int{side, side}
		dst := array(to, 0, e, shape, []int{size * side, size})
		src := array(from, 0, e, shape, []int{size, size * side})
		measure(fmt.Sprintf("transpose of %d bytes", size), 2*side*side*size, func() error {
			return backend.Convert(dst, src, to.stream)
		})
	}
	transposed := array(from, 0, f4, []int{side, side}, []int{4, 4 * side})
	measure("transposed float32 to float64", side*side*12, func() error {
		return backend.Convert(array(to, 0, f8, []int{side, side}, []int{8 * side, 8}), transposed, to.stream)
	})
	measure("every other float32", side*side/2*4*3, func() error {
		return backend.Convert(array(to, 0, f4, []int{side * side / 2}, []int{4}),
			array(from, 0, f4, []int{side * side / 2}, []int{8}), to.stream)
	})
	measure("rows of 1001 float32 of 1024", 65536*1001*8, func() error {
		return backend.Convert(array(to, 0, f4, []int{65536, 1001}, []int{4004, 4}),
			array(from, 0, f4, []int{65536, 1001}, []int{4096, 4}), to.stream)
	})
	measure("five dimensions", 16*16*16*128*128*8, func() error {
		return backend.Convert(
			array(to, 0, f4, []int{16, 16, 16, 128, 128}, []int{4 << 22, 4 << 18, 4 << 14, 4 << 7, 4}),
			array(from, 0, f4, []int{16, 16, 16, 128, 128}, []int{4 << 14, 4 << 18, 4 << 22, 4 << 7, 4}), to.stream)
	})
	for _, size := range []int{8, 12, 16} {
		pattern := []byte("ABCDEFGHIJKLMNOP")[:size]
		measure(fmt.Sprintf("fill with %d bytes", size), room/size*size, func() error {
			return backend.fillByKernel(to.Region, pattern, room/size, to.stream)
		})
	}
	measure("launch, in billions a second", 1, func() error {
		return backend.fillByKernel(to.Region, []byte{1, 2, 3}, 1, to.stream)
	})
}
