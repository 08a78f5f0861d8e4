package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// kernel enqueues on stream what a foreign library might: it sets a's memory.
func (w *world) kernel(f *backendtest.Fake, device int, stream backends.Stream, a *gobuffer.Array, m model) {
	w.t.Helper()
	at := a.Address()
	require.NoError(w.t, f.Launch(max(device, 0), stream, func(memory func(backends.Address, int) []byte) {
		copy(memory(at, len(m.data)), m.data)
	}))
}

var after = numbers(21, 22, 23, 24, 25, 26)

func TestCopyRunsAfterTheSourcesOwnStream(t *testing.T) {
	for _, from := range places(2) {
		for _, to := range places(2) {
			w := newWorld(t, 2, late)
			o := from.options(gobuffer.Async)
			f := w.cuda
			if from.allocator.Backend() == "hip" {
				f = w.hip
			}
			if from.allocator.Kind() != backends.Pageable {
				o.Stream = w.stream(f, from.device)
			}
			a := w.array(o, before)
			want := before
			if o.Stream != 0 {
				w.kernel(f, from.device, o.Stream, a, after)
				want = after
			}
			mode := gobuffer.Async
			if to.allocator.Kind() != backends.DeviceOnly {
				mode = gobuffer.SyncHost
			}
			b := w.array(to.options(mode), numbers(0, 0, 0, 0, 0, 0))
			require.NoError(t, b.Assign(a))
			w.assertHolds(b, want, "%s to %s", from, to)
			c, err := a.Copy(to.options(mode), arrayiface.Int32)
			require.NoError(t, err)
			w.assertHolds(c, want, "%s to new %s", from, to)
			closeAll(t, a, b, c)
		}
	}
}

func TestCopyRunsAfterTheTargetsOwnStream(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, from place) {
		for _, to := range places(2) {
			if to.allocator.Kind() == backends.Pageable {
				continue
			}
			f := w.cuda
			if to.allocator.Backend() == "hip" {
				f = w.hip
			}
			o := to.options(gobuffer.SyncHost)
			o.Stream = w.stream(f, to.device)
			a, b := w.array(from.options(w.mode), before), w.array(o, before)
			w.kernel(f, to.device, o.Stream, b, after)
			require.NoError(t, b.Assign(a))
			w.assertHolds(b, before, "%s to %s: a kernel that was there before ran after", from, to)
			closeAll(t, a, b)
		}
	})
}

func TestTwoStreamsOnOneBuffer(t *testing.T) {
	for _, p := range places(1) {
		if p.allocator.Backend() != "cuda" {
			continue
		}
		w := newWorld(t, 1, late)
		a := w.array(p.options(gobuffer.Async), before)
		for i := range 6 {
			require.NoError(t, a.SetStream(w.stream(w.cuda, 0), gobuffer.Async))
			v := w.scalar(arrayiface.Int32, i)
			require.NoError(t, a.Fill(v))
			closeAll(t, v)
		}
		w.assertHolds(a, numbers(5, 5, 5, 5, 5, 5), "%s", p)
		closeAll(t, a)
	}
}

func TestSourceMayGoWhileItsCopyIsPending(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, from place) {
		for _, to := range places(2) {
			a, b := w.array(from.options(gobuffer.Async), after), w.array(to.options(gobuffer.Async), before)
			require.NoError(t, b.Assign(a))
			closeAll(t, a)
			w.assertHolds(b, after, "%s to %s", from, to)
			closeAll(t, b)
		}
	})
}

func TestForeignMemoryIsGivenBackAfterItWasRead(t *testing.T) {
	w := newWorld(t, 1, late)
	image := w.array(place{backends.Malloc, -1}.options(0), after)
	m, err := w.runtime.Adopt(image.Memory().Region(), image.Memory().Size(), 0,
		func() { w.poke(image.Memory(), before.data) })
	require.NoError(t, err)
	foreign := gobuffer.View(m, image.Address(), image.Layout(), 6, true, image.Options())
	b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
	require.NoError(t, b.Assign(foreign))
	closeAll(t, foreign)
	w.assertHolds(b, after, "the owner reused its memory before the copy ran")
	closeAll(t, b, image)
}

func TestTargetMayGoWhileACopyToItIsPending(t *testing.T) {
	onEveryPlace(t, 2, func(t *testing.T, w *world, from place) {
		for _, to := range places(2) {
			a, b := w.array(from.options(gobuffer.Async), after), w.array(to.options(gobuffer.Async), before)
			require.NoError(t, b.Assign(a))
			closeAll(t, b)
			w.assertHolds(a, after)
			closeAll(t, a)
		}
	})
}

func TestHostWritesWaitForWhatReadsTheMemory(t *testing.T) {
	for _, from := range []backends.Allocator{backends.Malloc, backends.CPP, backends.CUDAHost, backends.CUDAUnified} {
		for name, write := range map[string]func(a, v *gobuffer.Array) error{
			"fill":  func(a, v *gobuffer.Array) error { return a.Fill(v) },
			"write": func(a, v *gobuffer.Array) error { return a.Write(v) },
		} {
			w := newWorld(t, 1, late)
			a := w.array(place{from, 0}.options(gobuffer.Async), after)
			b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before)
			v := w.scalar(arrayiface.Int32, 1)
			require.NoError(t, b.Assign(a))
			require.NoError(t, write(a, v))
			w.assertHolds(b, after, "%s %s", from, name)
			closeAll(t, a, b, v)
		}
	}
}

