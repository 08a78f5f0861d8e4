package elements

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/cuda"
)

var kindsOnDevice = map[ai.Kind]backends.ElementKind{
	ai.KindBool: backends.Boolean, ai.KindSigned: backends.Signed, ai.KindUnsigned: backends.Unsigned,
	ai.KindFloat: backends.Float, ai.KindComplex: backends.ComplexNumber,
}

func elementOnDevice(t ai.ElementType) backends.Element {
	if t == ai.BFloat16 {
		return backends.Element{Kind: backends.BrainFloat, Size: 2}
	}
	return backends.Element{Kind: kindsOnDevice[t.Kind()], Size: t.Size()}
}

// onDevice runs Convert of the cuda backend. The driver is the machine's own, or
// the emulator, which runs the same kernels on the host.
type onDevice struct {
	*cuda.Backend
	t        *testing.T
	dst, src backends.Region
	stream   backends.Stream
}

const roomOnDevice = 4 << 20

func openDevice(t *testing.T, library string) *onDevice {
	d := &onDevice{t: t, Backend: cuda.New(func(name string) string {
		if name == cuda.LibrarySetting && library != "" {
			return library
		}
		return os.Getenv(name)
	})}
	if err := d.Probe(); err != nil {
		require.ErrorIs(t, err, backends.ErrUnavailable)
		t.Skip(err)
	}
	var err error
	d.stream, err = d.NewStream(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DestroyStream(0, d.stream)) })
	for _, r := range []*backends.Region{&d.dst, &d.src} {
		*r = backends.Region{Allocator: backends.CUDA, Device: 0}
		r.Address, err = d.Allocate(backends.Request{Allocator: r.Allocator, Device: r.Device, Size: roomOnDevice})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Free(*r, roomOnDevice, 0)) })
	}
	return d
}

func (d *onDevice) copy(dst, src backends.Region, bytes int) {
	_, err := d.Copy(dst, src, bytes, d.stream)
	require.NoError(d.t, err)
	require.NoError(d.t, d.Synchronize(0, d.stream))
}

var onHeap []byte // what is kept here is no part of a stack, which may move

// inHost is Go memory, for a copy that is over before b is.
func inHost(b []byte) backends.Region {
	onHeap = b
	return backends.Region{Address: backends.Address(uintptr(at(b))), Allocator: backends.Malloc,
		Device: backends.HostDevice}
}

// convert converts n elements that lie gap bytes apart in the target, both
// regions shifted by some bytes.
func (d *onDevice) convert(dt, st ai.ElementType, src []byte, shift, gap int) []byte {
	n := len(src) / st.Size()
	step := dt.Size() + gap
	dst, from := d.dst, d.src
	dst.Address += backends.Address(shift)
	from.Address += backends.Address(shift)
	d.copy(from, inHost(src), len(src))
	require.NoError(d.t, d.Convert(
		backends.Strided{Region: dst, Element: elementOnDevice(dt), Shape: []int{n}, Strides: []int{step}},
		backends.Strided{Region: from, Element: elementOnDevice(st), Shape: []int{n}, Strides: []int{st.Size()}},
		d.stream))
	all := make([]byte, n*step)
	d.copy(inHost(all), dst, len(all)-gap)
	result := make([]byte, 0, n*dt.Size())
	for i := range n {
		result = append(result, all[i*step:i*step+dt.Size()]...)
	}
	return result
}

func emulator(t *testing.T) string {
	for variable, name := range map[string]string{"CC": "cc", "CXX": "c++"} {
		if own := os.Getenv(variable); own != "" {
			name = own
		}
		// The first word of a command, such as "python3 -m ziglang cc".
		if _, err := exec.LookPath(strings.Fields(name)[0]); err != nil {
			t.Skip(err)
		}
	}
	file := filepath.Join(t.TempDir(), "libemulator.so")
	build := exec.Command("sh", "../../../tests/emulator/build.sh", file)
	// Nothing else in the process may take it for the driver.
	build.Env = append(os.Environ(), "SONAME=libhamr-rules-emulator.so")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return file
}

func TestDevicesFollowTheRules(t *testing.T) {
	t.Run("emulator", func(t *testing.T) { openDevice(t, emulator(t)).compare() })
	t.Run("driver", func(t *testing.T) { openDevice(t, "").compare() })
}

func (d *onDevice) compare() {
	types := slices.DeleteFunc(ai.Types(), func(t ai.ElementType) bool { return !t.OnDevices() })
	for _, st := range types {
		src := trickyValues(st)
		n := len(src) / st.Size()
		for _, dt := range types {
			want := make([]byte, n*dt.Size())
			require.NoError(d.t, Convert(at(want), dt, at(src), st, n))
			for _, way := range [][2]int{{0, 0}, {8, 0}, {1, 0}, {0, dt.Size()}, {3, 1}} {
				got := d.convert(dt, st, src, way[0], way[1])
				if bytes.Equal(want, got) {
					continue
				}
				for i := range n {
					in, w, g := src[i*st.Size():(i+1)*st.Size()], want[i*dt.Size():(i+1)*dt.Size()], got[i*dt.Size():(i+1)*dt.Size()]
					require.Equal(d.t, w, g, "%s to %s: element %d, %x, shifted by %d with a gap of %d", st, dt, i, in, way[0], way[1])
				}
			}
		}
	}
}

