package host

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
)

// hostAllocators are those that the backend serves.
var hostAllocators = []backends.Allocator{backends.Malloc, backends.CPP, backends.Shared}

func TestConformance(t *testing.T) { backendtest.Run(t, New(), backendtest.Options{}) }

func hostRegion(a backends.Allocator, at backends.Address) backends.Region {
	return backends.Region{Address: at, Allocator: a, Device: backends.HostDevice}
}

func allocate(t testing.TB, b backends.Backend, a backends.Allocator, size int, zero bool) backends.Region {
	t.Helper()
	at, err := b.Allocate(backends.Request{Allocator: a, Device: backends.HostDevice, Size: size, Zero: zero})
	require.NoError(t, err)
	region := hostRegion(a, at)
	t.Cleanup(func() { assert.NoError(t, b.Free(region, size, 0)) })
	return region
}

func TestMallocIsAlignedForSIMD(t *testing.T) {
	b := New()
	for size := 1; size < 5000; size += 7 {
		at := allocate(t, b, backends.Malloc, size, false).Address
		assert.Zero(t, at%64, "size %d", size)
	}
}

// Reused memory is where skipping memset would show.
func TestZeroAfterDirt(t *testing.T) {
	b := New()
	for _, a := range hostAllocators {
		for _, size := range []int{1, 1000, 128 << 10, 32 << 20, 32<<20 + 1, 48<<20 + 13} {
			for range 3 {
				at, err := b.Allocate(backends.Request{Allocator: a, Device: backends.HostDevice, Size: size, Zero: true})
				require.NoError(t, err)
				memory := bytesAt(at, size)
				require.True(t, isZero(memory), "%s, %d bytes", a, size)
				repeat(memory, []byte{0xA5})
				require.NoError(t, b.Free(hostRegion(a, at), size, 0))
			}
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	b := New()
	for _, a := range hostAllocators {
		_, err := b.Allocate(backends.Request{Allocator: a, Device: backends.HostDevice, Size: 1 << 60})
		var full *backends.OutOfMemoryError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, backends.OutOfMemoryError{Allocator: a, Device: backends.HostDevice, Size: 1 << 60}, *full)
	}
}

// exhausted is a heap without memory.
type exhausted struct{ heap }

func (exhausted) allocate(int, bool) backends.Address { return 0 }

func TestOutOfMemoryForSmallBlocks(t *testing.T) {
	b := &Backend{c: exhausted{}, cpp: func() (heap, error) { return exhausted{}, nil }}
	for _, a := range []backends.Allocator{backends.Malloc, backends.CPP} {
		_, err := b.Allocate(backends.Request{Allocator: a, Device: backends.HostDevice, Size: 8})
		var full *backends.OutOfMemoryError
		assert.ErrorAs(t, err, &full)
	}
}

func TestNoCPPRuntime(t *testing.T) {
	b := &Backend{c: cHeap{}, cpp: func() (heap, error) {
		found, err := findOperators([]string{"libhamr-absent.so.7", "libc.so.6"})
		return found, err
	}}
	_, err := b.Allocate(backends.Request{Allocator: backends.CPP, Device: backends.HostDevice, Size: 8})
	require.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorContains(t, err, "looked for libhamr-absent.so.7, libc.so.6")
	assert.ErrorContains(t, err, "cannot open shared object file")
	assert.ErrorContains(t, err, "undefined symbol: _ZnamRKSt9nothrow_t")

	allocate(t, b, backends.Malloc, 16, false) // the C heap needs no C++ runtime
}

func TestForeignRequestsAreRefused(t *testing.T) {
	b := New()
	elsewhere := backends.Region{Allocator: backends.Malloc, Device: 3}
	here := allocate(t, b, backends.Malloc, 8, false)
	_, err := b.Allocate(backends.Request{Allocator: backends.Malloc, Device: 3, Size: 8})
	assert.ErrorContains(t, err, "no device 3")
	assert.ErrorContains(t, b.Free(elsewhere, 8, 0), "no device 3")
	assert.ErrorContains(t, copied(b.Copy(here, elsewhere, 8, 0)), "no device 3")
	assert.ErrorContains(t, copied(b.Copy(elsewhere, here, 8, 0)), "no device 3")
	assert.ErrorContains(t, b.Fill(elsewhere, []byte{1}, 8, 0), "no device 3")
	_, err = b.Allocate(backends.Request{Allocator: backends.HIP, Device: backends.HostDevice, Size: 8})
	assert.ErrorContains(t, err, "does not serve allocator hip")
	assert.ErrorContains(t, b.Free(hostRegion(backends.None, 0), 8, 0), "does not serve allocator none")
}

func TestCopyOverlapping(t *testing.T) {
	b := New()
	for _, size := range []int{100, parallelSize + 12345} {
		block := allocate(t, b, backends.Malloc, size+64, false)
		memory := bytesAt(block.Address, size+64)
		for _, shift := range [][2]int{{0, 17}, {17, 0}, {5, 5}} {
			for i := range memory {
				memory[i] = byte(i * 7 >> 3)
			}
			want := bytes.Clone(memory[shift[0] : shift[0]+size])
			src, dst := block, block
			src.Address += backends.Address(shift[0])
			dst.Address += backends.Address(shift[1])
			require.NoError(t, copied(b.Copy(dst, src, size, 0)))
			require.True(t, bytes.Equal(want, memory[shift[1]:shift[1]+size]), "size %d, shift %v", size, shift)
		}
	}
}

func TestLargeCopyAndFill(t *testing.T) {
	b := New()
	const size = 3*parallelSize + 60
	first, second := allocate(t, b, backends.Malloc, size, false), allocate(t, b, backends.CPP, size, false)
	a, z := bytesAt(first.Address, size), bytesAt(second.Address, size)
	for _, length := range []int{1, 3, 5, 12, 16} {
		pattern := make([]byte, length)
		for i := range pattern {
			pattern[i] = byte(rand.IntN(255) + 1)
		}
		count := size / length
		require.NoError(t, b.Fill(first, pattern, count, 0))
		require.True(t, bytes.Equal(bytes.Repeat(pattern, count), a[:count*length]), "length %d", length)
		require.NoError(t, copied(b.Copy(second, first, size-1, 0)))
		require.True(t, bytes.Equal(a[:size-1], z[:size-1]))
	}
	require.NoError(t, b.Fill(first, make([]byte, 3), size/3, 0))
	require.True(t, isZero(a))
}

func TestFreeFunction(t *testing.T) {
	for _, a := range hostAllocators {
		assert.NotZero(t, FreeFunction(a))
	}
	assert.Zero(t, FreeFunction(backends.CUDA))

	at, err := New().Allocate(backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: 100})
	require.NoError(t, err)
	operators{destroy: FreeFunction(backends.Malloc)}.free(at)
}

