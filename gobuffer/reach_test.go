package gobuffer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// Devices by their UUIDs, as CUDA numbers them and as HIP does: one vendor's hardware, and two's.
var (
	one, two, three = backends.UUID{1}, backends.UUID{2}, backends.UUID{3}
	turnedRound     = [][]backends.UUID{{one, two}, {two, one}}
	strangers       = [][]backends.UUID{{one, two}, {three}}
)

// newVendors is newWorld with devices of CUDA's and HIP's.
func newVendors(t testing.TB, devices [][]backends.UUID, cuda, hip backendtest.FakeOptions) *world {
	t.Helper()
	cuda.Space, cuda.Devices, cuda.Identities = backends.SpaceCUDA, len(devices[0]), devices[0]
	hip.Space, hip.Devices, hip.Identities = backends.SpaceHIP, len(devices[1]), devices[1]
	w := &world{t: t, cuda: backendtest.NewFake(cuda), hip: backendtest.NewFake(hip)}
	w.devices = []backendtest.Device{w.cuda, w.hip}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), w.cuda, w.hip)
	require.NoError(t, err)
	t.Cleanup(w.assertClean)
	return w
}

// traced is what the runtime says of f.
func (w *world) traced(f func()) string {
	var lines strings.Builder
	w.runtime.SetTrace(func(line string) { fmt.Fprintln(&lines, line) })
	defer w.runtime.SetTrace(nil)
	f()
	return lines.String()
}

func TestReachAcrossRuntimesIsAskedOfThem(t *testing.T) {
	for name, c := range map[string]struct {
		devices [][]backends.UUID
		knows   func(device int, at backends.Region) bool // CUDA's driver
		from    place
		by      user
		inPlace bool
		why     string
	}{
		"the same device, another number": {turnedRound, nil, place{backends.HIP, 0}, user{backends.SpaceCUDA, 1}, true,
			"device 1 of cuda is device 0 of hip"},
		"the same number, another device": {turnedRound, nil, place{backends.HIP, 0}, user{backends.SpaceCUDA, 0}, false,
			"device 0 of cuda is device 1 of hip"},
		"the other way": {turnedRound, nil, place{backends.CUDAAsync, 1}, user{backends.SpaceHIP, 0},
			true, "device 0 of hip is device 1 of cuda"},
		"managed memory, on any device": {turnedRound, nil, place{backends.HIPUnified, 0}, user{backends.SpaceCUDA, 0},
			true, "device 0 of cuda is device 1 of hip"},
		"two vendors": {strangers, nil, place{backends.HIP, 0}, user{backends.SpaceCUDA, 0}, false,
			"device 0 of cuda is no device of hip"},
		"two vendors' managed memory": {strangers, nil, place{backends.HIPUnified, 0}, user{backends.SpaceCUDA, 0},
			false, "device 0 of cuda is no device of hip"},
		"two vendors, the other way": {strangers, nil, place{backends.CUDA, 1}, user{backends.SpaceHIP, 0}, false,
			"device 0 of hip is no device of cuda"},
		"the driver knows the memory": {strangers, func(d int, _ backends.Region) bool { return d == 1 },
			place{backends.HIP, 0}, user{backends.SpaceCUDA, 1}, true, "cuda says that it reaches"},
		"the driver knows, and another one": {strangers, func(d int, _ backends.Region) bool { return d == 1 },
			place{backends.HIP, 0}, user{backends.SpaceCUDA, 0}, false, "does not reach"},
		"memory that only its own code uses": {turnedRound, nil, place{backends.CUDAHost, -1}, user{backends.SpaceHIP, 0},
			false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cuda := late
			cuda.Knows = c.knows
			w := newVendors(t, c.devices, cuda, late)
			a := w.array(c.from.options(gobuffer.Async), before)
			is, err := a.Reaches(c.by.space, c.by.device)
			require.NoError(t, err)
			assert.Equal(t, c.inPlace, is)
			var h *gobuffer.Handle
			said := w.traced(func() { h, err = a.Access(c.by.space, c.by.device) })
			require.NoError(t, err)
			assert.Equal(t, c.inPlace, !h.Temporary(), "%s", said)
			assert.Contains(t, said, c.why)
			w.holds(h, user{c.by.space, w.numberOf(h, c.by)}, before)
			require.NoError(t, h.Release())
			closeAll(t, a)
		})
	}
}

// numberOf is the device whose fake has a handle's memory.
func (w *world) numberOf(h *gobuffer.Handle, u user) int {
	if h.Temporary() {
		return u.device
	}
	return h.Memory().Region().Device
}

