package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestFakeConforms(t *testing.T) {
	for _, space := range []backends.Space{backends.SpaceCUDA, backends.SpaceHIP, backends.SpaceOpenMP,
		backends.SpaceOpenCL} {
		for _, devices := range []int{1, 2, 4} {
			for name, o := range map[string]FakeOptions{
				"late":        {MaxDelay: 50 * time.Microsecond},
				"manual":      {Manual: true},
				"strict":      {Manual: true, Strict: true},
				"synchronous": {Synchronous: true},
				"mapped":      {Manual: true, Mapped: true},
				"platforms":   {Manual: true, Strict: true, Platforms: 2},
				"one thread":  {Synchronous: true, OneThread: true},
				"growing":     {Manual: true, Strict: true, Grows: 100 << 10},
			} {
				if (o.Platforms != 0 || o.OneThread || space == backends.SpaceOpenCL) && devices != 2 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%s", space, devices, name), func(t *testing.T) {
					t.Parallel()
					o.Space, o.Devices = space, devices
					f := NewFake(o)
					Run(t, f, Options{LargestSize: 1 << 17})
					f.AssertClean(t)
					streams, events := f.LiveHandles()
					assert.Zero(t, streams+events)
				})
			}
		}
	}
	f := NewFake(FakeOptions{Synchronous: true})
	b := f.WithoutStreams()
	_, ok := b.(backends.Streams)
	require.False(t, ok)
	Run(t, b, Options{LargestSize: 1 << 17})
	f.AssertClean(t)
}

func manual(t *testing.T, devices int) *Fake {
	t.Helper()
	f := NewFake(FakeOptions{Manual: true, Devices: devices})
	require.NoError(t, f.Probe())
	return f
}

func take(t *testing.T, f *Fake, a backends.Allocator, device, size int) backends.Region {
	t.Helper()
	at, err := f.Allocate(backends.Request{Allocator: a, Device: device, Size: size})
	require.NoError(t, err)
	return backends.Region{Address: at, Allocator: a, Device: device}
}

func TestUseOfMemoryThatIsNotThereYetIsFound(t *testing.T) {
	for name, use := range map[string]func(f *Fake, at backends.Region, s backends.Stream) error{
		"fill": func(f *Fake, at backends.Region, s backends.Stream) error { return f.Fill(at, []byte{1}, 8, s) },
		"kernel": func(f *Fake, at backends.Region, s backends.Stream) error {
			return f.Launch(0, s, func(memory func(backends.Address, int) []byte) { memory(at.Address, 8) })
		},
	} {
		f := NewFake(FakeOptions{Manual: true, LateMemory: true})
		require.NoError(t, f.Probe())
		own, err := f.NewStream(0)
		require.NoError(t, err)
		other, err := f.NewStream(0)
		require.NoError(t, err)
		address, err := f.Allocate(backends.Request{Allocator: backends.CUDAAsync, Size: 8, Stream: own})
		require.NoError(t, err)
		at := backends.Region{Address: address, Allocator: backends.CUDAAsync}
		require.NoError(t, use(f, at, own))
		require.NoError(t, f.Synchronize(0, own))
		require.NoError(t, use(f, at, other), name)
		require.NoError(t, f.Synchronize(0, other))
		assert.Empty(t, f.Violations(), name)

		address, err = f.Allocate(backends.Request{Allocator: backends.CUDAAsync, Size: 8, Stream: own})
		require.NoError(t, err)
		at.Address = address
		require.NoError(t, use(f, at, other))
		require.NoError(t, f.Synchronize(0, other))
		require.Len(t, f.Violations(), 1, name)
		assert.Contains(t, f.Violations()[0], "there", name)
	}
}

func TestHandlesAreUsedAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		f := NewFake(FakeOptions{Manual: true, ReuseHandles: again})
		require.NoError(t, f.Probe())
		at := take(t, f, backends.CUDA, 0, 1)
		s, err := f.NewStream(0)
		require.NoError(t, err)
		require.NoError(t, f.Fill(at, []byte{1}, 1, s))
		require.NoError(t, f.DestroyStream(0, s))
		e, err := f.NewEvent(0)
		require.NoError(t, err)
		assert.Equal(t, again, uint64(e) == uint64(s))
		require.NoError(t, f.DestroyEvent(0, e))
		s, err = f.NewStream(0)
		require.NoError(t, err)
		assert.Equal(t, again, uint64(e) == uint64(s))
		require.NoError(t, f.Synchronize(0, s))
		assert.NotEqual(t, []byte{1}, f.Peek(at.Address, 1), "the old stream is another one")
		require.NoError(t, f.DestroyStream(0, s))
		f.Finish()
		assert.Equal(t, []byte{1}, f.Peek(at.Address, 1))
		require.NoError(t, f.Free(at, 1, 0))
		f.AssertClean(t)
	}
}

