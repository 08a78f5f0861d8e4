package cuda

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// hostKernels is a running kernels/host_main.cpp.
type hostKernels struct {
	program string
	in      io.Writer
	out     *bufio.Reader
}

func startHostKernels(t *testing.T) *hostKernels {
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "c++"
	}
	words := strings.Fields(compiler) // as "python3 -m ziglang c++" is
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("no C++ compiler: %v", err)
	}
	k := &hostKernels{program: filepath.Join(t.TempDir(), "kernels")}
	words = append(words, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-DHAMR_KERNELS_ON_HOST",
		"-x", "c++", "-o", k.program, "kernels/host_main.cpp", "kernels/kernels.cu")
	text, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	command := exec.Command(k.program)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, command.Wait())
	})
	k.in, k.out = in, bufio.NewReader(out)
	return k
}

// run launches a kernel with so many threads over memory, whose first byte has
// address 0.
func (k *hostKernels) run(t *testing.T, kernel string, argument unsafe.Pointer, size uintptr, threads int,
	memory []byte) {
	request := append([]byte(kernel), make([]byte, 32-len(kernel))...)
	for _, v := range []int{int(size), threads, len(memory)} {
		request = binary.NativeEndian.AppendUint64(request, uint64(v))
	}
	request = append(request, unsafe.Slice((*byte)(argument), size)...)
	_, err := k.in.Write(append(request, memory...))
	require.NoError(t, err)
	_, err = io.ReadFull(k.out, memory)
	require.NoError(t, err)
}

// convert is a converter that plans as Convert does, but for smaller launches.
func (k *hostKernels) convert(t *testing.T, r *rand.Rand, dst, src backends.Strided, memory []byte) {
	limit, blocks := mostInLaunch, 1+r.IntN(5)
	if len(memory) < 1<<16 && r.IntN(4) == 0 {
		limit = 64 + r.IntN(500)
	}
	steps, p, err := plan(dst, src, limit)
	require.NoError(t, err)
	copy(memory[p.dst:], memory[p.src:int(p.src)+p.bytes])
	for _, s := range steps {
		name, argument, size := s.kernel()
		k.run(t, name, argument, size, kernelThreads*min(s.blocks, blocks), memory)
	}
}

func TestKernelsOnHost(t *testing.T) {
	k := startHostKernels(t)
	t.Run("arguments", k.testArguments)
	t.Run("filling", k.testFilling)
	testConverting(t, k.convert, 1500)
}

func (k *hostKernels) testArguments(t *testing.T) {
	text, err := exec.Command(k.program, "layout").Output()
	require.NoError(t, err)
	var got []string
	snake := func(name string) (result string) {
		for _, c := range name {
			if c >= 'A' && c <= 'Z' {
				result += "_"
			}
			result += string(c)
		}
		return strings.ToLower(result)
	}
	for name, v := range map[string]any{
		"dimension":          kernelDimension{},
		"convert_argument":   convertArgument{},
		"line_argument":      lineArgument{},
		"transpose_argument": transposeArgument{},
		"fill_argument":      fillArgument{},
		"copy_run":           copyRun{},
		"copy_argument":      copyArgument{},
		"block_index":        blockIndex{},
		"check_argument":     checkArgument{},
		"block_pair":         blockPair{},
		"block_report":       blockReport{},
		"blocks_argument":    blocksArgument{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			got = append(got, fmt.Sprintf("%s.%s %d %d", name, snake(f.Name), f.Offset, f.Type.Size()))
		}
	}
	require.ElementsMatch(t, strings.Split(strings.TrimSpace(string(text)), "\n"), got)
}

// side is an array at random in memory that has just room for it.
type side struct {
	backends.Strided
	bytes int
}

// randomSide lays out an array whose elements share no bytes, or, if repeating,
// may do.
func randomSide(r *rand.Rand, e backends.Element, shape []int, repeating bool) side {
	s := side{Strided: backends.Strided{Element: e, Shape: shape, Strides: make([]int, len(shape))}}
	unit := e.Size
	switch r.IntN(4) {
	case 0: // no multiple of the element's size
		unit += r.IntN(4)
	case 1:
		unit *= 1 + r.IntN(2)
	}
	step, lowest, highest := unit, 0, 0
	order := r.Perm(len(shape))
	if r.IntN(2) == 0 {
		for i := range order {
			order[i] = len(shape) - 1 - i
		}
	}
	for _, axis := range order {
		stride := step
		step = step * shape[axis]
		if r.IntN(4) == 0 {
			step += unit * r.IntN(4)
		}
		if repeating && r.IntN(6) == 0 {
			stride = 0
		}
		if r.IntN(6) == 0 {
			stride = -stride
		}
		s.Strides[axis] = stride
		lowest += min(0, stride*(shape[axis]-1))
		highest += max(0, stride*(shape[axis]-1))
	}
	start := 16 * r.IntN(3)
	if r.IntN(3) == 0 {
		start += r.IntN(16)
	}
	s.Address = backends.Address(start - lowest)
	s.bytes = start - lowest + highest + e.Size + r.IntN(8)
	return s
}

