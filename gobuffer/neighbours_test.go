package gobuffer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// beside is a device on which another library's kernel runs before each call that has
// to do with elements, on a stream that nobody else knows.
type beside struct {
	*backendtest.Fake
	kernel func()
}

func (b *beside) run() {
	if b.kernel != nil {
		b.kernel()
	}
}

func (b *beside) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	b.run()
	return b.Fake.Copy(dst, src, size, s)
}

func (b *beside) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	b.run()
	return b.Fake.Fill(dst, pattern, count, s)
}

func (b *beside) Convert(dst, src backends.Strided, s backends.Stream) error {
	b.run()
	return b.Fake.Convert(dst, src, s)
}

func (b *beside) Synchronize(device int, s backends.Stream) error {
	b.run()
	return b.Fake.Synchronize(device, s)
}

// crowd is a world whose devices others use, too.
type crowd struct {
	*world
	besides map[string]*beside
}

func newCrowd(t *testing.T, o backendtest.FakeOptions) *crowd {
	w := newWorld(t, 2, o)
	c := &crowd{w, map[string]*beside{"cuda": {Fake: w.cuda}, "hip": {Fake: w.hip}}}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), c.besides["cuda"], c.besides["hip"])
	require.NoError(t, err)
	return c
}

// strided is an array of which others write the bytes between the elements.
type strided struct {
	*gobuffer.Array
	between []int // where those bytes are, counted from the start of the memory
	written byte  // what was last written there
}

// share makes a strided array at p, in memory of its own with a margin on both sides,
// and lets a kernel write what is between its elements from now on.
func (c *crowd) share(p place, mode gobuffer.Transfer, m model, strides []int) *strided {
	c.t.Helper()
	layout, err := arrayiface.NewLayout(m.kind, m.shape, strides)
	require.NoError(c.t, err)
	s := &strided{Array: c.lay(p, p.options(mode), m,
		arrangement{"given", func(arrayiface.ElementType, []int) []int { return strides }})}
	start := int(s.Address() - s.Memory().Region().Address)
	elements := make([]bool, s.Memory().Size())
	for i := range layout.Count() {
		for b := range m.kind.Size() {
			elements[start+elementOffset(layout, i)+b] = true
		}
	}
	for at, used := range elements {
		if !used {
			s.between = append(s.between, at)
		}
	}
	other := c.besides[p.allocator.Backend()]
	stream := c.stream(other.Fake, p.device)
	base, size := s.Memory().Region().Address, s.Memory().Size()
	other.kernel = func() {
		s.written++
		value := s.written
		require.NoError(c.t, other.Launch(p.device, stream, func(memory func(backends.Address, int) []byte) {
			for _, at := range s.between {
				memory(base, size)[at] = value
			}
		}))
		require.NoError(c.t, other.Fake.Synchronize(p.device, stream))
	}
	return s
}

// assertHolds ends the other library's work and checks every byte of the memory.
func (c *crowd) assertHolds(s *strided, want model, about string) bool {
	c.t.Helper()
	c.besides[s.Memory().Region().Allocator.Backend()].kernel = nil
	require.NoError(c.t, s.Synchronize())
	image := c.peek(s.Memory())
	got := model{kind: s.Type(), shape: want.shape}
	start := int(s.Address() - s.Memory().Region().Address)
	for i := range s.Size() {
		got.data = append(got.data, image[start+elementOffset(s.Layout(), i):][:s.Type().Size()]...)
	}
	reverted := 0
	for _, at := range s.between {
		if image[at] != s.written {
			reverted++
		}
	}
	return assert.Equal(c.t, want, got, about) &&
		assert.Zero(c.t, reverted, "%s: of %d bytes that others wrote between the elements", about, len(s.between))
}

var neighbourModes = map[string]backendtest.FakeOptions{
	"with kernels":       late,
	"without kernels":    {Manual: true, Strict: true, NoConvert: true},
	"as CUDA":            {Manual: true},
	"as CUDA, no kernel": {Manual: true, NoConvert: true},
}