func TestPinnedMemoryGoesWithAnyDevicesStream(t *testing.T) {
	f := manual(t, 2)
	s, err := f.NewStream(1)
	require.NoError(t, err)
	at, err := f.Allocate(backends.Request{Allocator: backends.CUDAHost, Device: backends.HostDevice, Size: 8, Stream: s})
	require.NoError(t, err)
	require.NoError(t, f.Free(backends.Region{Address: at, Allocator: backends.CUDAHost, Device: backends.HostDevice}, 8,
		s))
	_, err = f.Allocate(backends.Request{Allocator: backends.CUDA, Device: 0, Size: 8, Stream: s})
	reported(t, f, err, "wrong device")
}

// reported asserts that err is a device's and that the fake has recorded
// exactly one violation, with these words.
func reported(t *testing.T, f *Fake, err error, words string) {
	t.Helper()
	var failure *backends.DeviceError
	require.ErrorAs(t, err, &failure)
	require.Len(t, f.Violations(), 1)
	assert.Contains(t, f.Violations()[0], words)
}

// recorder stands in for a test that is expected to fail.
type recorder struct {
	testing.TB
	messages []string
}

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, arguments ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, arguments...))
}

func TestLeakIsFound(t *testing.T) {
	f := manual(t, 1)
	at := take(t, f, backends.CUDA, 0, 100)
	r := &recorder{}
	f.AssertClean(r)
	assert.Equal(t, []string{"fake cuda: leak of 1 allocations, 100 bytes"}, r.messages)
	require.NoError(t, f.Free(at, 100, 0))
	f.AssertClean(t)
}

func TestMisuseOfFreeIsFound(t *testing.T) {
	for _, c := range []struct {
		words string
		free  func(f *Fake, at backends.Region) error
	}{
		{"double free", func(f *Fake, at backends.Region) error { _ = f.Free(at, 100, 0); return f.Free(at, 100, 0) }},
		{"unknown address", func(f *Fake, at backends.Region) error { at.Address += 4096 * 4096; return f.Free(at, 100, 0) }},
		{"8 bytes into a block", func(f *Fake, at backends.Region) error { return f.Free(shifted(at, 8), 100, 0) }},
		{"wrong device", func(f *Fake, at backends.Region) error { at.Device = 1; return f.Free(at, 100, 0) }},
		{"which has 100", func(f *Fake, at backends.Region) error { return f.Free(at, 99, 0) }},
		{"came from allocator", func(f *Fake, at backends.Region) error {
			at.Allocator = backends.CUDAHost
			return f.Free(at, 100, 0)
		}},
	} {
		for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
			t.Run(c.words+"/"+a.String(), func(t *testing.T) {
				f := manual(t, 2)
				reported(t, f, c.free(f, take(t, f, a, 0, 100)), c.words)
			})
		}
	}
}

func TestMisuseOfMemoryIsFound(t *testing.T) {
	_, host := scratch(t, 4096)
	for _, c := range []struct {
		words string
		use   func(f *Fake, at backends.Region) error
	}{
		{"out of bounds", func(f *Fake, at backends.Region) error { return copied(f.Copy(host, at, 101, 0)) }},
		{"out of bounds", func(f *Fake, at backends.Region) error { return copied(f.Copy(shifted(at, 50), host, 51, 0)) }},
		{"out of bounds", func(f *Fake, at backends.Region) error { return f.Fill(at, []byte{1, 2, 3}, 34, 0) }},
		{"unknown address", func(f *Fake, at backends.Region) error { return copied(f.Copy(host, shifted(at, 100), 1, 0)) }},
		{"unknown address", func(f *Fake, _ backends.Region) error {
			return f.Fill(backends.Region{Address: host.Address, Allocator: backends.CUDA}, []byte{1}, 1, 0)
		}},
		{"wrong device", func(f *Fake, at backends.Region) error { at.Device = 1; return copied(f.Copy(host, at, 1, 0)) }},
		{"wrong device", func(f *Fake, at backends.Region) error {
			s, _ := f.NewStream(1)
			return copied(f.Copy(host, at, 1, s))
		}},
		{"is memory of allocator cuda", func(f *Fake, at backends.Region) error {
			at.Allocator = backends.Malloc
			return copied(f.Copy(host, at, 1, 0))
		}},
		{"use after free", func(f *Fake, at backends.Region) error {
			_ = f.Free(at, 100, 0)
			return copied(f.Copy(host, at, 1, 0))
		}},
		{"overlap", func(f *Fake, at backends.Region) error { return copied(f.Copy(shifted(at, 10), at, 11, 0)) }},
		{"is memory of cuda", func(f *Fake, _ backends.Region) error { return copied(f.Copy(host, host, 1, 0)) }},
		{"pattern of 17", func(f *Fake, at backends.Region) error { return f.Fill(at, make([]byte, 17), 1, 0) }},
		{"unknown stream", func(f *Fake, at backends.Region) error { return f.Fill(at, []byte{1}, 1, 77) }},
		{"no device 2", func(f *Fake, _ backends.Region) error {
			_, err := f.Allocate(backends.Request{Allocator: backends.CUDA, Device: 2, Size: 1})
			return err
		}},
		{"not of cuda", func(f *Fake, _ backends.Region) error {
			_, err := f.Allocate(backends.Request{Allocator: backends.HIP, Size: 1})
			return err
		}},
		{"wrong device", func(f *Fake, _ backends.Region) error {
			e, _ := f.NewEvent(1)
			return f.Record(0, e, 0)
		}},
		{"unknown event", func(f *Fake, _ backends.Region) error { return f.Wait(0, 0, 5) }},
		{"the default stream", func(f *Fake, _ backends.Region) error {
			s, _ := f.Resolve(0, 0)
			return f.DestroyStream(0, s)
		}},
	} {
		t.Run(c.words, func(t *testing.T) {
			f := manual(t, 2)
			reported(t, f, c.use(f, take(t, f, backends.CUDA, 0, 100)), c.words)
		})
	}
}

