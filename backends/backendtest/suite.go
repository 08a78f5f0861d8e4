package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// Counter is implemented by backends that can count their live allocations.
type Counter interface {
	Live() (allocations, bytes int)
}

// Options adapts Run to a backend. The zero value suits most.
type Options struct {
	Allocators []backends.Allocator // nil means all that name the backend
	// LargestSize bounds the blocks that are tried; zero means 4 MiB.
	LargestSize int
	// OutOfMemory is a size that no device has; zero means 1<<46 bytes.
	OutOfMemory int
}

// live is -1 where b does not count.
func live(b backends.Backend) int {
	if c, ok := b.(Counter); ok {
		allocations, _ := c.Live()
		return allocations
	}
	return -1
}

// suite tests one allocator on one device.
type suite struct {
	b       backends.Backend
	streams backends.Streams // nil where there are none
	o       Options
	a       backends.Allocator
	device  int
	context int // the device whose streams serve the memory
}

func (s suite) skipUnavailable(t *testing.T) {
	at, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: 16})
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, s.b.Free(s.region(at), 16, 0))
}

// supportedBy reports whether a device has the allocator.
func (s suite) supportedBy(device int) bool {
	supporter, ok := backends.As[backends.Supporter](s.b)
	return !ok || supporter.Supports(s.a, device) == nil
}

func (s suite) region(at backends.Address) backends.Region {
	return backends.Region{Address: at, Allocator: s.a, Device: s.device}
}

func shifted(r backends.Region, by int) backends.Region {
	r.Address += backends.Address(by)
	return r
}

// sizes include both sides of what allocators and copies treat specially.
func (s suite) sizes() []int {
	list := []int{1, 2, 3, 15, 16, 17, 255, 1000, 4095, 4096, 4097, 65537, 1<<20 - 1, s.o.LargestSize}
	return slices.DeleteFunc(list, func(n int) bool { return n > s.o.LargestSize })
}

// allocate leaves the freeing to the end of the test.
func (s suite) allocate(t *testing.T, size int, zero bool, stream backends.Stream) backends.Region {
	t.Helper()
	at, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: size, Zero: zero, Stream: stream})
	require.NoError(t, err, "%d bytes", size)
	require.NotZero(t, at)
	require.Zero(t, at%16, "alignment of %#x", at)
	region := s.region(at)
	t.Cleanup(func() {
		s.wait(t, stream)
		assert.NoError(t, s.b.Free(region, size, stream))
	})
	return region
}

func (s suite) wait(t testing.TB, stream backends.Stream) {
	t.Helper()
	if s.streams != nil {
		assert.NoError(t, s.streams.Synchronize(s.context, stream))
	}
}

// scratch returns host memory from outside Go's heap, as drivers may keep its
// address.
func scratch(t testing.TB, size int) ([]byte, backends.Region) {
	t.Helper()
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, syscall.Munmap(data)) })
	at := backends.Address(unsafe.Pointer(unsafe.SliceData(data)))
	return data, backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}
}

func randomBytes(data []byte) {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	_, _ = rand.NewChaCha8(seed).Read(data)
}

func (s suite) copy(t *testing.T, dst, src backends.Region, size int, stream backends.Stream) backends.Progress {
	t.Helper()
	left, err := s.b.Copy(dst, src, size, stream)
	require.NoError(t, err)
	if s.streams == nil {
		require.Equal(t, backends.Complete, left, "a backend without streams does everything at once")
	}
	return left
}

// write and read go through host memory and are complete at return.
func (s suite) write(t *testing.T, dst backends.Region, data []byte, stream backends.Stream) {
	t.Helper()
	host, region := scratch(t, len(data))
	copy(host, data)
	if s.copy(t, dst, region, len(data), stream)&backends.Reading == 0 {
		clear(host)
	}
	s.wait(t, stream)
}

func (s suite) read(t *testing.T, src backends.Region, size int, stream backends.Stream) []byte {
	t.Helper()
	host, region := scratch(t, size)
	if s.copy(t, region, src, size, stream) != backends.Complete {
		s.wait(t, stream)
	}
	return bytes.Clone(host)
}

func equal(t testing.TB, want, got []byte, format string, arguments ...any) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	require.Len(t, got, len(want))
	for i := range want {
		if want[i] != got[i] {
			require.Failf(t, "wrong data", "%s: byte %d of %d is %#x, not %#x", fmt.Sprintf(format, arguments...), i,
				len(want), got[i], want[i])
		}
	}
}

// within polls until ok, for a generous time.
func within(t *testing.T, ok func() (bool, error)) {
	t.Helper()
	require.Eventually(t, func() bool {
		done, err := ok()
		return assert.NoError(t, err) && done
	}, 20*time.Second, time.Millisecond)
}
