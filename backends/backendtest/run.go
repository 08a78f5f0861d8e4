// Package backendtest holds the tests that every backend passes and a Fake
// device that finds misuse without hardware.
package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// Run fails t wherever b breaks the contract of backends.Backend or of an
// optional interface that it implements. It skips only where Probe or an
// allocator says ErrUnavailable.
func Run(t *testing.T, b backends.Backend, o Options) {
	err := b.Probe()
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, b.Probe(), "Probe remembers its answer")
	if o.OutOfMemory == 0 {
		o.OutOfMemory = 1 << 46
	}
	if runOther(t, b, o) {
		return
	}
	if o.LargestSize == 0 {
		o.LargestSize = 4 << 20
	}
	if o.Allocators == nil {
		o.Allocators = slices.DeleteFunc(backends.Allocators(),
			func(a backends.Allocator) bool { return a.Backend() != b.Name() })
	}
	require.NotEmpty(t, o.Allocators, "backend %q serves no allocator", b.Name())

	count, err := b.DeviceCount()
	require.NoError(t, err)
	if b.Name() == backends.SpaceHost.String() {
		require.Zero(t, count)
	} else {
		require.Positive(t, count, "a backend without devices is unavailable")
	}
	before := live(b)
	for _, a := range o.Allocators {
		devices := []int{backends.HostDevice}
		if a.Kind() == backends.DeviceOnly || a.Kind() == backends.Managed {
			devices = devices[:0]
			for d := range count {
				devices = append(devices, d)
			}
		}
		for _, device := range devices {
			t.Run(fmt.Sprintf("%s:%d", a, device), func(t *testing.T) {
				s := suite{b: b, o: o, a: a, device: device, context: max(device, 0)}
				s.streams, _ = backends.As[backends.Streams](b)
				s.skipUnavailable(t)
				t.Run("Facts", s.testFacts)
				t.Run("Staging", s.testStaging)
				t.Run("Reach", s.testReach)
				t.Run("Allocate", s.testAllocate)
				t.Run("Zero", s.testZero)
				t.Run("RoundTrip", s.testRoundTrip)
				t.Run("Within", s.testCopyWithin)
				t.Run("Fill", s.testFill)
				t.Run("Order", s.testOrder)
				t.Run("OutOfMemory", s.testOutOfMemory)
				t.Run("Locate", s.testLocate)
				t.Run("Mapping", s.testMapping)
				t.Run("Export", s.testExport)
				t.Run("NativeHandle", s.testNativeHandle)
				t.Run("Growing", s.testGrowing)
				t.Run("Context", s.testContext)
				t.Run("Concurrent", s.testConcurrent)
				t.Run("Kernels", s.testKernels)
				t.Run("Streams", s.testStreams)
				t.Run("Elsewhere", func(t *testing.T) { s.testWaitElsewhere(t, devices) })
				t.Run("Between", func(t *testing.T) { s.testCopyBetween(t, devices) })
			})
		}
	}
	t.Run("Devices", func(t *testing.T) { testDevices(t, b, count) })
	t.Run("Sharing", func(t *testing.T) { testSharing(t, b, count, o) })
	if s := shares(t, b, count-1, o); s != nil {
		s.testTwoProcesses(t) // not a test of its own: the other process is to come no further than here
	}
	t.Run("Identities", func(t *testing.T) { testIdentities(t, b, count) })
	if before >= 0 {
		assert.Equal(t, before, live(b), "allocations that were not freed")
	}
}

func (s suite) testAllocate(t *testing.T) {
	type extent struct{ from, to backends.Address }
	var taken []extent
	for _, size := range s.sizes() {
		for range 3 {
			at := s.allocate(t, size, false, 0).Address
			taken = append(taken, extent{at, at + backends.Address(size)})
		}
	}
	slices.SortFunc(taken, func(a, b extent) int { return int(a.from - b.from) })
	for i := 1; i < len(taken); i++ {
		require.LessOrEqual(t, taken[i-1].to, taken[i].from, "blocks overlap")
	}
}