func TestCallBeforeProbeIsFound(t *testing.T) {
	f := NewFake(FakeOptions{})
	_, err := f.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, []string{"DeviceCount: called before Probe"}, f.Violations())
}

func TestMissingSynchronisationGivesStaleData(t *testing.T) {
	f := manual(t, 1)
	at := take(t, f, backends.CUDAUnified, 0, 4)
	require.NoError(t, f.Fill(at, []byte{1}, 4, 0))
	seen := hostBytes(at.Address, 4)
	assert.Equal(t, []byte{garbage, garbage, garbage, garbage}, seen)
	require.NoError(t, f.Synchronize(0, 0))
	assert.Equal(t, []byte{1, 1, 1, 1}, seen)

	first, err := f.NewStream(0)
	require.NoError(t, err)
	second, err := f.NewStream(0)
	require.NoError(t, err)
	other := take(t, f, backends.CUDA, 0, 4)
	require.NoError(t, f.Fill(at, []byte{2}, 4, first))
	require.NoError(t, copied(f.Copy(other, at, 4, second)))
	require.NoError(t, f.Synchronize(0, second))
	assert.Equal(t, []byte{1, 1, 1, 1}, f.Peek(other.Address, 4), "the copy did not wait for the fill")
	f.Finish()
	require.NoError(t, f.Free(at, 4, 0))
	require.NoError(t, f.Free(other, 4, 0))
	f.AssertClean(t)
}

func TestFreeUnderPendingWorkIsFound(t *testing.T) {
	for _, c := range []struct {
		o     FakeOptions
		a     backends.Allocator
		found bool
	}{
		{FakeOptions{Manual: true}, backends.CUDA, true},
		{FakeOptions{Manual: true, FreeWaits: true}, backends.CUDA, false},
		{FakeOptions{Manual: true}, backends.CUDAAsync, false},
	} {
		f := NewFake(c.o)
		require.NoError(t, f.Probe())
		at := take(t, f, c.a, 0, 4)
		require.NoError(t, f.Fill(at, []byte{1}, 4, 0))
		require.NoError(t, f.Free(at, 4, 0))
		f.Finish()
		if c.found {
			assert.Contains(t, strings.Join(f.Violations(), " "), "use after free: a late fill")
		} else {
			assert.Empty(t, f.Violations())
		}
	}
}

func TestPageableCopies(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := NewFake(FakeOptions{Manual: true, Strict: strict})
		require.NoError(t, f.Probe())
		host, region := scratch(t, 4)
		at := take(t, f, backends.CUDA, 0, 4)
		copy(host, "abcd")
		require.NoError(t, copied(f.Copy(at, region, 4, 0)))
		copy(host, "efgh")
		require.NoError(t, f.Synchronize(0, 0))
		want := "abcd"
		if strict {
			want = "efgh"
		}
		assert.Equal(t, want, string(f.Peek(at.Address, 4)), "the source is read late only if strict")

		require.NoError(t, f.Fill(at, []byte("z"), 4, 0))
		require.NoError(t, copied(f.Copy(region, at, 4, 0)))
		want = "zzzz"
		if strict {
			want = "efgh"
		}
		assert.Equal(t, want, string(host), "the destination is late only if strict")
		f.Finish()
		assert.Equal(t, "zzzz", string(host))
	}
}