func randomShape(r *rand.Rand) (shape []int) {
	room := 1 + r.IntN(3000)
	for range r.IntN(9) {
		n := 1 + r.IntN(min(room, []int{2, 3, 7, 40, 3000}[r.IntN(5)]))
		shape = append(shape, n)
		room /= n
	}
	r.Shuffle(len(shape), func(i, j int) { shape[i], shape[j] = shape[j], shape[i] })
	return shape
}

// eachElement gives the offsets of all elements.
func eachElement(s backends.Strided, visit func(at int)) {
	index := make([]int, len(s.Shape))
	for {
		at := int(s.Address)
		for i, v := range index {
			at += v * s.Strides[i]
		}
		visit(at)
		i := len(index) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < s.Shape[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

type pair struct {
	dst, src backends.Element
	convert  func(r *rand.Rand, dst, src []byte) // chooses src, too
}

func opaquePair(r *rand.Rand) pair {
	e := element(backends.Opaque, 1+r.IntN(16))
	return pair{e, e, func(r *rand.Rand, dst, src []byte) {
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		copy(dst, src)
	}}
}

var numbers = []backends.Element{
	element(backends.Boolean, 1),
	element(backends.Signed, 1), element(backends.Signed, 2), element(backends.Signed, 4), element(backends.Signed, 8),
	element(backends.Unsigned, 1), element(backends.Unsigned, 2), element(backends.Unsigned, 4),
	element(backends.Unsigned, 8),
	element(backends.Float, 2), element(backends.Float, 4), element(backends.Float, 8), element(backends.BrainFloat, 2),
	element(backends.ComplexNumber, 8), element(backends.ComplexNumber, 16),
}

// numberPair is of numbers that every type but Boolean holds: here it is about
// where elements go, for the rules have tests beside those of the host.
func numberPair(r *rand.Rand) pair {
	p := pair{dst: numbers[r.IntN(len(numbers))], src: numbers[r.IntN(len(numbers))]}
	p.convert = func(r *rand.Rand, dst, src []byte) {
		re, im := r.IntN(4)*r.IntN(32), r.IntN(2)
		if p.src.Kind == backends.Boolean {
			re = min(re, 1)
		}
		encode(src, p.src, re, im)
		if p.src.Kind != backends.ComplexNumber {
			im = 0
		}
		if p.dst.Kind == backends.Boolean {
			re = min(re+im, 1)
		}
		encode(dst, p.dst, re, im)
	}
	return p
}

// encode writes a number from 0 to 128, with an imaginary part where there is room.
func encode(to []byte, e backends.Element, re, im int) {
	order := binary.NativeEndian
	var half [9]uint16 // of powers of two
	for i := range half {
		half[i] = uint16(15+i) << 10
	}
	switch e {
	case element(backends.ComplexNumber, 8):
		encode(to, element(backends.Float, 4), re, im)
		encode(to[4:], element(backends.Float, 4), im, 0)
	case element(backends.ComplexNumber, 16):
		encode(to, element(backends.Float, 8), re, im)
		encode(to[8:], element(backends.Float, 8), im, 0)
	case element(backends.Float, 8):
		order.PutUint64(to, math.Float64bits(float64(re)))
	case element(backends.Float, 4):
		order.PutUint32(to, math.Float32bits(float32(re)))
	case element(backends.BrainFloat, 2):
		order.PutUint16(to, uint16(math.Float32bits(float32(re))>>16))
	case element(backends.Float, 2):
		single := math.Float32bits(float32(re))
		if re == 0 {
			order.PutUint16(to, 0)
			return
		}
		order.PutUint16(to, uint16((single-112<<23)>>13))
	default:
		var whole [8]byte
		binary.LittleEndian.PutUint64(whole[:], uint64(re))
		copy(to, whole[:e.Size])
	}
}

// A converter does a Convert in memory whose first byte has address 0.
type converter func(t *testing.T, r *rand.Rand, dst, src backends.Strided, memory []byte)

// testConverting tries so many arrays at random, and transposes.
func testConverting(t *testing.T, convert converter, rounds int) {
	for name, choose := range map[string]func(*rand.Rand) pair{"rearranging": opaquePair, "converting": numberPair} {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				r := rand.New(rand.NewPCG(uint64(round), 3))
				p, shape := choose(r), randomShape(r)
				dst, src := randomSide(r, p.dst, shape, false), randomSide(r, p.src, shape, true)
				convert.check(t, r, p, dst, src, fmt.Sprintf("round %d", round))
			}
		})
	}
	t.Run("transposing", convert.testTransposing)
	t.Run("long lines", convert.testLongLines)
}