func TestPredicatesSayWhatTheBackendsSay(t *testing.T) {
	for name, c := range map[string]struct {
		devices [][]backends.UUID
		is      bool
	}{"one vendor": {turnedRound, true}, "two": {strangers, false}} {
		w := newVendors(t, c.devices, late, late)
		a, b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before),
			w.array(place{backends.HIP, 0}.options(gobuffer.Async), before)
		assert.Equal(t, c.is, a.Accessible(backends.SpaceHIP), name)
		assert.Equal(t, c.is, b.Accessible(backends.SpaceCUDA), name)
		assert.True(t, a.Accessible(backends.SpaceCUDA) && b.Accessible(backends.SpaceHIP), name)
		assert.False(t, a.Accessible(backends.SpaceHost) || a.Accessible(backends.SpaceOpenCL), name)
		closeAll(t, a, b)
	}
}

// Whoever has one runtime is never asked of another one's devices.
func TestNobodyIsAskedOfMemoryOfItsOwnRuntime(t *testing.T) {
	w := newVendors(t, turnedRound, late, late)
	a := w.array(onDevice.options(gobuffer.Async), before)
	asked := func() int {
		return w.cuda.CallCount("Identity") + w.hip.CallCount("Identity") + w.cuda.CallCount("Reaches") +
			w.hip.CallCount("Probe")
	}
	was := asked()
	for _, u := range []user{{backends.SpaceCUDA, 0}, {backends.SpaceCUDA, 1}, {backends.SpaceHost, -1}} {
		h, err := a.Access(u.space, u.device)
		require.NoError(t, err)
		require.NoError(t, h.Release())
		assert.Equal(t, u.space == backends.SpaceCUDA, a.Accessible(u.space))
	}
	assert.Equal(t, was, asked())
	identities := func() int { return w.cuda.CallCount("Identity") + w.hip.CallCount("Identity") }
	a.Accessible(backends.SpaceHIP)
	was = identities()
	assert.True(t, a.Accessible(backends.SpaceHIP))
	assert.Equal(t, was, identities(), "it is asked once")
	closeAll(t, a)
}

func TestReachWithoutTheOtherRuntime(t *testing.T) {
	cuda := backendtest.NewFake(late)
	hip := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceHIP, Unavailable: "no driver"})
	r, err := gobuffer.NewRuntime(host.New(), cuda, hip)
	require.NoError(t, err)
	w := &world{t: t, runtime: r, cuda: cuda, hip: hip, devices: []backendtest.Device{cuda}}
	a := w.array(onDevice.options(gobuffer.Async), before)
	// HIP's code was compiled for CUDA then.
	assert.True(t, a.Accessible(backends.SpaceHIP))
	h, err := a.Access(backends.SpaceHIP, -1)
	require.NoError(t, err)
	assert.False(t, h.Temporary())
	require.NoError(t, h.Release())
	cuda.FailAt("Identity", 0, errors.ErrUnsupported)
	assert.False(t, a.Accessible(backends.SpaceHIP), "a device that nobody can name is nobody else's")
	_, err = a.Access(backends.SpaceHIP, -1)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	cuda.StopFailing()
	closeAll(t, a)
}

func TestADeviceThatTheOtherRuntimeHasNot(t *testing.T) {
	w := newVendors(t, strangers, late, late)
	a := w.array(place{backends.CUDA, 1}.options(gobuffer.Async), before)
	_, err := a.Access(backends.SpaceHIP, 1)
	assert.ErrorContains(t, err, "device is 1: accepted is 0 … 0 for hip")
	closeAll(t, a)
}

// The two runtimes know nothing of each other's streams.
func TestAnotherRuntimesCodeInPlaceIsInOrder(t *testing.T) {
	w := newVendors(t, turnedRound, late, late)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	a := w.array(o, before)
	five := w.scalar(arrayiface.Int32, 5)
	require.NoError(t, a.Fill(five))
	h, err := a.Access(backends.SpaceHIP, 1)
	require.NoError(t, err)
	assert.Zero(t, h.Stream(), "CUDA's stream is none of HIP's")
	assert.Equal(t, []byte{5, 0, 0, 0}, w.cuda.Peek(h.Address(), 4), "what is pending is over when HIP's code begins")

	// HIP's code writes late, on its default stream.
	require.NoError(t, w.hip.Launch(1, 0,
		func(func(backends.Address, int) []byte) { w.cuda.Poke(h.Address(), []byte{9, 0, 0, 0}) }))
	assert.Equal(t, byte(9), w.read(a).data[0], "whoever reads comes after it")
	require.NoError(t, w.hip.Launch(1, 0,
		func(func(backends.Address, int) []byte) { w.cuda.Poke(h.Address(), []byte{10, 0, 0, 0}) }))
	require.NoError(t, h.Release())
	assert.Equal(t, byte(10), w.read(a).data[0], "after the handle's end, too")
	closeAll(t, a, five)
}