func (s suite) testZero(t *testing.T) {
	for _, size := range s.sizes() {
		// A block that was dirty before shows whether zeroing was skipped.
		at, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: size})
		require.NoError(t, err)
		require.NoError(t, s.b.Fill(s.region(at), []byte{0xFF}, size, 0))
		s.wait(t, 0)
		require.NoError(t, s.b.Free(s.region(at), size, 0))

		region := s.allocate(t, size, true, 0)
		equal(t, make([]byte, size), s.read(t, region, size, 0), "%d bytes", size)
	}
}

func (s suite) testRoundTrip(t *testing.T) {
	for _, size := range s.sizes() {
		first, second := s.allocate(t, size+8, false, 0), s.allocate(t, size+8, false, 0)
		data := make([]byte, size)
		for _, offset := range []int{0, 1, 7} {
			randomBytes(data)
			s.write(t, shifted(first, offset), data, 0)
			s.copy(t, shifted(second, 7-offset), shifted(first, offset), size, 0)
			equal(t, data, s.read(t, shifted(second, 7-offset), size, 0), "%d bytes at offset %d", size, offset)
		}
	}
}

func (s suite) testCopyWithin(t *testing.T) {
	const size = 300
	data := make([]byte, size)
	randomBytes(data)
	region := s.allocate(t, size, false, 0)
	s.write(t, region, data, 0)
	s.copy(t, shifted(region, 150), shifted(region, 1), 149, 0)
	copy(data[150:], data[1:150])
	equal(t, data, s.read(t, region, size, 0), "copy within a block")
}

func (s suite) testFill(t *testing.T) {
	for length := 1; length <= 16; length++ {
		for _, count := range []int{1, 2, 3, 1000, 100003} {
			if (count+2)*length > s.o.LargestSize {
				continue
			}
			pattern := make([]byte, length)
			randomBytes(pattern)
			size := (count + 2) * length
			region := s.allocate(t, size, true, 0)
			require.NoError(t, s.b.Fill(shifted(region, length), pattern, count, 0))
			want := slices.Concat(make([]byte, length), bytes.Repeat(pattern, count), make([]byte, length))
			equal(t, want, s.read(t, region, size, 0), "%d times %x", count, pattern)

			require.NoError(t, s.b.Fill(region, bytes.Repeat([]byte{7}, length), count, 0))
			copy(want, bytes.Repeat([]byte{7}, length*count))
			equal(t, want, s.read(t, region, size, 0), "%d times %d equal bytes", count, length)
		}
	}
}

// testOrder queues work that gives wrong data in any other order.
func (s suite) testOrder(t *testing.T) {
	var stream backends.Stream
	if s.streams != nil {
		stream = s.newStream(t)
	}
	const size, rounds = 50001, 20
	first, second := s.allocate(t, size, true, stream), s.allocate(t, size, false, stream)
	want := make([]byte, size)
	for i := range rounds {
		value := byte(i + 1)
		require.NoError(t, s.b.Fill(shifted(first, i), []byte{value}, size-i, stream))
		s.copy(t, second, first, size, stream)
		require.NoError(t, s.b.Fill(first, []byte{0, 0}, size/2, stream))
		s.copy(t, first, second, size, stream)
		copy(want[i:], repeated(value, size-i))
	}
	equal(t, want, s.read(t, first, size, stream), "%d rounds on one stream", rounds)
}

func (s suite) testOutOfMemory(t *testing.T) {
	_, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: s.o.OutOfMemory})
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, s.a, full.Allocator)
	assert.Equal(t, s.device, full.Device)
	assert.Equal(t, s.o.OutOfMemory, full.Size)
	s.allocate(t, 1000, false, 0)
}

