package gobuffer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// inPiecesOf has copies between runtimes go through host memory in pieces of n bytes.
func inPiecesOf(t *testing.T, n int) {
	t.Helper()
	before := gobuffer.SetStageBytes(n)
	t.Cleanup(func() { gobuffer.SetStageBytes(before) })
}

// staged is which allocator's memory a copy goes through, and how much of it at once.
func (w *world) staged(copying func()) (through backends.Allocator, most int64) {
	w.t.Helper()
	w.runtime.ResetPeaks()
	before := map[backends.Allocator]int64{}
	for _, s := range w.runtime.Statistics() {
		before[s.Allocator] = s.Current
	}
	copying()
	through = backends.None
	for _, s := range w.runtime.Statistics() {
		onHost := s.Allocator.Kind() == backends.Pageable || s.Allocator.Kind() == backends.Pinned
		if more := s.Peak - before[s.Allocator]; onHost && more > 0 {
			assert.Equal(w.t, backends.None, through, "two kinds of host memory")
			through, most = s.Allocator, more
		}
	}
	return through, most
}

// TestBetweenRuntimesTwoPiecesOfHostMemoryAreEnough counts bytes and calls.
func TestBetweenRuntimesTwoPiecesOfHostMemoryAreEnough(t *testing.T) {
	for name, c := range map[string]struct {
		piece, count int
		through      backends.Allocator
		most         int64
		full         bool // there is no page-locked memory
	}{
		"in one piece":           {1 << 20, 1000, backends.Malloc, 1000, false},
		"little":                 {64, 1000, backends.Malloc, 2 * 64, false},
		"much":                   {100_000, 1_000_001, backends.CUDAHost, 2 * 100_000, false},
		"much, and no such room": {100_000, 1_000_001, backends.Malloc, 2 * 100_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			inPiecesOf(t, c.piece)
			w := newVendors(t, strangers, late, late)
			want := counting(arrayiface.Uint8, c.count)
			a := w.array(place{backends.CUDA, 1}.options(gobuffer.Async), want)
			b := w.array(place{backends.HIP, 0}.options(gobuffer.Async),
				model{arrayiface.Uint8, []int{c.count}, make([]byte, c.count)})
			if c.full {
				full := &backends.OutOfMemoryError{Allocator: backends.CUDAHost, Device: -1, Size: c.piece}
				w.cuda.FailAt("Allocate", 0, full)
				w.hip.FailAt("Allocate", 0, full)
			}
			copies := w.cuda.CallCount("Copy") + w.hip.CallCount("Copy")
			through, most := w.staged(func() { require.NoError(t, b.Write(a)) })
			w.cuda.StopFailing()
			w.hip.StopFailing()
			assert.Equal(t, c.through, through)
			assert.Equal(t, c.most, most)
			pieces := (c.count + c.piece - 1) / c.piece
			assert.Equal(t, 2*pieces, w.cuda.CallCount("Copy")+w.hip.CallCount("Copy")-copies, "copies")
			w.assertHolds(b, want)
			closeAll(t, a, b)
		})
	}
}

// The second piece is filled while nobody has waited for the first one's way on, and the third when
// that alone is over.
func TestOnePieceIsEmptiedWhileTheNextIsFilled(t *testing.T) {
	inPiecesOf(t, 100)
	w := newVendors(t, strangers, late, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Uint8, 400))
	b := w.array(place{backends.HIP, 0}.options(gobuffer.Async), counting(arrayiface.Uint8, 400))
	before := len(w.hip.Calls())
	require.NoError(t, b.Write(a))
	var calls []string
	for _, call := range w.hip.Calls()[before:] {
		if name, _, _ := strings.Cut(call, "("); name == "Copy" || strings.HasPrefix(name, "Synchronize") {
			calls = append(calls, name)
		}
	}
	assert.Equal(t, []string{"Copy", "Copy", "SynchronizeEvent", "Copy", "SynchronizeEvent", "Copy", "Synchronize",
		"SynchronizeEvent"}, calls)
	closeAll(t, a, b)
}

func TestWorkOfBothRuntimesIsInOrderWithACopyBetweenThem(t *testing.T) {
	inPiecesOf(t, 8)
	w := newVendors(t, strangers, late, late)
	o, p := place{backends.CUDA, 0}.options(gobuffer.Async), place{backends.HIP, 0}.options(gobuffer.Async)
	o.Stream, p.Stream = w.stream(w.cuda, 0), w.stream(w.hip, 0)
	a, b := w.array(o, before), w.array(p, before)
	five, six, seven := w.scalar(arrayiface.Int32, 5), w.scalar(arrayiface.Int32, 6), w.scalar(arrayiface.Int32, 7)
	require.NoError(t, a.Fill(five))
	require.NoError(t, b.Fill(six)) // late, and before what is copied
	require.NoError(t, b.Write(a))
	require.NoError(t, a.Fill(seven)) // late, and behind it
	w.assertHolds(b, numbers(5, 5, 5, 5, 5, 5))
	closeAll(t, a, b, five, six, seven)
}