// As long as somebody has a handle that names a stream of another device, or of another runtime.
func TestWhatIsEnqueuedElsewhereAfterAWait(t *testing.T) {
	for name, c := range map[string]struct {
		home place
		by   user
		on   func(*world) *backendtest.Fake
	}{
		"another runtime": {place{backends.CUDA, 0}, user{backends.SpaceHIP, 1},
			func(w *world) *backendtest.Fake { return w.hip }},
		"another device": {place{backends.CUDAUnified, 0}, user{backends.SpaceCUDA, 1},
			func(w *world) *backendtest.Fake { return w.cuda }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVendors(t, turnedRound, late, late)
			a := w.array(c.home.options(gobuffer.Async), before)
			h, err := a.Access(c.by.space, c.by.device)
			require.NoError(t, err)
			require.False(t, h.Temporary())
			write := func(value byte) {
				require.NoError(t, c.on(w).Launch(c.by.device, 0, func(memory func(backends.Address, int) []byte) {
					if c.by.space == backends.SpaceCUDA {
						memory(h.Address(), 4)[0] = value
					} else {
						w.cuda.Poke(h.Address(), []byte{value})
					}
				}))
			}
			for value := range byte(3) {
				write(20 + value)
				assert.Equal(t, 20+value, w.read(a).data[0], "with the handle, after another wait")
			}
			write(30)
			require.NoError(t, h.Release())
			assert.Equal(t, byte(30), w.read(a).data[0], "after its end")

			h, err = a.Access(c.by.space, c.by.device)
			require.NoError(t, err)
			held := h.Detach()
			for value := range byte(3) {
				write(40 + value)
				assert.Equal(t, 40+value, w.read(a).data[0], "with the memory, after another wait")
			}
			require.NoError(t, held.Release())
			closeAll(t, a)
		})
	}
}

// Managed memory is its own platform's.
func TestManagedMemoryOfAnotherPlatform(t *testing.T) {
	o := late
	o.Platforms = 2
	w := newWorld(t, 4, o)
	a := w.array(place{backends.CUDAUnified, 0}.options(gobuffer.Async), before)
	for device, temporary := range []bool{false, true, false, true} {
		h, err := a.Access(backends.SpaceCUDA, device)
		require.NoError(t, err)
		assert.Equal(t, temporary, h.Temporary(), "device %d", device)
		require.NoError(t, h.Release())
	}
	closeAll(t, a)
}

// One memory, by two names: what is kept of one of them is not kept when the other is written.
func TestWhatIsKeptGoesWithAnotherRuntimesWrite(t *testing.T) {
	w := newVendors(t, turnedRound, late, late)
	a := w.array(place{backends.HIP, 0}.options(gobuffer.Async), before)
	require.NoError(t, a.Cached(true))
	h, err := a.Access(backends.SpaceHost, -1)
	require.NoError(t, err)
	require.NoError(t, h.Release())
	assert.NotZero(t, w.keptBytes())

	at := backends.Region{Address: a.Address(), Allocator: backends.CUDA, Device: 1}
	m, err := w.runtime.Adopt(at, 24, 0, nil)
	require.NoError(t, err)
	same := gobuffer.View(m, at.Address, a.Layout(), 6, false, gobuffer.Options{Allocator: backends.CUDA, Device: 1})
	require.NoError(t, same.Changed())
	assert.Zero(t, w.keptBytes())
	closeAll(t, same, a)
}

// Two vendors' runtimes may have other memory at one address: nothing is taken for done.
func TestEqualAddressesOfTwoVendorsAreNotTheSameMemory(t *testing.T) {
	cuda, hip := backendtest.NewFake(late), backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceHIP})
	r, err := gobuffer.NewRuntime(host.New(), cuda, hip)
	require.NoError(t, err)
	a, err := r.NewArray(arrayiface.Int32, []int{6}, place{backends.HIP, 0}.options(gobuffer.Sync))
	require.NoError(t, err)
	m, err := r.Adopt(backends.Region{Address: a.Address(), Allocator: backends.CUDA, Device: 0}, 24, 0, nil)
	require.NoError(t, err)
	other := gobuffer.View(m, a.Address(), a.Layout(), 6, false, gobuffer.Options{Allocator: backends.CUDA})
	assert.ErrorContains(t, a.Write(other), "unknown address", "CUDA's device has no such memory, and is asked")
	closeAll(t, other, a)
}