func (s suite) testLocate(t *testing.T) {
	locator, ok := backends.As[backends.Locator](s.b)
	if !ok {
		return
	}
	region := s.allocate(t, 1000, false, 0)
	for _, offset := range []int{0, 1, 999} {
		found, err := locator.Locate(shifted(region, offset).Address)
		require.NoError(t, err)
		assert.Equal(t, shifted(region, offset).Address, found.Address)
		assert.Equal(t, s.a.Kind(), found.Allocator.Kind(), "found allocator %s", found.Allocator)
		assert.Equal(t, s.b.Name(), found.Allocator.Backend())
		if s.a.Kind() != backends.Pinned {
			assert.Equal(t, s.device, found.Device)
		}
	}
	_, host := scratch(t, 4096)
	found, err := locator.Locate(host.Address)
	require.NoError(t, err, "unknown memory is no error")
	assert.Equal(t, backends.None, found.Allocator)
}

func (s suite) testConcurrent(t *testing.T) {
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for i := range 20 {
				s.useOnce(t, 1+rand.IntN(20000), byte(worker*20+i))
			}
		})
	}
	group.Wait()
}

// useOnce reports errors without ending the goroutine that it runs on.
func (s suite) useOnce(t *testing.T, size int, value byte) {
	at, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: size})
	if !assert.NoError(t, err) {
		return
	}
	region := s.region(at)
	host, back := scratch(t, size)
	assert.NoError(t, s.b.Fill(region, []byte{value}, size, 0))
	_, err = s.b.Copy(back, region, size, 0)
	assert.NoError(t, err)
	s.wait(t, 0)
	assert.Equal(t, size, bytes.Count(host, []byte{value}), "another goroutine's data")
	assert.NoError(t, s.b.Free(region, size, 0))
}

// testCopyBetween copies from every other device.
func (s suite) testCopyBetween(t *testing.T, devices []int) {
	const size = 70001
	for _, other := range devices {
		if other == s.device || !s.supportedBy(other) {
			continue
		}
		far := s
		far.device, far.context = other, other
		data := make([]byte, size)
		randomBytes(data)
		src, dst := far.allocate(t, size, false, 0), s.allocate(t, size, false, 0)
		far.write(t, src, data, 0)
		s.copy(t, dst, src, size, 0)
		// Whose default stream the copy went to is the backend's business.
		s.wait(t, 0)
		far.wait(t, 0)
		equal(t, data, s.read(t, dst, size, 0), "from device %d to %d", other, s.device)
	}
}

func testDevices(t *testing.T, b backends.Backend, count int) {
	if l, ok := backends.As[backends.LibraryReporter](b); ok {
		assert.NotEmpty(t, l.Library())
	}
	for device := range count {
		if r, ok := backends.As[backends.MemoryReporter](b); ok {
			free, total, err := r.MemoryInfo(device)
			require.NoError(t, err)
			assert.LessOrEqual(t, free, total)
			assert.Positive(t, total)
		}
		if d, ok := backends.As[backends.Describer](b); ok {
			first, err := d.Describe(device)
			require.NoError(t, err)
			again, err := d.Describe(device)
			require.NoError(t, err)
			assert.Equal(t, first, again, "a stable order")
			assert.True(t, slices.ContainsFunc(first, func(fact [2]string) bool { return fact[0] == "name" && fact[1] != "" }))
		}
		p, ok := backends.As[backends.Peers](b)
		if !ok {
			continue
		}
		for other := range count {
			if other == device {
				continue
			}
			can, err := p.CanAccess(device, other)
			require.NoError(t, err)
			if can {
				assert.NoError(t, p.Enable(device, other))
				assert.NoError(t, p.Enable(device, other), "enabling twice is no error")
				for range 3 {
					assert.NoError(t, p.Disable(device, other), "disabling once more is no error")
				}
			}
		}
	}
	if trimmer, ok := backends.As[backends.Trimmer](b); ok {
		assert.NoError(t, trimmer.Trim())
	}
}