func TestMemoryIsFreedAfterTheBuffersStream(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDAAsync, 0}.options(gobuffer.Async), before)
	s := w.stream(w.cuda, 0)
	require.NoError(t, a.SetStream(s, gobuffer.Async))
	w.kernel(w.cuda, 0, s, a, after)
	closeAll(t, a)
	require.NoError(t, w.cuda.Synchronize(0, 0), "frees it")
}

func TestZeroedMemoryIsZeroForTheHost(t *testing.T) {
	for _, p := range places(1) {
		w := newWorld(t, 1, late)
		m, err := w.runtime.Allocate(p.allocator, p.device, 24, 0, true)
		require.NoError(t, err)
		layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{6}, nil)
		require.NoError(t, err)
		a := gobuffer.View(m, m.Region().Address, layout, 6, false, p.options(gobuffer.Async))
		w.assertHolds(a, numbers(0, 0, 0, 0, 0, 0), "%s", p)
		closeAll(t, a)
	}
}

func TestStreamsStayOnTheirDevice(t *testing.T) {
	w := newWorld(t, 2, late)
	cuda0, hip1 := w.stream(w.cuda, 0), w.stream(w.hip, 1)
	for name, c := range map[string]struct {
		from   place
		stream backends.Stream
		to     []place
		kept   bool
	}{
		"to the host and back":  {place{backends.CUDA, 0}, cuda0, []place{{backends.Malloc, -1}, {backends.CUDA, 0}}, true},
		"on the device":         {place{backends.CUDA, 0}, cuda0, []place{{backends.CUDAAsync, 0}}, true},
		"to another device":     {place{backends.CUDA, 0}, cuda0, []place{{backends.CUDA, 1}}, false},
		"to another runtime":    {place{backends.CUDAUnified, 0}, cuda0, []place{{backends.HIP, 0}}, false},
		"from another runtime":  {place{backends.HIP, 1}, hip1, []place{{backends.CUDAAsync, 1}}, false},
		"within another device": {place{backends.HIP, 1}, hip1, []place{{backends.HIPUnified, 1}}, true},
	} {
		o := c.from.options(gobuffer.Async)
		o.Stream = c.stream
		a := w.array(o, before)
		for _, to := range c.to {
			copied := a.Options()
			copied.Allocator, copied.Device = to.allocator, to.device
			b, err := a.Copy(copied, a.Type())
			require.NoError(t, err, name)
			w.assertHolds(b, before, name)
			closeAll(t, b)
			require.NoError(t, a.Move(to.allocator, to.device), name)
			w.assertHolds(a, before, name)
		}
		if c.kept {
			assert.Equal(t, c.stream, a.Stream(), name)
		} else {
			assert.Zero(t, a.Stream(), name)
		}
		closeAll(t, a)
	}
}

func TestAHostBuffersStreamMayBeAnotherRuntimes(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.Malloc, -1}.options(gobuffer.SyncHost)
	o.Stream = w.stream(w.cuda, 0)
	a := w.array(o, before)
	b := w.array(place{backends.HIP, 0}.options(gobuffer.Async), after)
	require.NoError(t, a.Assign(b))
	w.assertHolds(a, after)
	require.NoError(t, b.Assign(a))
	h, err := a.Access(backends.SpaceCUDA, 0)
	require.NoError(t, err)
	require.NoError(t, h.Release())
	closeAll(t, a, b)
}

func TestAccessFromEverySpace(t *testing.T) {
	for _, p := range places(2) {
		for _, s := range []backends.Space{backends.SpaceHost, backends.SpaceCUDA, backends.SpaceHIP} {
			for _, device := range []int{-1, 0, 1} {
				w := newWorld(t, 2, late)
				a := w.array(p.options(gobuffer.Async), before)
				h, err := a.Access(s, device)
				require.NoError(t, err)
				anyDevice := s == backends.SpaceHost || p.allocator.Kind() == backends.Managed
				inPlace := p.allocator.ReachableFrom(s) && (anyDevice || max(device, 0) == p.device)
				assert.Equal(t, !inPlace, h.Temporary(), "%s from %s %d", p, s, device)
				assert.Equal(t, inPlace, h.Address() == a.Address())
				assert.Equal(t, inPlace, h.Memory() == a.Memory())
				if !inPlace {
					assert.True(t, h.Memory().Region().Allocator.ReachableFrom(s))
				}
				closeAll(t, a)
				o := h.Memory().Region()
				seen := gobuffer.View(h.Memory().Retain(), h.Address(), h.Layout(), 6, false,
					place{o.Allocator, o.Device}.options(gobuffer.Async))
				w.assertHolds(seen, before, "the handle outlives the buffer")
				closeAll(t, seen)
				assert.NoError(t, h.Release())
				assert.NoError(t, h.Release())
			}
		}
	}
}
