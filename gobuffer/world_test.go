package gobuffer_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// world is a Runtime over real host memory and two vendors' devices. Its end
// checks that all memory was given back.
type world struct {
	t       testing.TB
	runtime *gobuffer.Runtime
	cuda    *backendtest.Fake
	hip     *backendtest.Fake
	mode    gobuffer.Transfer
	lost    int // events whose destruction a test made fail
	devices []backendtest.Device
}

// late is the harshest of devices: nothing is done until somebody waits for it,
// not even what CUDA does at once.
var late = backendtest.FakeOptions{Manual: true, Strict: true}

func newWorld(t testing.TB, devices int, o backendtest.FakeOptions) *world {
	t.Helper()
	o.Devices = devices
	cuda, hip := o, o
	cuda.Space, hip.Space = backends.SpaceCUDA, backends.SpaceHIP
	w := &world{t: t, cuda: backendtest.NewFake(cuda), hip: backendtest.NewFake(hip)}
	w.devices = []backendtest.Device{w.cuda, w.hip}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), w.cuda, w.hip)
	require.NoError(t, err)
	gobuffer.WaitAtReleases(w.runtime)
	t.Cleanup(w.assertClean)
	return w
}

func (w *world) assertClean() {
	w.t.Helper()
	w.cuda.AssertClean(w.t)
	w.hip.AssertClean(w.t)
	_, cudaEvents := w.cuda.LiveHandles()
	_, hipEvents := w.hip.LiveHandles()
	assert.Equal(w.t, w.lost, cudaEvents+hipEvents, "events left")
	w.assertNothingLive()
}

func (w *world) assertNothingLive() {
	w.t.Helper()
	for _, s := range w.runtime.Statistics() {
		assert.Zero(w.t, s.Live, "live allocations of %s", s.Allocator)
		assert.Zero(w.t, s.Current, "bytes of %s", s.Allocator)
		assert.Zero(w.t, s.Adopted, "adopted memory of %s", s.Allocator)
	}
}

// place is somewhere that a buffer can be.
type place struct {
	allocator backends.Allocator
	device    int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.allocator, p.device) }

func (p place) options(t gobuffer.Transfer) gobuffer.Options {
	return gobuffer.Options{Allocator: p.allocator, Device: p.device, Transfer: t}
}

// places lists every allocator that a world has, on every device.
func places(devices int) []place { return placesOf(devices, "cuda", "hip") }

func placesOf(devices int, runtimes ...string) (list []place) {
	for _, a := range backends.Allocators() {
		switch {
		case a.Kind() == backends.Pageable, a.Kind() == backends.Pinned && slices.Contains(runtimes, a.Backend()):
			list = append(list, place{a, backends.HostDevice})
		case slices.Contains(runtimes, a.Backend()):
			for d := range devices {
				list = append(list, place{a, d})
			}
		}
	}
	return list
}

// model is what an Array should hold: elements in C order.
type model struct {
	kind  arrayiface.ElementType
	shape []int
	data  []byte
}