func (convert converter) testLongLines(t *testing.T) {
	for _, count := range []int{fewestForTwo, fewestForTwo + 7} {
		r := rand.New(rand.NewPCG(uint64(count), 6))
		for range 5 {
			p := numberPair(r)
			dst, src := plainSide(p.dst, []int{count}, []int{0}, 0), plainSide(p.src, []int{count}, []int{0}, 0)
			convert.check(t, r, p, dst, src, fmt.Sprintf("%d of %v to %v", count, p.src, p.dst))
		}
	}
}

// check compares whole memories, so that bytes between elements count.
func (convert converter) check(t *testing.T, r *rand.Rand, p pair, dst, src side, name string) {
	offset := (dst.bytes + 15) / 16 * 16
	src.Address += backends.Address(offset)
	memory := make([]byte, offset+src.bytes)
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	// Elements may be one in the source, so choose them all before any is read.
	var places []int
	eachElement(src.Strided, func(at int) { places = append(places, at) })
	converted := map[int][]byte{}
	for _, at := range places {
		result := make([]byte, p.dst.Size)
		p.convert(r, result, memory[at:at+p.src.Size])
		converted[at] = result
	}
	want := bytes.Clone(memory)
	eachElement(dst.Strided, func(at int) {
		copy(want[at:], converted[places[0]])
		places = places[1:]
	})
	convert(t, r, dst.Strided, src.Strided, memory)
	if !bytes.Equal(want, memory) {
		at := 0
		for want[at] == memory[at] {
			at++
		}
		require.Failf(t, "differs", "%s: byte %d is %d, want %d: %+v from %+v", name, at, memory[at], want[at], dst, src)
	}
}

// plainSide is an array of ordinary layout, its axes in the given order.
func plainSide(e backends.Element, shape, order []int, gap int) side {
	s := side{Strided: backends.Strided{Element: e, Shape: shape, Strides: make([]int, len(shape))}, bytes: e.Size}
	for i := len(order) - 1; i >= 0; i-- {
		s.Strides[order[i]] = s.bytes
		s.bytes = s.bytes*shape[order[i]] + gap
	}
	return s
}

func (convert converter) testTransposing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, size := range []int{1, 2, 4, 8, 16, 12} {
		e := element(backends.Opaque, size)
		p := opaquePair(r)
		p.dst, p.src = e, e
		for _, shape := range [][]int{{8, 8}, {32, 32}, {64, 64}, {33, 65}, {100, 130}, {200, 9}, {3, 70, 40},
			{2, 3, 35, 34}} {
			n := len(shape)
			order, swapped := make([]int, n), make([]int, n)
			for i := range n {
				order[i], swapped[i] = i, i
			}
			swapped[n-1], swapped[n-2] = n-2, n-1
			for _, gap := range []int{0, 16} {
				dst, src := plainSide(e, shape, order, gap), plainSide(e, shape, swapped, 0)
				steps, _, err := plan(dst.Strided, src.Strided, mostInLaunch)
				require.NoError(t, err)
				require.Len(t, steps, 1)
				require.Equal(t, size != 12, steps[0].transpose != nil, "%v of %d bytes", shape, size)
				convert.check(t, r, p, dst, src, fmt.Sprintf("%v of %d bytes, gap %d", shape, size, gap))
			}
		}
	}
}

func (k *hostKernels) testFilling(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for period := 1; period <= 16; period++ {
		for at := range 17 {
			for _, count := range []int{1, 2, 5, 31, 200, 1000 + r.IntN(3000)} {
				pattern := make([]byte, period)
				for i := range pattern {
					pattern[i] = byte(r.Uint32())
				}
				memory := bytes.Repeat([]byte{0xa5}, at+period*count+9)
				want := bytes.Clone(memory)
				copy(want[at:], bytes.Repeat(pattern, count))
				a, blocks := planFill(backends.Address(at), pattern, count)
				k.run(t, fillKernel, unsafe.Pointer(a), unsafe.Sizeof(*a), kernelThreads*min(blocks, 3), memory)
				require.True(t, bytes.Equal(want, memory), "%d times %d bytes from %d on", count, period, at)
			}
		}
	}
}