// Other streams and threads own what is between the elements of a strided array.
func TestWritingStridedElementsKeepsWhatOthersWriteBetween(t *testing.T) {
	even := []int{0, 2, 4, 6, 8, 10}
	for name, o := range neighbourModes {
		for _, p := range []place{{backends.CUDA, 0}, {backends.CUDAAsync, 1}, {backends.HIP, 1}} {
			for _, kind := range []arrayiface.ElementType{arrayiface.Int32, arrayiface.Float8E4M3FN} {
				for operation, f := range map[string]func(w *world, a, b *gobuffer.Array) error{
					"write":  func(_ *world, a, b *gobuffer.Array) error { return a.Write(b) },
					"assign": func(_ *world, a, b *gobuffer.Array) error { return a.Assign(b) },
					"set":    func(_ *world, a, b *gobuffer.Array) error { return a.Set(0, b, 0, 6) },
					"fill": func(w *world, a, b *gobuffer.Array) error {
						v := w.slice(b, 0, 1, 1)
						defer v.Close()
						if err := a.Fill(v); err != nil {
							return err
						}
						return a.Write(b)
					},
				} {
					for _, from := range []place{{backends.Malloc, -1}, {backends.CUDAHost, -1}, {backends.CUDA, 0},
						{backends.HIPUnified, 0}} {
						c := newCrowd(t, o)
						source := model{arrayiface.Float32, []int{6}, nil}
						want := model{kind, []int{6}, nil}
						for _, v := range even {
							source.data = append(source.data, element(arrayiface.Float32, v)...)
						}
						b := c.array(from.options(gobuffer.Async), source)
						inMemory, err := b.Copy(place{backends.Malloc, -1}.options(gobuffer.Sync), kind)
						require.NoError(t, err)
						want.data = c.peek(inMemory.Memory())
						s := c.share(p, gobuffer.Async, counting(kind, 6), []int{2 * kind.Size()})
						require.NoError(t, f(c.world, s.Array, b))
						c.assertHolds(s, want, fmt.Sprintf("%s, %s of %s at %s from %s", name, operation, kind, p, from))
						closeAll(t, s.Array, b, inMemory)
					}
				}
			}
		}
	}
}

// A run of C order that ends inside rows is the elements of that run, not the rows.
func TestSettingARunOfAStridedArrayKeepsItsOtherElements(t *testing.T) {
	for name, o := range neighbourModes {
		for at := range 24 {
			for n := 1; at+n <= 24; n++ {
				c := newCrowd(t, o)
				a := c.lay(place{backends.CUDA, 0}, place{backends.CUDA, 0}.options(gobuffer.Async),
					counting(arrayiface.Int16, 2, 3, 4), arrangements[2])
				other, start := c.besides["cuda"], int(a.Address()-a.Memory().Region().Address)
				stream := c.stream(c.cuda, 0)
				base, size, written := a.Memory().Region().Address, a.Memory().Size(), 100
				other.kernel = func() {
					written++
					value := element(arrayiface.Int16, written)
					require.NoError(t, other.Launch(0, stream, func(memory func(backends.Address, int) []byte) {
						for i := range 24 {
							if i < at || i >= at+n {
								copy(memory(base, size)[start+elementOffset(a.Layout(), i):], value)
							}
						}
					}))
					require.NoError(t, other.Fake.Synchronize(0, stream))
				}
				b := c.array(place{backends.Malloc, -1}.options(gobuffer.Async), counting(arrayiface.Int16, n+2))
				require.NoError(t, a.Set(at, b, 2, n))
				other.kernel = nil
				require.NoError(t, a.Synchronize())
				want := model{arrayiface.Int16, []int{2, 3, 4}, nil}
				for i := range 24 {
					v := written
					if i >= at && i < at+n {
						v = i - at + 3
					}
					want.data = append(want.data, element(arrayiface.Int16, v)...)
				}
				c.world.assertHolds(a, want, "%s, %d from %d on", name, n, at)
				closeAll(t, a, b)
			}
		}
	}
}

func TestSettingARunOfAStridedArrayFromItself(t *testing.T) {
	onEveryPlace(t, 1, func(t *testing.T, w *world, p place) {
		all := w.array(p.options(w.mode), counting(arrayiface.Int32, 12))
		l, err := arrayiface.NewLayout(arrayiface.Int32, []int{3, 4}, []int{4, 12})
		require.NoError(t, err)
		a := gobuffer.View(all.Memory().Retain(), all.Address(), l, 12, false, all.Options())
		require.NoError(t, a.Set(1, all, 0, 10))
		want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		for e := 1; e <= 10; e++ {
			want[e/4+e%4*3] = e
		}
		w.assertHolds(all, numbers(want...))
		closeAll(t, all, a)
	})
}

// TestRandomStridedWritesAgreeWithAModel writes arrays of all sorts into memory that
// others write between the elements, and looks at each byte.
func TestRandomStridedWritesAgreeWithAModel(t *testing.T) {
	for name, o := range map[string]backendtest.FakeOptions{
		"with kernels": late, "without kernels": {Manual: true, Strict: true, NoConvert: true},
		"as CUDA": {Manual: true}, "synchronous": {Synchronous: true, NoConvert: true}, "full": {Manual: true, Strict: true,
			Memory: 4096},
	} {
		seed := rand.Uint64()
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			for round := range 400 {
				writeAtRandom(t, o, random)
				if t.Failed() {
					t.Fatalf("seed %d, round %d", seed, round)
				}
			}
		})
	}
}