// counting is a model whose elements are all different where the type has so
// many values, and valid ones of the type.
func counting(kind arrayiface.ElementType, shape ...int) model {
	m := model{kind, slices.Clone(shape), nil}
	for i := range count(shape) {
		m.data = append(m.data, element(kind, i+1)...)
	}
	return m
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// element is the number v, at most 100, as the bytes of one element.
func element(kind arrayiface.ElementType, v int) []byte {
	e := make([]byte, kind.Size())
	p := unsafe.Pointer(&e[0])
	switch kind {
	case arrayiface.Bool:
		e[0] = byte(v % 2)
	case arrayiface.Int16, arrayiface.Uint16:
		*(*int16)(p) = int16(v)
	case arrayiface.Int32, arrayiface.Uint32:
		*(*int32)(p) = int32(v)
	case arrayiface.Int64, arrayiface.Uint64:
		*(*int64)(p) = int64(v)
	case arrayiface.Float32, arrayiface.Complex64:
		*(*float32)(p) = float32(v)
	case arrayiface.Float64, arrayiface.Complex128:
		*(*float64)(p) = float64(v)
	case arrayiface.Float16, arrayiface.BFloat16:
		*(*uint16)(p) = uint16(0x3c00 + v)
	default:
		e[0] = byte(v)
	}
	return e
}

func (m model) count() int { return count(m.shape) }

func (m model) at(i int) []byte { return m.data[i*m.kind.Size():][:m.kind.Size()] }

// arrangement says how elements lie in memory.
type arrangement struct {
	name   string
	layout func(kind arrayiface.ElementType, shape []int) (strides []int)
}

var arrangements = []arrangement{
	{"C", func(k arrayiface.ElementType, s []int) []int { return arrayiface.CStrides(s, k.Size()) }},
	{"Fortran", func(k arrayiface.ElementType, s []int) []int { return arrayiface.FStrides(s, k.Size()) }},
	{"every second", func(k arrayiface.ElementType, s []int) []int {
		return scaled(arrayiface.CStrides(s, k.Size()), 2)
	}},
	{"backwards", func(k arrayiface.ElementType, s []int) []int {
		return scaled(arrayiface.CStrides(s, k.Size()), -1)
	}},
}

func scaled(strides []int, by int) []int {
	for i := range strides {
		strides[i] *= by
	}
	return strides
}

const marker = 0x5A // bytes that belong to no element

// lay makes an Array in new memory that holds m as arranged, with a margin on
// both sides that must stay as it is.
func (w *world) lay(p place, o gobuffer.Options, m model, how arrangement) *gobuffer.Array {
	w.t.Helper()
	layout, err := arrayiface.NewLayout(m.kind, m.shape, how.layout(m.kind, m.shape))
	require.NoError(w.t, err)
	low, high := layout.Span()
	const margin = 48
	image := bytes.Repeat([]byte{marker}, high-low+2*margin)
	for i := range m.count() {
		copy(image[margin-low+elementOffset(layout, i):], m.at(i))
	}
	memory, err := w.runtime.Allocate(p.allocator, p.device, len(image), o.Stream, false)
	require.NoError(w.t, err)
	w.poke(memory, image)
	return gobuffer.View(memory, memory.Region().Address+backends.Address(margin-low), layout, layout.Count(), false, o)
}

func elementOffset(l arrayiface.Layout, i int) int {
	at := 0
	for d := len(l.Shape) - 1; d >= 0; d-- {
		at += i % l.Shape[d] * l.Strides[d]
		i /= l.Shape[d]
	}
	return at
}

// strays counts the bytes outside a's elements, in the memory that lay made for
// it, that are no longer as lay left them.
func (w *world) strays(a *gobuffer.Array) (n int) {
	w.t.Helper()
	require.NoError(w.t, a.Synchronize())
	image := w.peek(a.Memory())
	start := int(a.Address() - a.Memory().Region().Address)
	for i := range a.Size() {
		for b := range a.Type().Size() {
			image[start+elementOffset(a.Layout(), i)+b] = marker
		}
	}
	for _, b := range image {
		if b != marker {
			n++
		}
	}
	return n
}

// deviceOf is nil for memory of no device's runtime.
func (w *world) deviceOf(m *gobuffer.Memory) backendtest.Device {
	return w.named(m.Region().Allocator.Backend())
}

func (w *world) named(backend string) backendtest.Device {
	for _, d := range w.devices {
		if d.Name() == backend {
			return d
		}
	}
	return nil
}

// poke and peek go round the core: what they see is the truth.
func (w *world) poke(m *gobuffer.Memory, data []byte) {
	if f := w.deviceOf(m); f != nil {
		f.Poke(m.Region().Address, data)
		return
	}
	copy(hostBytes(m.Region().Address, len(data)), data)
}

func (w *world) peek(m *gobuffer.Memory) []byte {
	if f := w.deviceOf(m); f != nil {
		return f.Peek(m.Region().Address, m.Size())
	}
	return bytes.Clone(hostBytes(m.Region().Address, m.Size()))
}

func hostBytes(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(pointer(at)), size)
}

func pointer(at backends.Address) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// array makes an Array of a's own memory that holds m in C order.
func (w *world) array(o gobuffer.Options, m model) *gobuffer.Array {
	w.t.Helper()
	a, err := w.runtime.NewArray(m.kind, m.shape, o)
	require.NoError(w.t, err)
	if len(m.data) > 0 {
		w.poke(a.Memory(), m.data)
	}
	return a
}

// read returns a's elements as code on the host sees them.
func (w *world) read(a *gobuffer.Array) model {
	w.t.Helper()
	h, err := a.Access(backends.SpaceHost, backends.HostDevice)
	require.NoError(w.t, err)
	m := model{a.Type(), slices.Clone(h.Layout().Shape), []byte{}}
	for i := range h.Layout().Count() {
		m.data = append(m.data, hostBytes(h.Address()+backends.Address(elementOffset(h.Layout(), i)), a.Type().Size())...)
	}
	require.NoError(w.t, h.Release())
	return m
}

func (w *world) assertHolds(a *gobuffer.Array, want model, about ...any) bool {
	w.t.Helper()
	got := w.read(a)
	if want.data == nil {
		want.data = []byte{}
	}
	return assert.Equal(w.t, want, got, about...)
}

// scalar is a single value on the host.
func (w *world) scalar(kind arrayiface.ElementType, v int) *gobuffer.Array {
	return w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), model{kind, []int{}, element(kind, v)})
}

// setSeven makes every element of a 7, which is of int32.
func (w *world) setSeven(a *gobuffer.Array) {
	w.t.Helper()
	v := w.scalar(a.Type(), 7)
	require.NoError(w.t, a.Fill(v))
	closeAll(w.t, v)
}

func (w *world) stream(f *backendtest.Fake, device int) backends.Stream {
	w.t.Helper()
	require.NoError(w.t, f.Probe())
	s, err := f.NewStream(max(device, 0)) // page-locked memory belongs to no device
	require.NoError(w.t, err)
	return s
}

func closeAll(t testing.TB, list ...*gobuffer.Array) {
	t.Helper()
	for _, a := range list {
		assert.NoError(t, a.Close())
	}
}