// TestWhereTheHostReachesOneSideNothingIsBetween counts calls and bytes.
func TestWhereTheHostReachesOneSideNothingIsBetween(t *testing.T) {
	for _, c := range []struct {
		from, to place
		fine     bool // the host reaches CUDA's memory, though its facts do not say so
		by       string
	}{
		{place{backends.CUDAUnified, 0}, place{backends.HIP, 0}, false, "hip"},
		{place{backends.HIP, 0}, place{backends.CUDAUnified, 0}, false, "hip"},
		{place{backends.CUDAHost, -1}, place{backends.HIP, 0}, false, "hip"},
		{place{backends.HIP, 0}, place{backends.CUDAHost, -1}, false, "hip"},
		{place{backends.HIPHost, -1}, place{backends.CUDAAsync, 0}, false, "cuda"},
		{place{backends.CUDA, 0}, place{backends.HIP, 0}, true, "hip"},
		{place{backends.HIP, 0}, place{backends.CUDA, 0}, true, "hip"},
	} {
		t.Run(fmt.Sprintf("%s to %s, fine %v", c.from, c.to, c.fine), func(t *testing.T) {
			inPiecesOf(t, 8)
			cuda := late
			cuda.Fine = c.fine
			w := newVendors(t, strangers, cuda, late)
			a, b := w.array(c.from.options(gobuffer.Async), before),
				w.array(c.to.options(gobuffer.Async), numbers(0, 0, 0, 0, 0, 0))
			five := w.scalar(arrayiface.Int32, 5)
			require.NoError(t, a.Fill(five)) // late, on a device
			counts := map[string]int{"cuda": w.cuda.CallCount("Copy"), "hip": w.hip.CallCount("Copy")}
			var said string
			through, _ := w.staged(func() { said = w.traced(func() { require.NoError(t, b.Write(a)) }) })
			assert.Equal(t, backends.None, through)
			counts["cuda"], counts["hip"] = w.cuda.CallCount("Copy")-counts["cuda"], w.hip.CallCount("Copy")-counts["hip"]
			want := map[string]int{"cuda": 0, "hip": 0}
			want[c.by] = 1
			assert.Equal(t, want, counts)
			assert.Contains(t, said, fmt.Sprintf("between %s and %s there is nothing", c.from.allocator, c.to.allocator))
			w.assertHolds(b, numbers(5, 5, 5, 5, 5, 5))
			closeAll(t, a, b, five)
		})
	}
}

// TestStridedElementsBetweenRuntimesGoWithoutTheirGaps: each device rearranges its own.
func TestStridedElementsBetweenRuntimesGoWithoutTheirGaps(t *testing.T) {
	const count = 40_000
	for name, c := range map[string]struct {
		hip  backendtest.FakeOptions
		cuda backendtest.FakeOptions
	}{
		"both convert":     {late, late},
		"the source alone": {backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true}, late},
		"the target alone": {late, backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true}},
		"neither of the two": {backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true},
			backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVendors(t, strangers, c.cuda, c.hip)
			a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 3*count))
			b := w.array(place{backends.HIP, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 2*count))
			from, to, plain := w.slice(a, 0, 3*count, 3), w.slice(b, 0, 2*count, 2), w.slice(b, 0, count, 1)
			var most int64
			for _, target := range []*gobuffer.Array{plain, to} {
				_, most = w.staged(func() { require.NoError(t, target.Write(from)) })
				want := w.read(from)
				w.assertHolds(target, want)
			}
			if name == "both convert" {
				assert.Equal(t, int64(4*count), most, "bytes that are on the host")
			}
			closeAll(t, from, to, plain, a, b)
		})
	}
}

func TestACopyBetweenRuntimesEndsBetweenPieces(t *testing.T) {
	inPiecesOf(t, 100)
	w := newVendors(t, strangers, late, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Uint8, 1000))
	b := w.array(place{backends.HIP, 0}.options(gobuffer.Async), counting(arrayiface.Uint8, 1000))
	var stop backends.Stop
	copies := w.hip.CallCount("Copy")
	w.runtime.SetTrace(func(line string) {
		if strings.HasPrefix(line, "copy 100 bytes malloc") {
			stop.Ask()
		}
	})
	assert.ErrorIs(t, b.Until(&stop).Write(a), backends.ErrStopped)
	w.runtime.SetTrace(nil)
	assert.LessOrEqual(t, w.hip.CallCount("Copy")-copies, 1)
	closeAll(t, a, b.Until(nil))
}