var neighbourTypes = []arrayiface.ElementType{arrayiface.Int32, arrayiface.Float64, arrayiface.Float8E5M2,
	arrayiface.Uint8, arrayiface.Int16}

func writeAtRandom(t *testing.T, o backendtest.FakeOptions, random *rand.Rand) {
	c := newCrowd(t, o)
	to := []place{{backends.CUDA, 1}, {backends.CUDAAsync, 0}, {backends.HIP, 0},
		{backends.CUDAUnified, 0}}[random.IntN(4)]
	kind := neighbourTypes[random.IntN(len(neighbourTypes))]
	shape, strides := apart(random, kind.Size())
	mode := gobuffer.Transfer(random.IntN(3))
	s := c.share(to, mode, counting(kind, shape...), strides)
	c.fillUp(o)
	all := places(2)
	from := all[random.IntN(len(all))]
	if o.Memory != 0 {
		from = place{backends.Malloc, -1}
	}
	sourceKind := neighbourTypes[random.IntN(len(neighbourTypes))]
	if random.IntN(2) == 0 {
		sourceKind = kind
	}
	source := counting(sourceKind, shape...)
	single := random.IntN(3) == 0
	if single {
		sourceKind = arrayiface.Int32
		source = model{sourceKind, []int{}, element(sourceKind, 1+random.IntN(90))}
	}
	about := fmt.Sprintf("%s of shape %v, strides %v, at %s from %s at %s, %s", kind, shape, strides, to, sourceKind, from,
		mode)
	reference := c.array(place{backends.Malloc, -1}.options(gobuffer.Sync),
		model{kind, shape, make([]byte, len(counting(kind, shape...).data))})
	b := c.lay(from, from.options(gobuffer.Async), source, arrangements[random.IntN(len(arrangements))])
	require.NoError(t, reference.Write(b))
	want := model{kind, shape, c.peek(reference.Memory())}
	if single && random.IntN(2) == 0 {
		about = "fill: " + about
		require.NoError(t, s.Fill(b), about)
	} else {
		require.NoError(t, s.Write(b), about)
	}
	c.assertHolds(s, want, about)
	closeAll(t, s.Array, b, reference)
}

// fillUp leaves no room on the first runtime's devices that are small.
func (c *crowd) fillUp(o backendtest.FakeOptions) {
	if o.Memory == 0 {
		return
	}
	for _, p := range []place{{backends.CUDA, 0}, {backends.CUDA, 1}, {backends.HIP, 0}} {
		require.NoError(c.t, c.besides[p.allocator.Backend()].Probe())
		free, _, err := c.besides[p.allocator.Backend()].MemoryInfo(p.device)
		require.NoError(c.t, err)
		m, err := c.runtime.Allocate(p.allocator, p.device, int(free), 0, false)
		require.NoError(c.t, err)
		c.t.Cleanup(func() { assert.NoError(c.t, m.Release()) })
	}
}

// apart is a shape with strides that let no two elements share bytes.
func apart(random *rand.Rand, size int) (shape, strides []int) {
	for {
		shape, strides = []int{}, []int{}
		for range random.IntN(4) {
			shape = append(shape, 1+random.IntN(4))
			strides = append(strides, random.IntN(12*size)-4*size)
		}
		seen := map[int]bool{}
		l, err := arrayiface.NewLayout(arrayiface.Uint8, shape, strides)
		if err != nil {
			continue
		}
		shared := false
		for i := range l.Count() {
			for b := range size {
				at := elementOffset(l, i) + b
				shared = shared || seen[at]
				seen[at] = true
			}
		}
		if !shared {
			return shape, strides
		}
	}
}

// As in NumPy, the last of the values that are written to one element stays.
func TestWritingToARepeatedElementKeepsTheLastValue(t *testing.T) {
	for name, o := range neighbourModes {
		c := newCrowd(t, o)
		p := place{backends.CUDA, 0}
		b := c.array(place{backends.Malloc, -1}.options(gobuffer.Async), counting(arrayiface.Int32, 3, 2))
		s := c.share(p, gobuffer.Async, model{arrayiface.Int32, []int{3, 2}, bytes.Repeat([]byte{0}, 24)}, []int{0, 8})
		require.NoError(t, s.Write(b))
		last := numbers(5, 6, 5, 6, 5, 6)
		last.shape = []int{3, 2}
		c.assertHolds(s, last, name)
		closeAll(t, s.Array, b)
	}
}