// trickyValues are all that there are of 16 bits and less, and else what rounds,
// overflows, or is no number, and random bits.
func trickyValues(t ai.ElementType) (values []byte) {
	random := rand.New(rand.NewPCG(1, uint64(t)))
	order := binary.NativeEndian
	switch t {
	case ai.Float32:
		for _, v := range trickyFloats() {
			bits := math.Float32bits(float32(v))
			for _, near := range []uint32{bits - 2, bits - 1, bits, bits + 1, bits + 2} {
				values = order.AppendUint32(values, near)
			}
		}
		for _, payload := range []uint32{1, 0x1fff, 0x2000, 0x12345, 0x3fffff, 0x400000, 0x400001, 0x7fffff} {
			values = order.AppendUint32(order.AppendUint32(values, f32Infinity|payload), 1<<31|f32Infinity|payload)
		}
		for range 1000 {
			values = order.AppendUint32(values, random.Uint32())
		}
	case ai.Float64:
		for _, v := range trickyFloats() {
			bits := math.Float64bits(v)
			for _, near := range []uint64{bits - 1<<29, bits - 2, bits - 1, bits, bits + 1, bits + 2, bits + 1<<29} {
				values = order.AppendUint64(values, near)
			}
		}
		for _, payload := range []uint64{1, 1 << 28, 1 << 29, 1<<42 - 1, 1 << 42, 0x123456789abcd, 1 << 51, 1<<51 | 1,
			1<<52 - 1} {
			values = order.AppendUint64(order.AppendUint64(values, f64Infinity|payload), 1<<63|f64Infinity|payload)
		}
		for range 1000 {
			values = order.AppendUint64(values, random.Uint64())
			values = order.AppendUint64(values, math.Float64bits(float64(math.Float32frombits(random.Uint32()))))
		}
	case ai.Complex64, ai.Complex128:
		part := ai.Float32
		if t == ai.Complex128 {
			part = ai.Float64
		}
		parts := trickyValues(part)
		size := part.Size()
		pick := func() {
			i := random.IntN(len(parts)/size) * size
			values = append(values, parts[i:i+size]...)
		}
		for i := 0; i < len(parts); i += size {
			values = append(values, parts[i:i+size]...)
			pick()
			pick()
			values = append(values, parts[i:i+size]...)
		}
		values = append(values, make([]byte, t.Size())...)
	default:
		values = trickyIntegers(random, t.Size())
	}
	// A device takes them in groups then, unless they are shifted.
	for len(values)/t.Size()%8 != 0 {
		values = append(values, values[:t.Size()]...)
	}
	return values
}

func trickyIntegers(random *rand.Rand, size int) (values []byte) {
	put := func(v uint64) {
		// The low bytes, on any machine.
		whole := binary.NativeEndian.AppendUint64(nil, v<<(64-8*size)>>(64-8*size))
		if low := unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8); low[0] == byte(v) {
			values = append(values, whole[:size]...)
		} else {
			values = append(values, whole[8-size:]...)
		}
	}
	if size <= 2 {
		for v := range uint64(1) << (8 * size) {
			put(v)
		}
		return values
	}
	for shift := range 8 * size {
		for _, more := range []uint64{0, 1, 1 << max(0, shift-24), 1<<max(0, shift-24) + 1, 3 << max(0, shift-25),
			1 << max(0, shift-53), 3 << max(0, shift-54), 1 << max(0, shift-11)} {
			put(1<<shift + more)
			put(1<<shift - more)
			put(-(1<<shift + more))
		}
	}
	for range 1000 {
		put(random.Uint64())
		put(random.Uint64() >> random.UintN(64))
	}
	return values
}

func trickyFloats() (values []float64) {
	add := func(v float64) { values = append(values, v, -v) }
	for _, v := range []float64{0, 0.1, 0.5, 0.9, 1, 1.5, 2.5, 255, 65504, 65519, 65520, 65535, math.MaxFloat32,
		math.MaxFloat64,
		math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64, math.Inf(1), 0x1.ffffffp127, 0x1.fep127, 0x1.ffp127,
		0x1p-126, 0x1p-1022} {
		add(v)
	}
	more := []float64{1, 1.5, 1 + 0x1p-7, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-10, 1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-24,
		1 + 0x3p-24, 2 - 0x1p-11, 2 - 0x1p-24}
	for exponent := -150; exponent <= 130; exponent++ {
		// Where neither subnormals nor the limits of a type are near, few will do.
		some := more[:2]
		if exponent < -120 || exponent > -30 && exponent < 20 || (exponent+1)%32 <= 1 || exponent > 120 {
			some = more
		}
		for _, v := range some {
			add(math.Ldexp(v, exponent))
		}
	}
	return values
}