func TestPinnedSourceIsReadLate(t *testing.T) {
	f := manual(t, 1)
	pinned, at := take(t, f, backends.CUDAHost, backends.HostDevice, 4), take(t, f, backends.CUDA, 0, 4)
	host := hostBytes(pinned.Address, 4)
	copy(host, "abcd")
	require.NoError(t, copied(f.Copy(at, pinned, 4, 0)))
	copy(host, "efgh")
	require.NoError(t, f.Synchronize(0, 0))
	assert.Equal(t, "efgh", string(f.Peek(at.Address, 4)))
}

func TestInjectedErrors(t *testing.T) {
	f := manual(t, 1)
	boom := errors.New("boom")
	f.FailAt("Allocate", 2, boom)
	at := take(t, f, backends.CUDA, 0, 8)
	_, err := f.Allocate(backends.Request{Allocator: backends.CUDA, Size: 8})
	assert.ErrorIs(t, err, boom)
	require.NoError(t, f.Free(take(t, f, backends.CUDA, 0, 8), 8, 0))

	f.FailAt("Free", 0, boom)
	assert.ErrorIs(t, f.Free(at, 8, 0), boom)
	assert.ErrorIs(t, f.Free(at, 8, 0), boom)
	f.StopFailing()
	require.NoError(t, f.Free(at, 8, 0))
	assert.Equal(t, 3, f.CallCount("Allocate"))
	f.AssertClean(t)
}

func TestLateErrorComesBackFromTheWait(t *testing.T) {
	f := manual(t, 1)
	boom := errors.New("boom")
	at := take(t, f, backends.CUDA, 0, 8)
	f.FailAt("Execute", 1, boom)
	require.NoError(t, f.Fill(at, []byte{1}, 8, 0))
	assert.ErrorIs(t, f.Synchronize(0, 0), boom)
	require.NoError(t, f.Synchronize(0, 0))
	assert.EqualValues(t, garbage, f.Peek(at.Address, 1)[0], "failed work has no effect")
}

func TestMemoryLimit(t *testing.T) {
	f := NewFake(FakeOptions{Manual: true, Memory: 1000})
	require.NoError(t, f.Probe())
	at := take(t, f, backends.CUDAAsync, 0, 800)
	_, err := f.Allocate(backends.Request{Allocator: backends.CUDA, Size: 201})
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	free, total, err := f.MemoryInfo(0)
	require.NoError(t, err)
	assert.Equal(t, []int64{200, 1000}, []int64{free, total})
	require.NoError(t, f.Free(at, 800, 0))
	at = take(t, f, backends.CUDA, 0, 1000)
	require.NoError(t, f.Free(at, 1000, 0))
	f.AssertClean(t)
}

func TestUnavailable(t *testing.T) {
	f := NewFake(FakeOptions{Space: backends.SpaceHIP, Unavailable: "no driver"})
	err := f.Probe()
	require.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorContains(t, err, "the hip backend is not available: looked for libfake.so: no driver")
}

func TestLaunchRunsInStreamOrder(t *testing.T) {
	f := manual(t, 1)
	at := take(t, f, backends.CUDA, 0, 4)
	require.NoError(t, f.Fill(at, []byte{1}, 4, 0))
	require.NoError(t, f.Launch(0, 0, func(memory func(backends.Address, int) []byte) {
		data := memory(at.Address, 4)
		for i := range data {
			data[i] += byte(i)
		}
	}))
	require.NoError(t, f.Synchronize(0, 0))
	assert.Equal(t, []byte{1, 2, 3, 4}, f.Peek(at.Address, 4))
	f.Poke(at.Address, []byte{9})
	assert.Equal(t, []byte{9, 2, 3, 4}, f.Peek(at.Address, 4))
	assert.Contains(t, f.Calls(), "Launch(device 0, stream 0x0)")
}

// What the suite cannot see: a Fake that did not move its calls would note it.
func TestCallsOnAnotherThreadAreFound(t *testing.T) {
	f := NewFake(FakeOptions{Synchronous: true, OneThread: true})
	require.NoError(t, f.Probe())
	at := take(t, f, backends.CUDA, 0, 8)
	f.mu.Lock()
	err := f.fill(at, []byte{1}, 8, 0)
	f.mu.Unlock()
	require.ErrorContains(t, err, "called on thread")
	require.NoError(t, f.Free(at, 8, 0))
	assert.Len(t, f.Violations(), 1)
}

// copied drops what is left of a copy.
func copied(_ backends.Progress, err error) error { return err }