func TestInPiecesCoversEachByteOnce(t *testing.T) {
	for _, size := range []int{1, 9, 10, 11, 1000} {
		seen := make([]byte, size)
		inPieces(size, 10, func(from, to int) {
			for i := from; i < to; i++ {
				seen[i]++
			}
		})
		assert.Equal(t, strings.Repeat("\x01", size), string(seen))
	}
}

var errSink error

func BenchmarkAllocateFillFree(b *testing.B) {
	pattern := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, a := range hostAllocators {
		b.Run(a.String()+"/1KiB", func(b *testing.B) {
			backend := New()
			for b.Loop() {
				at, err := backend.Allocate(backends.Request{Allocator: a, Device: backends.HostDevice, Size: 1024})
				region := hostRegion(a, at)
				errSink = errors.Join(err, backend.Fill(region, pattern, 128, 0), backend.Free(region, 1024, 0))
			}
		})
	}
}

func BenchmarkAllocateFree(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		zero bool
	}{{"1KiB", 1 << 10, false}, {"1KiB/zero", 1 << 10, true}, {"64KiB", 64 << 10, false}, {"64KiB/zero", 64 << 10, true},
		{"16MiB/zero", 16 << 20, true}, {"256MiB/zero", 256 << 20, true}} {
		b.Run(c.name, func(b *testing.B) {
			backend := New()
			for b.Loop() {
				at, err := backend.Allocate(backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: c.size,
					Zero: c.zero})
				if err != nil {
					b.Fatal(err)
				}
				errSink = backend.Free(hostRegion(backends.Malloc, at), c.size, 0)
			}
		})
	}
}

// First touch is most of what a large fresh block costs.
func BenchmarkAllocateTouchFree(b *testing.B) {
	for _, size := range []int{16 << 20, 256 << 20} {
		b.Run(backends.Malloc.String()+"/"+map[int]string{16 << 20: "16MiB", 256 << 20: "256MiB"}[size], func(b *testing.B) {
			backend := New()
			b.SetBytes(int64(size))
			for b.Loop() {
				at, _ := backend.Allocate(backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: size})
				region := hostRegion(backends.Malloc, at)
				errSink = errors.Join(backend.Fill(region, []byte{1}, size, 0), backend.Free(region, size, 0))
			}
		})
	}
}

func BenchmarkCopy(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20, "256MiB": 256 << 20} {
		b.Run(name, func(b *testing.B) {
			backend := New()
			dst, src := allocate(b, backend, backends.Malloc, size, true), allocate(b, backend, backends.Malloc, size, false)
			_ = backend.Fill(dst, []byte{1}, size, 0)
			_ = backend.Fill(src, []byte{2}, size, 0)
			b.SetBytes(int64(size))
			for b.Loop() {
				errSink = copied(backend.Copy(dst, src, size, 0))
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20, "256MiB": 256 << 20} {
		b.Run(name, func(b *testing.B) {
			backend := New()
			dst := allocate(b, backend, backends.Malloc, size, false)
			b.SetBytes(int64(size))
			for b.Loop() {
				errSink = backend.Fill(dst, []byte{1, 2, 3, 4, 5, 6, 7, 8}, size/8, 0)
			}
		})
	}
}

// copied drops what is left of a copy.
func copied(_ backends.Progress, err error) error { return err }

// TestBlocksOfCPPAreAligned as Malloc's are; and those of a program's own operator new[] end by operator delete[].
func TestBlocksOfCPPAreAligned(t *testing.T) {
	b := New()
	o, err := processOperators()
	require.NoError(t, err)
	for size := 1; size < 5000; size += 31 {
		at, err := b.Allocate(backends.Request{Allocator: backends.CPP, Device: backends.HostDevice, Size: size})
		require.NoError(t, err)
		assert.Zero(t, at%64)
		require.NoError(t, b.Free(backends.Region{Address: at, Allocator: backends.CPP, Device: backends.HostDevice}, size,
			0))
		assert.Empty(t, o.aligned.at)
	}
	plain := operators{create: o.create, destroy: o.destroy}
	at := plain.allocate(100, true)
	require.NoError(t, b.Free(backends.Region{Address: at, Allocator: backends.CPP, Device: backends.HostDevice}, 100, 0))
}
